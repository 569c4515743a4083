"""Runs the CUDA tests of GPUVerify on the emulator: what it finds of those that are to fail.

    python benchmarks/gpuverify.py FOLDER [--only WORD] [--schedules N] [--markdown]

FOLDER is a checkout of mc-imperial/gpuverify; nothing is fetched or changed there. GPUVerify proves
that a kernel has no race, divergent barrier or failed assertion, whatever its arguments; here each
kernel is executed with a few. A precondition that they do not meet excludes them; assertions are
checked; loop invariants and the like, which are steps of a proof, are left out. Grids are cut to
16 CTAs, blocks to 1,024 threads.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

import warpsim
from kernelexp.system import toolchain
from warpsim.execute import first_schedules
from warpsim.launch import Argument, Launch, Pointer, Scalar, StructValue

SHIM = """
#pragma once
#include <cassert>
#include <climits>
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>
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
_HEADER = re.compile(r"^//\s*(pass|xfail:\w+)", re.I)
_ENTRY = re.compile(r"\.entry (\w+)\s*\((.*?)\)", re.S)
_PARAMETER = re.compile(r"\.param (?:\.align \d+ )?\.(\w+)((?: \.ptr)?)[^,]*?(\w+)(?:\[(\d+)\])?$")
_SIZE = re.compile(r"--(blockDim|gridDim)=\[?([0-9,]+)\]?")
_BYTES = 1 << 20
"""Of each array."""
CHOICES = ("threads", 0, 1, 2, 3, 16, 64, 1000)
"""Values of integer arguments; threads: as many as the grid has."""
HINTS = 4
"""Constants of a source that are tried too."""
UNJUDGED = {"out-of-bounds", "uninitialised-read"}
"""What GPUVerify does not look for."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One test, and what came of it."""

    name: str
    expected: str
    """pass, or xfail: and how GPUVerify is to fail."""
    outcome: str
    """clean, found, beside (only what GPUVerify does not look for), unmet, refused."""
    findings: tuple[str, ...] = ()
    why: str = ""


def sources(folder: Path) -> Iterator[Path]:
    yield from sorted((folder / "testsuite" / "CUDA").glob("**/*.cu"))


