"""Runs the CUDA tests of GPUVerify on the emulator: which of those that are to fail it faults.

    python benchmarks/gpuverify.py FOLDER [--only WORD] [--schedules N] [--time S] [--block N]
        [--results FILE] [--markdown]

FOLDER is a checkout of mc-imperial/gpuverify; nothing is fetched or changed there. GPUVerify proves
that a kernel has no race, divergent barrier or failed assertion, whatever its arguments; here each
kernel is executed with a few. Arguments that do not meet a precondition are left out; assertions
are checked; loop invariants and the like, which are steps of a proof, are not. Grids are cut to
4 CTAs, blocks to --block threads; --time is the CPU time of each test's executions.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

import warpsim
from kernelexp.evidence import native
from kernelexp.system import toolchain
from warpsim import compiled
from warpsim.errors import UserError
from warpsim.execute import first_schedules
from warpsim.launch import Argument, Field, Launch, Pointer, Scalar, StructValue, plain_name

SHIM = """
#pragma once
#include <cassert>
#include <climits>
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>
#if __has_include(<curand_kernel.h>)
#include <curand_kernel.h>
#endif
namespace cooperative_groups {
template <typename Group> __device__ void synchronize(const Group &group) { group.sync(); }
}
#define __requires(...) do { if (!(__VA_ARGS__)) asm volatile("trap;"); } while (0)
#define __assume(...) __requires(__VA_ARGS__)
#define __assert(...) assert(__VA_ARGS__)
#define __ensures(...) ((void)0)
#define __invariant(...) ((void)0)
#define __global_invariant(...) ((void)0)
#define __requires_fresh_array(...) ((void)0)
#define __axiom(...)
#define __implies(a, b) (!(a) || (b))
#define __enabled() true
#define __uniform_bool(x) true
#define __uniform_int(x) true
#define __distinct_int(x) true
#define __no_read(x) true
#define __no_write(x) true
#define __read(x) false
#define __write(x) false
#define __mod_pow2(a, b) ((a) & ((b) - 1))
"""
FLAGS = ("-ptx", "-G", "-w", "-std=c++17", "-rdc=true", "-arch=compute_90")
_HEADER = re.compile(r"^//\s*(pass|xfail:\w+)", re.I)
_ENTRY = re.compile(r"\.entry (\w+)\s*\((.*?)\)", re.S)
_PARAMETER = re.compile(
    r"\.param (?:\.align (?P<align>\d+) )?\.(?P<type>\w+)(?P<pointer>(?: \.ptr)?)[^,]*?\w+"
    r"(?:\[(?P<size>\d+)\])?$"
)
_KERNEL = re.compile(r"__global__\s+void\s+(\w+)\s*\((.*?)\)", re.S)
_SIZE = re.compile(r"--(blockDim|gridDim)=\[?([0-9,]+)\]?")
_SCALARS = {"u64": "s64", "u32": "s32", "u16": "s16", "u8": "s8", "f32": "f32", "f64": "f64"}
BYTES = 1 << 18
"""Of each array."""
GRID = 4
CHOICES = ("threads", 0, 1, 2, 3, 16, 64, 1000)
"""Values of integer arguments; threads: as many as the grid has."""
HINTS = 4
"""Constants that a source compares with, and that are tried too."""
UNJUDGED = {"out-of-bounds", "uninitialised-read", "neighbour"}
"""What GPUVerify does not look for, null pointers excepted."""
OUTCOMES = ("found", "clean", "beside", "unmet", "long", "refused")


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One test, and what came of it."""

    name: str
    expected: str
    """pass, or xfail: and how GPUVerify is to fail."""
    outcome: str
    """found, clean, beside (only what GPUVerify does not look for), unmet (no arguments met the
    preconditions), long, refused."""
    findings: tuple[str, ...] = ()
    why: str = ""

    @property
    def surprises(self) -> bool:
        return (self.expected == "pass") == (self.outcome == "found")


class Executions(msgspec.Struct, kw_only=True):
    """What was seen of a test's kernels."""

    findings: set[str] = msgspec.field(default_factory=set)
    met: bool = False
    """Whether any arguments met the preconditions."""
    late: bool = False
    """Whether time was up before all had been tried."""


def sources(folder: Path) -> Iterator[Path]:
    yield from sorted((folder / "testsuite" / "CUDA").glob("**/*.cu"))


def name_of(source: Path) -> str:
    return str(source.parent).partition("testsuite/CUDA/")[2]


def unjudged_of(source: str) -> set[str]:
    """UNJUDGED, but of a test that is to fail by a null pointer."""
    is_null = re.search(r"null", "".join(source.splitlines()[:5]), re.I)
    return UNJUDGED - {"out-of-bounds"} if is_null else UNJUDGED


