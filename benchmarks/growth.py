"""How the emulator's time and memory grow with the work, and what a tiny launch costs.

    python benchmarks/growth.py [--sass] [--unjudged] [--processes N] [--only NAME ...]
                                [--against FOLDER]

Each row is one process with compiled code, one schedule and all checks: user time of the launch
alone (the best of three), and by how much the peak of the process's memory grew beyond its arrays.
Growth compares with the smallest size: time per thread-instruction, and the memory that each
further byte of array takes. With --against, another checkout's warpsim runs in turn with this
one's. --processes: that share a launch; the time is then that of the one that takes longest.
--unjudged: executed without checks and counts, as a program's launches are that nobody asked
about. Needs nvcc.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernelexp.system import toolchain

ROOT = Path(__file__).parents[1]
SOURCES = Path(__file__).with_name("growth.cu")
ROUNDS = 3
SIZES: Mapping[str, tuple[int, ...]] = {
    "tiny": (32,),
    "saxpy": (1 << 16, 1 << 20, 1 << 22),
    "transpose": (512, 1024, 2048),
    "sgemm": (128, 256, 384),
    "reduction": (1 << 16, 1 << 20),
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One launch."""

    seconds: float
    thread_instructions: int
    array_bytes: int
    peak_bytes: int
    """Beyond what the process had with its arrays, before the launch."""
    findings: int

    @property
    def rate(self) -> float:
        return self.thread_instructions / self.seconds

    def bytes_per_byte(self, smaller: Row) -> float:
        """Of memory per byte of array, the arrays included: what a larger size takes more."""
        more = self.array_bytes - smaller.array_bytes
        return 1 + (self.peak_bytes - smaller.peak_bytes) / more if more else 0.0


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(
    name: str, size: int, code: Path, listing: Path | None, library: str, how: Mapping[str, Any]
) -> Row:
    """In this process."""
    import warpsim
    from warpsim import compiled
    from warpsim.launch import Launch, Pointer, Scalar

    compiled.load(Path(library))
    if listing is None:
        module = warpsim.load(code.read_text())
    else:
        module = warpsim.load_cubin(code.read_bytes(), listing.read_text())
    rng = np.random.default_rng(1)
    square = (size // 32, size // 32, 1)
    count, grid, block = {
        "tiny": (size, (1, 1, 1), (32, 1, 1)),
        "saxpy": (size, (size // 256, 1, 1), (256, 1, 1)),
        "reduction": (size, (size // 256, 1, 1), (256, 1, 1)),
        "transpose": (size * size, square, (32, 8, 1)),
        "sgemm": (size * size, (size // 16, size // 16, 1), (16, 16, 1)),
    }[name]
    x = rng.standard_normal(count, np.float32)
    arrays = {"x": x, "y": x[::-1].copy()}
    unwritten = []
    if name not in ("saxpy", "tiny"):
        arrays["z"] = np.zeros(count // (256 if name == "reduction" else 1), np.float32)
        unwritten = ["z"]
    if name in ("transpose", "reduction"):
        del arrays["y"]
    pointers = [Pointer(array=array) for array in arrays]
    launch = Launch(
        entry="saxpy" if name == "tiny" else name,
        grid=grid,
        block=block,
        arguments=(*pointers, Scalar(type="s32", value=size)),
    )
    small = Launch(entry=launch.entry, grid=(1, 1, 1), block=block, arguments=launch.arguments)
    warpsim.run(module, small, {k: v[:4096].copy() for k, v in arrays.items()})
    before, seconds = _peak(), float("inf")
    peak = 0
    for _ in range(ROUNDS * (20 if name == "tiny" else 1)):
        begun = os.times()
        result = warpsim.run(module, launch, arrays, unwritten=unwritten, **how)
        ended = os.times()
        peak = peak or _peak() - before
        spent = ended.user + ended.system - begun.user - begun.system
        forks = ended.children_user + ended.children_system
        forks -= begun.children_user + begun.children_system
        spent = max(spent, forks / max(1, how["processes"] - 1))
        seconds = min(seconds, spent if name != "tiny" else result.seconds)
    return Row(
        seconds=seconds,
        thread_instructions=result.thread_instructions,
        array_bytes=sum(array.nbytes for array in arrays.values()),
        peak_bytes=peak,
        findings=len(result.findings),
    )


def measured(folder: Path, name: str, size: int, *files: str) -> Row:
    """In a process of its own, by the warpsim of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    argv = [sys.executable, __file__, "--row", name, str(size), *files]
    done = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(done.stdout, type=Row)


def libraries(folders: list[Path]) -> list[str]:
    """Each checkout's compiled code."""
    program = (
        "from kernelexp.evidence import native; import pathlib;"
        "print(native.library(pathlib.Path('.').resolve()))"
    )
    paths = []
    for folder in folders:
        argv = [sys.executable, "-c", program]
        environment = os.environ | {"PYTHONPATH": str(folder)}
        done = subprocess.run(
            argv, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True, text=True
        )
        paths.append(done.stdout.strip())
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--sass", action="store_true", help="execute what ptxas makes of them")
    parser.add_argument("--unjudged", action="store_true", help="without checks and counts")
    parser.add_argument("--processes", type=int, default=1, help="that share a launch")
    parser.add_argument("--only", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another checkout")
    given = parser.parse_args()
    if given.row:
        name, size, code, listing, library, how = given.row
        how = json.loads(how)
        row = measure(name, int(size), Path(code), Path(listing) if listing else None, library, how)
        sys.stdout.buffer.write(msgspec.json.encode(row))
        return
    folders = [ROOT, *([given.against.resolve()] if given.against else [])]
    result = libraries(folders)
    with tempfile.TemporaryDirectory() as scratch:
        code, listing = f"{scratch}/k.{'cubin' if given.sass else 'ptx'}", ""
        chosen = json.dumps({"judged": not given.unjudged, "processes": given.processes})
        how = "-cubin" if given.sass else "-ptx"
        tools = toolchain.find(None, Path(scratch))
        argv = [str(tools.nvcc), how, "-arch=sm_90a", str(SOURCES), "-o", code]
        subprocess.run(argv, check=True)
        if given.sass:
            listing = f"{scratch}/k.sass"
            with open(listing, "wb") as to:
                subprocess.run([str(tools.cuobjdump), "-sass", code], stdout=to, check=True)
        for name in given.only:
            firsts: list[Row] = []
            for size in SIZES[name]:
                rows = [
                    measured(folder, name, size, code, listing, library, chosen)
                    for folder, library in zip(folders, result, strict=True)
                ]
                firsts = firsts or rows
                print(f"{name:10} {size:8}", *map(show, rows, firsts), sep="  |  ", flush=True)


def show(row: Row, first: Row) -> str:
    growth = first.rate / row.rate
    fault = f" {row.findings} FINDINGS" if row.findings else ""
    return (
        f"{row.seconds * 1000:9.2f} ms {row.rate / 1e6:7.1f} M/s  {growth:5.2f} x linear"
        f" {row.peak_bytes / 1e6:6.0f} MB {row.bytes_per_byte(first):6.1f} bytes/byte{fault}"
    )


if __name__ == "__main__":
    main()