def compiled(source: Path, nvcc: Path) -> str:
    """Its PTX; RuntimeError with nvcc's words where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        shim, out = Path(folder) / "gpuverify.cuh", Path(folder) / "k.ptx"
        shim.write_text(SHIM)
        flags = ["-ptx", "-G", "-w", "-std=c++17", "-rdc=true", "-arch=compute_90"]
        command = [str(nvcc), *flags, "-include", str(shim), str(source), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            raise RuntimeError((errors or ["nvcc failed"])[0].split("error", 1)[-1].strip(": "))
        return out.read_text()


def size(text: str, name: str, most: int) -> tuple[int, int, int]:
    """Of the grid or of a block, from the test's second line, cut to `most`."""
    given = dict(_SIZE.findall(text)).get(name, "1")
    numbers = [int(number) for number in given.split(",") if number]
    x, y, z = (*numbers, 1, 1, 1)[:3]
    while x * y * z > most:
        x, y, z = (max(x // 2, 1), y, z) if x > 1 else (x, max(y // 2, 1), max(z // 2, 1))
    return x, y, z


def arguments(parameters: str, value: int) -> tuple[list[Argument], int]:
    """An array for each pointer, `value` for each integer; and how many arrays there are."""
    given: list[Argument] = []
    arrays = 0
    for each in (part.strip() for part in parameters.split(",") if part.strip()):
        match = _PARAMETER.search(each)
        if match is None:
            raise RuntimeError(f"a parameter that is not understood: {each}")
        kind, pointer, _, length = match.groups()
        if pointer:
            given.append(Pointer(array=f"array{arrays}"))
            arrays += 1
        elif length:
            given.append(StructValue(size=int(length), fields=()))
        else:
            scalar = {"u64": "int64", "u32": "int32", "u16": "int16", "u8": "int8"}
            name = scalar.get(kind, {"f32": "float32", "f64": "float64"}.get(kind, "int32"))
            given.append(Scalar(type=name, value=value if "int" in name else float(value)))
    return given, arrays


def launches(source: Path, text: str, value: int | str) -> Iterator[tuple[Launch, int]]:
    """A launch of each kernel, and its arrays."""
    head = "\n".join(source.read_text(errors="replace").splitlines()[:3])
    grid, block = size(head, "gridDim", 16), size(head, "blockDim", 1024)
    number = int(np.prod(grid) * np.prod(block)) if value == "threads" else int(value)
    for entry, parameters in _ENTRY.findall(text):
        given, arrays = arguments(parameters, number)
        yield Launch(entry=entry, grid=grid, block=block, arguments=tuple(given)), arrays


def judge(source: Path, nvcc: Path, schedules: int) -> Verdict:
    name = str(source.parent).partition("testsuite/CUDA/")[2]
    first = source.read_text(errors="replace").splitlines()[0]
    match = _HEADER.match(first)
    expected = match[1].lower() if match else "pass"
    verdict = Verdict(name=name, expected=expected, outcome="refused")
    try:
        text = compiled(source, nvcc)
        module = warpsim.load(text)
        findings, met = findings_of(source, text, module, schedules)
    except (RuntimeError, warpsim.EmulatorError) as error:
        return msgspec.structs.replace(verdict, why=str(error)[:160])
    names = {finding.split()[0] for finding in findings}
    outcome = "clean" if met else "unmet"
    if names:
        outcome = "found" if names - UNJUDGED else "beside"
    return msgspec.structs.replace(verdict, outcome=outcome, findings=tuple(sorted(findings)))


def findings_of(
    source: Path, text: str, module: warpsim.Module, schedules: int
) -> tuple[set[str], bool]:
    """(what is reported of any kernel with any arguments, whether any met the preconditions)."""
    findings: set[str] = set()
    met = False
    constants = {
        int(n) for n in re.findall(r"==\s*(\d{1,6})\b", source.read_text(errors="replace"))
    }
    for value in (*CHOICES, *sorted(constants - set(CHOICES))[:HINTS]):
        for launch, arrays in launches(source, text, value):
            told = [run(module, launch, arrays, s) for s in first_schedules(schedules)]
            if any("trap" in names for names in told):
                continue
            met = True
            findings |= set().union(*told)
    return findings, met


def run(
    module: warpsim.Module, launch: Launch, arrays: int, schedule: warpsim.Schedule
) -> set[str]:
    random = np.random.default_rng(0)
    given = {f"array{i}": random.integers(0, 100, _BYTES // 4, np.int32) for i in range(arrays)}
    result = warpsim.run(module, launch, given, schedule=schedule, limit=2_000_000)
    return {
        f"{each.name} line {each.source.line if each.source else 0}"
        if each.name != "trap"
        else "trap"
        for each in result.findings
    }


def show(verdicts: Sequence[Verdict], markdown: bool) -> None:
    outcomes = ("found", "clean", "beside", "unmet", "refused")
    rows = [("expected", "tests", *outcomes)]
    for kind in sorted({each.expected for each in verdicts}):
        mine = [each.outcome for each in verdicts if each.expected == kind]
        rows.append((kind, str(len(mine)), *(str(mine.count(each)) for each in outcomes)))
    for number, row in enumerate(rows):
        print(
            "| " + " | ".join(row) + " |"
            if markdown
            else f"{row[0]:26}" + "".join(f"{c:>9}" for c in row[1:])
        )
        if markdown and not number:
            print("|---" * len(row) + "|")
    for each in verdicts:
        surprise = (each.expected == "pass") == (each.outcome == "found")
        if surprise or each.outcome not in ("clean", "found"):
            print(
                f"{each.name}: {each.expected}, {each.outcome} {'; '.join(each.findings)}{each.why}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--schedules", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    nvcc = toolchain.find(None, Path.cwd() / ".kernelexp").nvcc
    every = [source for source in sources(options.folder.resolve()) if options.only in str(source)]
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        futures = [pool.submit(judge, source, nvcc, options.schedules) for source in every]
        show([future.result() for future in futures], options.markdown)


if __name__ == "__main__":
    main()
