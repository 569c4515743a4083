"""Runs kernels of suites that have no programs around them, or do not build any more.

    python benchmarks/loose_kernels.py FOLDER [--only WORD] [--schedules N] [--time S]

FOLDER is a checkout of shadowmydx/Simulee (Wu, Ouyang, Zhou, Zhang, Liu, Zhang, ICSE 2020), whose
.cu files have kernels of public projects, mostly cut out as they were before a fix, or of
Geof23/Gklee (Li et al., PPoPP 2012); nothing is fetched or changed there. Those that lack a type, a
macro or a constant that PRELUDE does not give are refused. Arguments are tried as
benchmarks/gpuverify.py does it. Each file is one line: what is reported of it.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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
#define klee_make_symbolic(...) ((void)0)
#define klee_assume(...) ((void)0)
#define __modify_Grid(...) ((void)0)
#define __modify_Block(...) ((void)0)
"""
SHAPES = (
    "--blockDim=64 --gridDim=2",
    "--blockDim=256 --gridDim=2",
    "--blockDim=[32,4] --gridDim=2",
)
"""Of launches, the first that shows something."""


def kernels(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.cu")):
        if "__global__" in _words(path):
            yield path


def _words(path: Path) -> str:
    return path.read_text(errors="replace")


def _kept(folder: Path) -> Callable[[re.Match[str]], str]:
    """Leaves an include that the folder has, and takes others away."""
    return lambda match: match[0] if (folder / match[1]).exists() else ""


def outcome(path: Path, nvcc: Path, options: Mapping[str, int]) -> tuple[str, str]:
    """(found, beside: only what may follow from the arguments, clean, long or refused; what was
    reported, or why)"""
    text = re.sub(r"^\s*#\s*include\s*\"(.*)\"", _kept(path.parent), _words(path), flags=re.M)
    with tempfile.TemporaryDirectory() as own:
        source = Path(own) / "kernel.cu"
        source.write_text(f"//\n//\n{text}")
        try:
            ptx = gpuverify.ptx_of(source, nvcc, PRELUDE, [f"-I{path.parent}"])
            late = False
            for shape in SHAPES:
                seen = gpuverify.execute(f"//\n// {shape}\n{text}", ptx, options)
                names = {finding.split()[0] for finding in seen.findings}
                late = late or seen.late or "step-limit" in names
                if names := names - {"step-limit"}:
                    beside = names <= gpuverify.UNJUDGED
                    return "beside" if beside else "found", "; ".join(sorted(seen.findings))
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
