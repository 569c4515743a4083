"""Runs the kernels of Simulee's benchmark on the emulator: which of them it faults.

    python benchmarks/simulee.py FOLDER [--only WORD] [--schedules N] [--time S] [--markdown]

FOLDER is a checkout of shadowmydx/Simulee (Wu, Ouyang, Zhou, Zhang, Liu, Zhang, ICSE 2020), whose
.cu files have kernels of public projects, mostly cut out as they were before a fix; nothing is
fetched or changed there. Many lack a type, a macro or a constant of their project: those that
PRELUDE does not give are refused. Arguments are tried as benchmarks/gpuverify.py does it, which
has the options too. Each file is one line: what is reported of it.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import gpuverify

from kernelexp.evidence import native
from kernelexp.system import toolchain
from warpsim import compiled
from warpsim.errors import UserError

PRELUDE = """
#pragma once
#include <cfloat>
#include <cstdio>
#include <iostream>
typedef float float_type;
typedef float kernel_type;
#define Real float
"""
SHAPES = (
    "--blockDim=64 --gridDim=2",
    "--blockDim=256 --gridDim=2",
    "--blockDim=[32,4] --gridDim=2",
)
"""Of launches, the first that shows something."""


def kernels(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.glob("*/*.cu")):
        if "__global__" in path.read_text(errors="replace"):
            yield path


def outcome(path: Path, nvcc: Path, options: Mapping[str, int]) -> tuple[str, str]:
    """(found, clean, long or refused; what was reported, or why)"""
    text = re.sub(r"^#include\s*\".*\"", "", path.read_text(errors="replace"), flags=re.M)
    with tempfile.TemporaryDirectory() as own:
        source = Path(own) / "kernel.cu"
        source.write_text(f"//\n//\n{text}")
        try:
            ptx = gpuverify.ptx_of(source, nvcc, PRELUDE)
            late = False
            for shape in SHAPES:
                seen = gpuverify.execute(f"//\n// {shape}\n{text}", ptx, options)
                late = late or seen.late
                if seen.findings:
                    return "found", "; ".join(sorted(seen.findings))
        except (RuntimeError, UserError) as error:
            return "refused", str(error)[:100]
    return ("long" if late else "clean"), ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--schedules", type=int, default=3)
    parser.add_argument("--time", type=int, default=10, metavar="S")
    parser.add_argument("--block", type=int, default=256)
    options = parser.parse_args()
    nvcc = toolchain.find(None, Path.cwd() / ".kernelexp").nvcc
    compiled.load(Path(native.library(Path.cwd())))
    limits = {name: getattr(options, name) for name in ("schedules", "time", "block")}
    counts: Counter[str] = Counter()
    for path in kernels(options.folder.resolve()):
        name = str(path.relative_to(options.folder.resolve()))
        if options.only in name:
            what, why = outcome(path, nvcc, limits)
            counts[what] += 1
            print(f"{name:62} {what:8} {why}", flush=True)
    print(", ".join(f"{what} {count}" for what, count in counts.most_common()))


if __name__ == "__main__":
    main()
