"""Runs the programs of a published suite on the emulator, and prints a table of all of them.

    python benchmarks/suites.py SUITE FOLDER [--time S] [--smallest] [--only NAME ...]
        [--per-kernel N] [--jobs N] [--results FILE] [--known] [--outputs FOLDER]
        [--markdown | --names | --reasons]

SUITE is hecbench, polybench, rodinia, samples or sanitizer, FOLDER a checkout of it; nothing is
fetched, and it is built in that folder. A program that takes more CPU time than --time is tried
with smaller arguments or sizes; those that each was run with are in the table. `right` is what the
program says of its own results. With --results, what is known of a program is kept in a file (JSON
lines) and not done again. With --outputs, so is what each prints, writes and copies from the
device, for on_card.py.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import re
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import made_inputs
import msgspec
import on_card

from kernelexp.evidence.programs import library
from kernelexp.model.errors import KernelexpError
from kernelexp.services import execution
from kernelexp.services.execution import ExecRequest, Executed
from kernelexp.system import toolchain
from kernelexp.system.toolchain import Toolchain
from warpsim.runtime.launching import Destroyed

MOST_WALL = 20
"""How many times its CPU time a program may last, on a machine that is shared."""
SIZES = Path(__file__).with_name("hecbench_sizes.txt")
SAMPLES_SIZES = Path(__file__).with_name("samples_sizes.txt")

_OF_A_SIZE = r"rate|norm|stat|bound|took|amount|message|after|threshold|of each|in distance|between"
_WRONG = re.compile(
    r"(?<!assertion )\bfail(?!ed as expected)|(?<!bytes )mismatch|incorrect|wrong"
    r"|non-matching.*: [1-9]"
    r"|\berrors\s*[:=]\s*[1-9]\d*\b(?![.e])"
    rf"|(?<!divergence )\berrors?\b(?!\s*(?:{_OF_A_SIZE}|ok\b|(?:=|:|is|\s)\s*[0-9]))",
    re.I,
)
_RIGHT = re.compile(
    r"\bpass|success|correct|verified|\bok\b|\(valid\)|\bresults? match|non-matching.*: 0\b"
    r"|(?:error|rmse|difference)\b(?! took)[^\d\n]*[:=\s]\s*0(?:\.0*(?:e[+-]?00)?)?(?![\w.])",
    re.I,
)
_ONLY_ERRORS = {
    "blas-gemmBatched",
    "blas-gemmStridedBatched",
    "bsearch",
    "collision",
    "extend2",
    "extrema",
}
"""Programs of HeCBench that compare their results and print only what is wrong."""
_DATA = re.compile(
    r"(?:could not|cannot|can't|unable to|fail\w* to|error) (?:open|import|read\w*|find|load)"
    r"|no such file|could not find",
    re.I,
)
_NONE = re.compile(
    r"(?:non-matching|number of (?:misses|failures|incorrect \w+)).*: 0\b"
    r"|(?<![0-9.,])0 (?:failure|error|mismatche?)s?\b|\bno (?:error|mismatche?)s?\b",
    re.I,
)
_RUN = re.compile(r"^run:.*\n(?:\t.*\n)*", re.M)
_SIGKILL = -9


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One way to build a program and to run it."""

    folder: str
    make: str
    """Empty: as it was built before."""
    argv: tuple[str, ...]
    sizes: str = ""
    """How its sizes differ from its authors'."""
    unwritten: int = 0xFF
    """The byte that device memory reads as before it is written."""
    destroys: Destroyed = "context"
    """What a bad access ends."""
    listed: bool = False
    """Its arguments or sizes are those of hecbench_sizes.txt."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One program of a suite."""

    name: str
    attempts: tuple[Attempt, ...]
    """The first as its authors run it, each later one quicker."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a program."""

    name: str
    outcome: str
    """right, wrong, silent (no verdict of its own), failed, data (it lacks a file), long, refused,
    unbuilt; unrun: not yet."""
    argv: tuple[str, ...] = ()
    sizes: str = ""
    findings: tuple[str, ...] = ()
    why: str = ""
    seconds: float = 0.0
    """Of CPU time, of the program and of what serves it."""
    thread_instructions: int = 0
    launches: int = 0
    on_card: str = ""
    """How what it did compares with the same file's runs on an H100: an outcome of on_card.py."""
    card_why: str = ""

    @property
    def seen(self) -> str:
        """Its outcome; as-on-card where it says nothing right and did what it does on the card."""
        compared = self.outcome in ("silent", "wrong") or (
            self.outcome == "failed" and self.launches > 0
        )
        same = compared and self.on_card in ("same", "near")
        return "as-on-card" if same else self.outcome