def ptx_of(source: Path, nvcc: Path, before: str = SHIM, more: Sequence[str] = ()) -> str:
    """Compiled with `before` in front; RuntimeError with nvcc's words where it has errors."""
    with tempfile.TemporaryDirectory() as folder:
        shim, out = Path(folder) / "gpuverify.cuh", Path(folder) / "k.ptx"
        shim.write_text(before)
        defines = re.findall(r"-D\w+(?:=\w+)?", "".join(source.read_text().splitlines()[1:2]))
        command = [
            str(nvcc),
            *FLAGS,
            *defines,
            *more,
            "-include",
            str(shim),
            str(source),
            "-o",
            str(out),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            raise RuntimeError((errors or ["nvcc failed"])[0].split("error", 1)[-1].strip(": "))
        return out.read_text()


def size(text: str, name: str, most: int) -> tuple[int, int, int]:
    """Of the grid or of a block, from the test's second line, cut to `most`."""
    numbers = [int(number) for number in dict(_SIZE.findall(text)).get(name, "1").split(",")]
    x, y, z = (*numbers, 1, 1, 1)[:3]
    while x * y * z > most:
        x, y, z = (max(x // 2, 1), y, z) if x > 1 else (x, max(y // 2, 1), max(z // 2, 1))
    return x, y, z


class Parameter(NamedTuple):
    """A parameter of a kernel, as its source has it."""

    words: str = ""
    required: int | None = None
    """What a precondition says that it is."""

    @property
    def points(self) -> bool:
        return "*" in self.words or not re.search(r"\b(long|size_t|u?int64_t)\b", self.words)


def signatures(source: str) -> dict[str, list[Parameter]]:
    """The parameters of each kernel."""
    known = {}
    for name, number in re.findall(r"__(?:requires|assume)\(\s*(\w+)\s*==\s*(\w+)\s*\)", source):
        known[name] = _number(source, number)
    return {
        name: [
            Parameter(words, known.get(words.split()[-1].strip("*&")))
            for words in (word.strip() for word in text.split(","))
            if words
        ]
        for name, text in _KERNEL.findall(source)
    }


def _number(source: str, word: str) -> int | None:
    """A literal, or a macro that is one."""
    defined = re.search(rf"#define\s+{word}\s+\(?(\d+)\)?\s*$", source, re.M)
    return int(defined[1]) if defined else int(word) if word.isdecimal() else None


def arguments(parameters: str, value: int, signature: Sequence[Parameter]) -> list[Argument]:
    """An array for each pointer; for each integer what it has to be, or `value`."""
    result: list[Argument] = []
    arrays = (f"array{number}" for number in range(100))
    parts = [part.strip() for part in parameters.split(",") if part.strip()]
    for parameter, own in itertools.zip_longest(
        parts, signature[: len(parts)], fillvalue=Parameter()
    ):
        match = _PARAMETER.search(parameter)
        if match is None:
            raise RuntimeError(f"a parameter that is not understood: {parameter}")
        if match["pointer"] or (match["type"] == "u64" and not match["size"] and own.points):
            result.append(Pointer(array=next(arrays)))
        elif match["size"]:
            result.append(_struct(int(match["size"]), match["align"] == "8", arrays))
        else:
            known = own.required
            result.append(_scalar(match["type"], value if known is None else known))
    return result


def _scalar(of: str, value: int) -> Scalar:
    kind = _SCALARS.get(of, "s32")
    narrow = value % 128 if kind == "s8" else value
    return Scalar(type=kind, value=float(value) if kind[0] == "f" else narrow)


def _struct(length: int, aligned: bool, arrays: Iterator[str]) -> StructValue:
    """Every eight bytes of one that is aligned to them are taken for a pointer."""
    offsets = range(0, length - 7, 8) if aligned else ()
    fields = tuple(Field(offset=at, value=Pointer(array=next(arrays))) for at in offsets)
    return StructValue(size=length, fields=fields)


def _names(given: Sequence[Argument]) -> Iterator[str]:
    for argument in given:
        if isinstance(argument, Pointer):
            yield argument.array
        elif isinstance(argument, StructValue):
            yield from _names([field.value for field in argument.fields])


def launches(source: str, text: str, most: int) -> Iterator[Launch]:
    """Of each kernel with each value, those that differ."""
    head = "\n".join(source.splitlines()[:3])
    grid, block = size(head, "gridDim", GRID), size(head, "blockDim", most)
    hints = sorted({int(n) for n in re.findall(r"==\s*(\d{1,6})\b", source)} - set(CHOICES))
    known, seen = signatures(source), set[Launch]()
    for value in (*CHOICES, *hints[:HINTS]):
        number = int(np.prod(grid) * np.prod(block)) if isinstance(value, str) else value
        for entry, parameters in _ENTRY.findall(text):
            given = tuple(arguments(parameters, number, known.get(plain_name(entry), ())))
            launch = Launch(entry=entry, grid=grid, block=block, arguments=given)
            if launch not in seen:
                seen.add(launch)
                yield launch


def judge(source: Path, nvcc: Path, library: str, options: Mapping[str, int]) -> Verdict:
    if library and not compiled.is_loaded():
        compiled.load(Path(library))
    words = source.read_text(errors="replace")
    match = _HEADER.match(words)
    verdict = Verdict(
        name=name_of(source),
        expected=match[1].lower() if match else "pass",
        outcome="refused",
    )
    try:
        seen = execute(words, ptx_of(source, nvcc), options)
    except (RuntimeError, UserError) as error:
        return msgspec.structs.replace(verdict, why=str(error)[:160])
    unjudged = unjudged_of(words)
    names = {finding.split()[0] for finding in seen.findings}
    outcome = "long" if seen.late else "clean" if seen.met else "unmet"
    if names:
        outcome = "found" if names - unjudged else "beside"
    return msgspec.structs.replace(verdict, outcome=outcome, findings=tuple(sorted(seen.findings)))


def execute(source: str, text: str, options: Mapping[str, int]) -> Executions:
    """Each launch under the schedules, until something is found that GPUVerify looks for."""
    seen, module = Executions(), warpsim.load(text)
    end = time.process_time() + options["time"]
    for launch in launches(source, text, options["block"]):
        for schedule in first_schedules(options["schedules"]):
            if time.process_time() > end:
                seen.late = not seen.findings
                return seen
            findings = run(module, launch, schedule)
            if "trap" in findings:
                break
            seen.met = True
            seen.findings |= findings
        if {finding.split()[0] for finding in seen.findings} - unjudged_of(source):
            break
    return seen


def run(module: warpsim.Module, launch: Launch, schedule: warpsim.Schedule) -> set[str]:
    """`NAME line N` of each finding; `trap` of a precondition that was not met."""
    random = np.random.default_rng(0)
    arrays = {
        name: random.integers(0, 100, BYTES // 4, np.int32) for name in _names(launch.arguments)
    }
    result = warpsim.run(module, launch, arrays, schedule=schedule, limit=100_000)
    return {
        "trap"
        if finding.name == "trap"
        else f"{finding.name} line {finding.source.line if finding.source else 0}"
        for finding in result.findings
    }


def show(verdicts: Sequence[Verdict], markdown: bool) -> None:
    rows = [("expected", "tests", *OUTCOMES)]
    for kind in sorted({verdict.expected for verdict in verdicts}):
        counts = Counter(verdict.outcome for verdict in verdicts if verdict.expected == kind)
        numbers = (str(counts[outcome]) for outcome in OUTCOMES)
        rows.append((kind, str(counts.total()), *numbers))
    for number, row in enumerate(rows):
        plain = f"{row[0]:26}" + "".join(f"{cell:>9}" for cell in row[1:])
        print("| " + " | ".join(row) + " |" if markdown else plain)
        if markdown and not number:
            print("|---" * len(row) + "|")
    for verdict in verdicts:
        if verdict.surprises or verdict.outcome not in ("clean", "found"):
            words = "; ".join(verdict.findings) + verdict.why
            print(f"{verdict.name}: {verdict.expected}, {verdict.outcome} {words}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="words in the names of tests")
    parser.add_argument("--schedules", type=int, default=3)
    parser.add_argument("--time", type=int, default=10, metavar="S")
    parser.add_argument("--block", type=int, default=256, help="threads of a block at most")
    parser.add_argument("--results", type=Path, help="keeps what is known; not done again")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("-n", type=int, default=2, metavar="PROCESSES")
    options = parser.parse_args()
    nvcc = toolchain.find(None, Path.cwd() / ".kernelexp").nvcc
    chosen = [path for path in sources(options.folder.resolve()) if options.only in str(path)]
    limits = {name: getattr(options, name) for name in ("schedules", "time", "block")}
    library, kept = native.library(Path.cwd()), options.results or Path(os.devnull)
    lines = kept.read_bytes().splitlines() if kept.exists() else []
    known = {
        item.name: item for item in (msgspec.json.decode(line, type=Verdict) for line in lines)
    }
    with concurrent.futures.ProcessPoolExecutor(options.n) as pool:
        futures = [
            pool.submit(judge, path, nvcc, library, limits)
            for path in chosen
            if name_of(path) not in known
        ]
        for future in concurrent.futures.as_completed(futures):
            verdict = known[future.result().name] = future.result()
            with kept.open("ab") as file:
                file.write(msgspec.json.encode(verdict) + b"\n")
    show([known[name] for name in map(name_of, chosen)], options.markdown)


if __name__ == "__main__":
    main()
