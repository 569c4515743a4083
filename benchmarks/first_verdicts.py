"""How long ten published programs take from their folder to a first verdict about two block sizes.

    python benchmarks/first_verdicts.py HECBENCH RODINIA [--only NAME ...]

The two are checkouts. Each program has a new, empty project, in which two commands are executed:
adopt --from-program, with another block size, and run --modelled. Prints a row for each: seconds by
the clock and of CPU time, and what it says of the other block size.
"""

from __future__ import annotations

import argparse
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import made_inputs


class Adopted(NamedTuple):
    """One program: its source, how it is started, its kernel, and the other block size."""

    source: str
    words: str
    kernel: str
    axis: str


PROGRAMS = {
    "background-subtract": Adopted(
        "src/background-subtract-cuda/main.cu", "256 128 1 5", "merge", "BLOCK_SIZE=128"
    ),
    "damage": Adopted("src/damage-cuda/main.cu", "65536 1", "damage_of_node", "BLOCK_SIZE=128"),
    "inversek2j": Adopted(
        "src/inversek2j-cuda/main.cu",
        "{hecbench}/src/inversek2j-sycl/coord_in.txt 1",
        *("invkin_kernel", "BLOCK_SIZE=256"),
    ),
    "murmurhash3": Adopted(
        "src/murmurhash3-cuda/murmurhash3.cu",
        *("4096 1", "MurmurHash3_x64_128_kernel", "BLOCK_SIZE=128"),
    ),
    "popcount": Adopted("src/popcount-cuda/main.cu", "65536 1", "pc1", "BLOCK_SIZE=128"),
    "remap": Adopted("src/remap-cuda/main.cu", "20000 1", "remap_kernel", "NUM_THREADS=128"),
    "softmax": Adopted("src/softmax-cuda/main.cu", "2048 64 0 1", "softMax", "BLOCK_SIZE=128"),
    "stencil1d": Adopted(
        "src/stencil1d-cuda/stencil_1d.cu", "65536 1", "stencil_1d", "BLOCK_SIZE=128"
    ),
    "Rodinia's bfs": Adopted(
        "cuda/bfs/bfs.cu", "{rodinia}/data/made/graph.txt", "Kernel", "MAX_THREADS_PER_BLOCK=256"
    ),
    "Rodinia's hotspot3D": Adopted(
        "cuda/hotspot3D/3D.cu",
        "64 8 1 {rodinia}/data/made/power.txt {rodinia}/data/made/temperatures.txt out",
        *("hotspotOpt1", "block=32"),
    ),
}


class Timed(NamedTuple):
    """A command: what it printed, and its seconds."""

    output: str
    code: int
    wall_s: float
    cpu_s: float


def timed(words: list[str], folder: Path) -> Timed:
    """Executes a command of kernelexp; its CPU time is that of all its processes."""
    begun, before = time.monotonic(), _children_s()
    argv = [sys.executable, "-m", "kernelexp", *words]
    done = subprocess.run(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return Timed(done.stdout, done.returncode, time.monotonic() - begun, _children_s() - before)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def verdict(output: str) -> str:
    """Its last words about the candidate: measured, or modelled where there is no GPU."""
    words = " ".join(output.split())
    found = re.search(
        r"Modelled, not measured: .*?(?=[;.] )|Verdict: (?!UNMEASURED).*?(?=[.:] )", words
    )
    return found[0] if found else words[-160:]


def row(name: str, program: Adopted, hecbench: Path, rodinia: Path) -> str:
    root = rodinia if name.startswith("Rodinia") else hecbench
    given = program.words.format(hecbench=hecbench, rodinia=rodinia)
    text = f"{shlex.quote(str(root / program.source))} -- {given}"
    adopt = ["adopt", "--from-program", text, "--kernel", program.kernel, "--axis", program.axis]
    with tempfile.TemporaryDirectory() as place:
        timed(["init", "project", "--empty"], Path(place))
        first = timed(adopt, Path(place) / "project")
        if first.code not in (0, 4):
            said = f"adopt ends with {first.code}: {' '.join(first.output.split())[-160:]}"
            return f"| {name} | {program.kernel} | | {first.wall_s:.0f} | | | {said} |"
        second = timed(["run", "E1", "--modelled"], Path(place) / "project")
    sizes = re.search(r"^axis \w+: ([\d, ]+)", first.output, re.M)
    return (
        f"| {name} | {program.kernel} | {sizes[1].strip() if sizes else ''} "
        f"| {first.wall_s:.0f} | {second.wall_s:.0f} | {first.cpu_s + second.cpu_s:.0f} "
        f"| {verdict(second.output)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hecbench", type=Path)
    parser.add_argument("rodinia", type=Path)
    parser.add_argument("--only", nargs="*", default=list(PROGRAMS))
    options = parser.parse_args()
    made_inputs.make(options.rodinia / "data" / "made")
    print("| program | kernel | blocks | adopt, s | run, s | CPU, s | says |")
    print("|---|---|---|---:|---:|---:|---|")
    for name in options.only:
        folders = options.hecbench.resolve(), options.rodinia.resolve()
        print(row(name, PROGRAMS[name], *folders), flush=True)


if __name__ == "__main__":
    main()