_MAKE_WORDS, _UNWRITTEN = "make ", "unwritten "
_MAKE = "make clean >/dev/null 2>&1; make ARCH=sm_90a EXTRA_CFLAGS=-DVERIFY"


def hecbench(root: Path) -> Iterator[Program]:
    sizes = _known_sizes(SIZES)
    made_inputs.make(root / "src" / "made")
    for top in sorted((root / "src").glob("*-cuda")):
        makefile = next((path for path in _makefiles(top)), None)
        if makefile is None:
            continue
        folder, name = makefile.parent, top.name.removesuffix("-cuda")
        argvs = list(smaller(_argv(makefile.read_text(errors="replace"))))
        attempts = [Attempt(folder=str(folder), make="", argv=argv) for argv in argvs]
        attempts[0] = msgspec.structs.replace(attempts[0], make=_MAKE)
        if name in sizes:
            attempts.append(_with_sizes(folder, sizes[name], attempts[-1].argv, _MAKE))
        yield Program(name=name, attempts=tuple(attempts))


def _copy_but(folder: Path, to: Path, texts: dict[str, str]) -> None:
    """Copies what a program is built from, with other texts in some files; those that are there
    already keep their time."""

    def left_out(place: str, names: list[str]) -> list[str]:
        paths = [Path(place) / name for name in names]
        built = {path.name for path in paths if path.suffix == ".o" or _is_program(path)}
        return [
            path.name
            for path in paths
            if path.name in built or str(path.relative_to(folder)) in texts
        ]

    shutil.copytree(folder, to, dirs_exist_ok=True, ignore_dangling_symlinks=True, ignore=left_out)
    for file, text in texts.items():
        path = to / file
        if not path.is_file() or path.read_text(errors="surrogateescape") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, errors="surrogateescape")


def _is_program(path: Path) -> bool:
    if not path.is_file() or not os.access(path, os.X_OK):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _makefiles(top: Path) -> Iterator[Path]:
    """Its own that runs the program, else that of a folder in it."""
    for pattern in ("", "*/", "*/*/"):
        for path in sorted(top.glob(f"{pattern}Makefile")):
            if re.search(r"^run *:.*\n\t.*\./", path.read_text(errors="replace"), re.M):
                yield path
    yield from (*top.glob("Makefile"), *top.glob("src/Makefile"))


def _known_sizes(path: Path) -> dict[str, list[list[str]]]:
    """What a file of sizes says of each program."""
    sizes: dict[str, list[list[str]]] = {}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            name, *change = line.split(" | ")
            sizes.setdefault(name, []).append(change)
    return sizes


def _with_sizes(
    folder: Path, changes: list[list[str]], argv: tuple[str, ...], make: str
) -> Attempt:
    """The program with other arguments, or a copy of it beside it with other sizes."""
    at, words, more = folder, argv, ""
    texts: dict[str, str] = {}
    unwritten = 0xFF
    for change in changes:
        if change[0].startswith(_UNWRITTEN):
            unwritten = int(change[0].removeprefix(_UNWRITTEN))
            continue
        if change[0].startswith(_MAKE_WORDS):
            more += change[0].removeprefix("make")
            continue
        if len(change) == 1:
            first = () if change[0].startswith("./") else argv[:1]
            words = (*first, *change[0].split())
            if argv[0] == "sh":
                words = ("sh", "-c", change[0])
            continue
        at = folder.with_name(f"{folder.name}-reduced")
        file, old, new = change
        if file not in texts:
            texts[file] = (folder / file).read_text(errors="surrogateescape")
        texts[file] = texts[file].replace(old, new)
    if at is not folder:
        _copy_but(folder, at, texts)
    edits = [change[2] for change in changes if len(change) > 1]
    edits += [] if unwritten == 0xFF else [f"fresh memory is {unwritten}"]
    return Attempt(
        folder=str(at),
        make="" if at is folder and not more else make + more,
        argv=words,
        sizes="; ".join(edits),
        unwritten=unwritten,
        listed=True,
    )


def _argv(makefile: str) -> tuple[str, ...]:
    """How `make run` starts the program."""
    makefile = makefile.replace("\\\n", " ")
    variables = dict(re.findall(r"^(\w+)[ \t]*[:?]?=[ \t]*(.*?)[ \t]*$", makefile, re.M))
    variables["LAUNCHER"] = ""
    section = _RUN.search(makefile)
    for line in section[0].splitlines()[1:] if section else []:
        for _ in variables:
            line = re.sub(r"\$\((\w+)\)", lambda match: variables.get(match[1], ""), line)
        words = line.lstrip("@-\t ").split()
        if words[:1] == ["cd"]:
            return ("sh", "-c", " ".join(words))
        if words and "/" in words[0]:
            return (f"./{Path(words[0])}", *words[1:])
    return (f"./{variables.get('program', variables.get('EXE', 'main'))}",)


# What CUDA 13 has under another name, or no more.
_RENAMED = (
    "-DcudaThreadSynchronize=cudaDeviceSynchronize -DcudaThreadExit=cudaDeviceReset "
    "-DdeviceOverlap=asyncEngineCount -DclockRate=multiProcessorCount"
)


def polybench(root: Path) -> Iterator[Program]:
    for makefile in sorted((root / "CUDA").glob("*/Makefile")):
        (source,) = makefile.parent.glob("*.cu")
        # One program calls a function of the suite that it does not include.
        text = source.read_text(errors="replace")
        clock = "-include ../../common/polybench.c" if _lacks_clock(text) else ""
        make = f"nvcc -O2 -arch=sm_90a {_RENAMED} {clock} {source.name} -o main"
        folders = {"": makefile.parent, **_reduced(makefile.parent)}
        yield Program(
            name=source.stem,
            attempts=tuple(
                Attempt(folder=str(folder), make=make, argv=("./main",), sizes=sizes)
                for sizes, folder in folders.items()
            ),
        )


def _lacks_clock(text: str) -> bool:
    return "rtclock()" in text and "common/polybench.h" not in text


_SIZE = re.compile(r"(#\s*define\s+(?:N[IJKLMPQRXY]?|M|TMAX|TSTEPS)\s+)([0-9]+)")
_LEAST = 32


def _reduced(folder: Path) -> dict[str, Path]:
    """Copies beside it, whose sizes are a part of its own."""
    copies = {}
    for factor in (4, 16):
        copy = folder.with_name(f"{folder.name}-reduced-{factor}")
        copy.mkdir(exist_ok=True)
        for path in folder.glob("*.cu*"):
            text = _SIZE.sub(
                lambda match, by=factor: f"{match[1]}{_divided(int(match[2]), by)}",
                path.read_text(errors="replace"),
            )
            made_inputs.write(copy / path.name, text.encode(errors="replace"))
        copies[f"sizes / {factor}"] = copy
    return copies


def _divided(size: int, factor: int) -> int:
    return max(size // factor, min(size, _LEAST))


_RODINIA = {
    # folder, sources, arguments that take no data
    "backprop": ("backprop", "backprop_cuda.cu backprop.c imagenet.c facetrain.c", "4096"),
    "bfs": ("bfs", "bfs.cu", "../../data/made/graph.txt"),
    "b+tree": (
        "b+tree",
        "main.c kernel/*wrapper*.cu util/*/*.c*",
        "file ../../data/made/whole.txt command ../../data/made/commands.txt",
    ),
    "cfd": (
        *("cfd", "euler3d.cu -I. -UclockRate -UdeviceOverlap {samples}"),
        "../../data/made/mesh.txt",
    ),
    "dwt2d": ("dwt2d", "*.cu dwt_cuda/*.cu -I.", "../made/large.bmp out -d 192x192 -f -5 -l 3"),
    "gaussian": ("gaussian", "gaussian.cu", "-s 64"),
    "heartwall": ("heartwall", "main.cu AVI/*.c -IAVI", "../../data/heartwall/test.avi 1"),
    "hotspot": (
        "hotspot",
        "hotspot.cu",
        "64 2 2 ../../data/made/temperatures.txt ../../data/made/power.txt out",
    ),
    "hotspot3D": (
        "hotspot3D",
        "3D.cu",
        "64 8 10 ../../data/made/power.txt ../../data/made/temperatures.txt out",
    ),
    "huffman": (
        *(
            "huffman",
            "main_test_cu.cu vlc_*.cu scan.cu pack_kernels.cu stats_logger.cpp cpuencode.cpp",
        ),
        "../../data/made/blocks.txt",
    ),
    "hybridsort": ("hybridsort", "main.cu bucketsort.cu mergesort.cu", "r"),
    "kmeans": ("kmeans", "*.cu cluster.c getopt.c kmeans.c rmse.c", "-o -i kdd_cup"),
    "lavaMD": ("lavaMD", "main.c kernel/*wrapper.cu util/*/*.c*", "-boxes1d 2"),
    "leukocyte": ("leukocyte/CUDA", "*.cu *.c", "../../../data/leukocyte/testfile.avi 1"),
    "lud": ("lud/cuda", "lud.cu lud_kernel.cu ../common/common.c -I../common", "-s 128 -v"),
    "mummergpu": ("mummergpu/src", "*.cu *.cpp", "NC_003997.fna"),
    "myocyte": ("myocyte", "main.cu", "10 1 0"),
    "nn": ("nn", "nn_cuda.cu", "../../data/made/rodinia.list -r 5 -lat 30 -lng 90"),
    "nw": ("nw", "needle.cu", "256 10"),
    "particlefilter_float": (
        *("particlefilter", "ex_particle_CUDA_float_seq.cu"),
        "-x 32 -y 32 -z 4 -np 256",
    ),
    "particlefilter_naive": (
        *("particlefilter", "ex_particle_CUDA_naive_seq.cu"),
        "-x 32 -y 32 -z 4 -np 256",
    ),
    "pathfinder": ("pathfinder", "pathfinder.cu", "2000 50 10"),
    "srad_v1": ("srad/srad_v1", "main.cu", "2 0.5 64 64"),
    "srad_v2": ("srad/srad_v2", "srad.cu", "64 64 0 31 0 31 0.5 2"),
    "streamcluster": (
        *("streamcluster", "streamcluster_cuda_cpu.cpp streamcluster_cuda.cu"),
        "10 20 16 512 512 50 none output.txt 1",
    ),
}


def rodinia(root: Path) -> Iterator[Program]:
    """Its inputs are not in its repository: made ones take their place. A header of cuda-samples is
    taken from a checkout of these beside it."""
    made_inputs.make(root / "data" / "made")
    (root / "data" / "dwt2d").mkdir(exist_ok=True)  # which it looks in
    samples = f"-I{root.parent / 'cuda-samples' / 'Common'}"
    for name, (folder, sources, words) in _RODINIA.items():
        sources = sources.replace("{samples}", samples)
        make = f"nvcc -O2 -w -arch=sm_90a {_RENAMED} {sources} -o {name}.out"
        attempt = Attempt(
            folder=str(root / "cuda" / folder), make=make, argv=(f"./{name}.out", *words.split())
        )
        yield Program(name=name, attempts=(attempt,))


_GRAPHICS = re.compile(r"OpenGL|GLUT|Vulkan|simpleD3D|EGL|NvSci|nvjpeg|CUDA::npp")
_TARGET = re.compile(r"add_executable\(\s*(\S+)\s+([^)]*)\)")
_LIBRARY = re.compile(r"CUDA::(cu\w+|nvrtc)")


def samples(root: Path) -> Iterator[Program]:
    """cuda-samples without graphics and images: what CMake would compile, in one call."""
    sizes = _known_sizes(SAMPLES_SIZES)
    for path in sorted((root / "Samples").glob("[0-6]*/*/CMakeLists.txt")):
        text = re.sub("#.*", "", path.read_text())
        target = _TARGET.search(text)
        if not target or _GRAPHICS.search(text) or path.parent.name.endswith("-reduced"):
            continue
        libraries = {name.replace("cuda_driver", "cuda") for name in _LIBRARY.findall(text)}
        options = " ".join(f"-l{name}" for name in sorted(libraries - {"cudart"}))
        made = "; ".join(_made_by_cmake(text))
        linked = "-rdc=true" if path.parent.name.startswith("cdp") else ""
        make = (
            f"{made}{'; ' if made else ''}"
            f"nvcc -O2 -w -std=c++17 -arch=sm_90a {linked} --extended-lambda -Xcompiler -fopenmp "
            f"-I../../../Common -Iinc {' '.join(target[2].split())} -o main {options}"
        )
        attempts = [Attempt(folder=str(path.parent), make=make, argv=("./main",))]
        if changes := sizes.get(path.parent.name):
            attempts.append(_with_sizes(path.parent, changes, ("./main",), make))
        yield Program(name=path.parent.name, attempts=tuple(attempts))


def _made_by_cmake(text: str) -> Iterator[str]:
    """Commands for the files beside a program that its CMakeLists.txt makes."""
    kernel = _KERNEL.search(text)
    if made := _IMAGE.search(text):
        assert kernel
        how = "-fatbin" if made[1] == "FATBIN" else "-ptx"
        yield f"nvcc {how} -arch=sm_90a -o {made[2]} {kernel[1]}"
    if "/cooperative_groups.h" in text:  # for NVRTC, which is given its text
        folders = (Path(flag.removeprefix("-I")) for flag in library.headers())
        name = "cooperative_groups"
        place = next(folder / name for folder in folders if (folder / name).is_dir())
        yield f"cp -r {place}.h {place} ."


_IMAGE = re.compile(r'set\(CUDA_(FATBIN|PTX)_FILE "\$\{CMAKE_CURRENT_BINARY_DIR\}/([^"]+)"')
_KERNEL = re.compile(r'set\(CUDA_KERNEL_SOURCE "\$\{CMAKE_CURRENT_SOURCE_DIR\}/([^"]+)"')


def sanitizer(root: Path) -> Iterator[Program]:
    for folder in sorted(root.iterdir()):
        for source in sorted(folder.glob("*.cu")) if folder.is_dir() else []:
            make = f"nvcc -arch=sm_90a {source.name} -o {source.stem}"
            attempt = Attempt(
                folder=str(folder), make=make, argv=(f"./{source.stem}",), destroys="kernel"
            )
            yield Program(name=f"{folder.name}/{source.stem}", attempts=(attempt,))


SUITES: dict[str, Callable[[Path], Iterator[Program]]] = {
    "hecbench": hecbench,
    "polybench": polybench,
    "rodinia": rodinia,
    "samples": samples,
    "sanitizer": sanitizer,
}


def smaller(argv: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Arguments as they are with one repetition, then ever smaller ones."""
    first, *given = argv
    numbers = [at for at, word in enumerate(given) if word.isdigit()]
    if not numbers:
        yield tuple(argv)
        return
    once = list(given)
    once[numbers[-1]] = "1" if int(given[numbers[-1]]) > 1 else given[numbers[-1]]
    yield (first, *once)
    last = once
    for factor in (16, 256, 4096):
        less = list(once)
        for at in numbers:
            if int(once[at]) > 16:
                less[at] = str(max(16, int(once[at]) // factor))
        if less != last:
            yield (first, *less)
        last = less


def smallest(program: Program) -> Program:
    """Its quickest attempt; where that was not chosen by hand and does not do, as its authors run
    it: sizes may have to fit each other."""
    first, last = program.attempts[0], program.attempts[-1]
    quick = msgspec.structs.replace(last, make=last.make or first.make)
    # Edited sizes may be below a CTA's: then the next larger ones.
    again = program.attempts[-2::-1] if last.sizes else (first,)
    again = () if quick == first or last.listed else again
    return msgspec.structs.replace(program, attempts=(quick, *again))


def run(
    program: Program,
    tools: Toolchain,
    root: Path,
    limit_s: float,
    wall_s: float,
    on: Collection[str] = ("long",),
    per_kernel: int = 0,
    outputs: Path | None = None,
) -> Row:
    """The first attempt whose outcome is none of `on`, or the last that ended."""
    last = Row(name=program.name, outcome="unbuilt")
    for attempt in program.attempts:
        request = ExecRequest(
            argv=("sh", "-c", 'exec "$0" "$@" 2>&1', *attempt.argv),
            folder=Path(attempt.folder),
            timeout_s=wall_s,
            limit=10**12,
            per_kernel=per_kernel,
            unwritten=attempt.unwritten,
            destroys=attempt.destroys,
        )
        kept = on_card.Kept(outputs / program.name) if outputs else None
        with tempfile.TemporaryFile() as output:
            try:
                if attempt.make:
                    build = msgspec.structs.replace(request, make=attempt.make, argv=("true",))
                    execution.execute(build, tools, root)
                begun = _children_s()
                if kept:
                    request = msgspec.structs.replace(request, environment=kept.begin())
                with _cpu_limit(limit_s, attempt.argv[0]):
                    executed = execution.execute(request, tools, root, output=output.fileno())
            except KernelexpError as error:
                return Row(name=program.name, outcome="unbuilt", why=_first_error(str(error)))
            output.seek(0)
            content = output.read()
        text = content.decode(errors="replace")
        if kept:
            unwritten = any("uninitialised" in mistake.name for mistake in executed.mistakes)
            folder = Path(attempt.folder)
            kept.end(folder, attempt.argv, executed.returncode, content, unwritten)
        executed = msgspec.structs.replace(executed, seconds=_children_s() - begun)
        row = _row(program.name, attempt, executed, text)
        if row.outcome not in on:
            return row if row.outcome != "long" or last.outcome == "unbuilt" else last
        last = row
    return last


def _children_s() -> float:
    """CPU time of the processes that this one has started and that are gone."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def _cpu_limit(limit_s: float, program: str) -> Iterator[None]:
    """Kills a program once it and what else this process has started use more CPU time."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            with contextlib.suppress(OSError):  # one has just ended
                children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
                if sum(_used_s(child) for child in children) > limit_s:
                    for child in children:
                        words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
                        if words[0] == program.encode():
                            os.kill(int(child), signal.SIGKILL)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _used_s(process: str) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


_ERROR = re.compile(r"(?:fatal )?error\s*:.*|No rule to make target.*|.*: not found|.*ran past.*")
_KEPT = 160


def _first_error(text: str) -> str:
    """What a build says first."""
    found = _ERROR.search(text)
    return " ".join((found[0] if found else text.strip()[-_KEPT:]).split())[:_KEPT]


def _lacks_data(folder: Path) -> bool:
    """Whether its data, or those of its twin, are named in the repository and kept elsewhere."""
    twins = folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*")
    return any(True for twin in twins for _ in twin.glob("*.dvc"))


def _row(name: str, attempt: Attempt, executed: Executed, text: str) -> Row:
    # "no error" behind a colon is what CUDA says of a call, and no verdict.
    why, text = executed.refused, _NONE.sub("correct", text.replace(": no error", ":"))
    if executed.refused:
        outcome = "refused"
    elif executed.returncode == _SIGKILL:
        outcome = "long"
    elif not executed.launches and (file := _DATA.search(text)):
        outcome, why = "data", _line(text, file)
    elif executed.returncode or _WRONG.search(text):
        result = _WRONG.search(text)
        why = f"exit {executed.returncode}: {_line(text, result)}"
        outcome = "wrong" if result else "failed"
        if not executed.launches and _lacks_data(Path(attempt.folder)):
            outcome = "data"
    else:
        outcome = "right" if _RIGHT.search(text) or name in _ONLY_ERRORS else "silent"
        why = "" if outcome == "right" else " ".join(text.split())[-_KEPT:]
        idle = not executed.launches and not executed.computed
        if idle and _has_kernels(Path(attempt.folder) / attempt.argv[0]):
            outcome, why = "failed", "it launched no kernel"
    return Row(
        name=name,
        outcome=outcome,
        argv=attempt.argv,
        sizes=attempt.sizes,
        findings=tuple(
            f"{finding.name} {finding.kernel} {finding.where}: {finding.sentence}"
            for finding in executed.findings
            # With COPIES_FREED, copies.cpp copies all memory that is freed.
            if not ("COPIES_FREED" in os.environ and finding.name == "uninitialised-copy")
        ),
        why=why,
        seconds=executed.seconds,
        thread_instructions=executed.thread_instructions,
        launches=executed.launches,
    )


def _has_kernels(program: Path) -> bool:
    """Whether a program is linked with any: some only copy."""
    return not program.is_file() or b"cudaLaunchKernel" in program.read_bytes()


def _line(text: str, found: re.Match[str] | None) -> str:
    """The line that was found, or the last."""
    at = found.start() if found else len(text.rstrip()) - 1
    first = text.rfind("\n", 0, max(at, 0)) + 1
    return " ".join(text[first:].split("\n", 1)[0].split())[:_KEPT]


def show(rows: Sequence[Row]) -> None:
    for row in rows:
        instructions = f"{row.thread_instructions / 1e6:,.1f} M"
        how = f"{shlex.join(row.argv)}  {row.sizes}  {row.why[:200]!r}"
        print(
            f"{row.name:28} {row.outcome:8} {row.seconds:6.1f} s {instructions:>12} "
            f"{len(row.findings):3} findings  {how}"
        )
    print(_counts(rows))


def _counts(rows: Sequence[Row]) -> str:
    outcomes = [row.seen for row in rows]
    counts = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in sorted(set(outcomes)))
    return f"{len(rows)} programs: {counts}"


def show_markdown(rows: Sequence[Row]) -> None:
    print("| program | run as | outcome | findings | launches | thread-instructions | time |")
    print("|---|---|---|---|---:|---:|---:|")
    for row in rows:
        words = [*row.argv[1:], f"({row.sizes})"] if row.sizes else row.argv[1:]
        findings = ", ".join(sorted({finding.partition(" ")[0] for finding in row.findings}))
        print(
            f"| {row.name} | {' '.join(words)} | {row.outcome} | {findings} | {row.launches:,} "
            f"| {row.thread_instructions / 1e6:,.1f} M | {row.seconds:.1f} s |"
        )
    print(f"\n{_counts(rows)}")


def show_reasons(rows: Sequence[Row]) -> None:
    print("| program | run as | outcome | what it or its build says | beside an H100 |")
    print("|---|---|---|---|---|")
    for row in rows:
        if row.outcome == "right" or (row.seen == "as-on-card" and row.outcome == "silent"):
            continue
        words = " ".join([*row.argv[1:], *([f"({row.sizes})"] if row.sizes else [])])
        why = row.why.replace("|", "\\|")
        card = " ".join([row.on_card, row.card_why]).strip().replace("|", "\\|")
        print(f"| {row.name} | {words[:_KEPT]} | {row.outcome} | {why} | {card[:_KEPT]} |")
    print(f"\n{_counts(rows)}")


def show_names(rows: Sequence[Row]) -> None:
    print("| outcome | programs |")
    print("|---|---|")
    for outcome in sorted({row.seen for row in rows}):
        names = [row.name for row in rows if row.seen == outcome]
        print(f"| {outcome} ({len(names)}) | {', '.join(names)} |")
    print(f"\n{_counts(rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time", type=float, default=120.0)
    parser.add_argument("--wall", type=float, help=f"seconds it may last; {MOST_WALL} * --time")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument(
        "--per-kernel", type=int, default=0, help="launches of each that are judged"
    )
    parser.add_argument("--jobs", type=int, default=1, help="programs at once")
    parser.add_argument("--smallest", action="store_true", help="only at its smallest sizes")
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    parser.add_argument("--names", action="store_true", help="names by outcome, as Markdown")
    parser.add_argument("--reasons", action="store_true", help="those not right, as Markdown")
    parser.add_argument("--known", action="store_true", help="run nothing: show --results")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--outputs", type=Path, help="keep what each prints and copies there")
    options = parser.parse_args()
    root = Path.cwd()
    tools = toolchain.find(None, root / ".kernelexp")
    lines = (
        options.results.read_bytes().splitlines()
        if options.results and (options.results.exists())
        else []
    )
    rows = {row.name: row for row in (msgspec.json.decode(line, type=Row) for line in lines)}
    known = {name for name, row in rows.items() if row.outcome != "unrun"}
    every = () if options.known else SUITES[options.suite](options.folder.resolve())
    programs = [
        smallest(program) if options.smallest else program
        for program in every
        if (program.name in options.only if options.only else program.name not in known)
    ]
    on = ("wrong", "failed") if options.smallest else ("long",)
    outputs = options.outputs and options.outputs.resolve()
    todo = functools.partial(
        run,
        tools=tools,
        root=root,
        limit_s=options.time,
        wall_s=options.wall or MOST_WALL * options.time,
        on=on,
        per_kernel=options.per_kernel,
        outputs=outputs,
    )
    with ProcessPoolExecutor(options.jobs) as pool:
        for done in as_completed([pool.submit(todo, program) for program in programs]):
            row = done.result()
            rows[row.name] = row
            print(f"{row.name}: {row.outcome} {row.why[:100]}", file=sys.stderr, flush=True)
            if options.results:
                with options.results.open("ab") as file:
                    file.write(msgspec.json.encode(row) + b"\n")
    how = show_markdown if options.markdown else show
    how = show_names if options.names else show_reasons if options.reasons else how
    how([rows[name] for name in sorted(rows)])


if __name__ == "__main__":
    main()
