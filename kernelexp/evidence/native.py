"""The compiled part of the emulator, for the processor that it runs on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from kernelexp.evidence import hostcompiler
from kernelexp.evidence.hostcompiler import HostCompiler
from kernelexp.model.errors import EnvironmentFault
from warpsim import compiled

SOURCES = Path(compiled.__file__).parent
PROCESSOR = Path("/proc/cpuinfo")
_WHAT = "the emulator"
_TUNED = {"x86_64": ("-march=native", "-mprefer-vector-width=512")}
# None of them lets the compiler reorder or fuse additions.
FLAGS = (
    *("-O3", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
    *_TUNED.get(platform.machine(), ("-mcpu=native",)),
)


def library(root: Path) -> str:
    """Path of the library, empty where this machine can't make it: Python computes the same."""
    try:
        compiler = hostcompiler.find(_WHAT, FLAGS)
        name = f"{_key(compiler.program)}.so"
        return str(
            hostcompiler.library(root, name, _WHAT, lambda folder: _make(compiler, folder / name))
        )
    except EnvironmentFault:
        return ""


def _key(compiler: str) -> str:
    machine = (platform.machine(), _extensions(), os.confstr("CS_GNU_LIBC_VERSION"))
    files = (*sorted(SOURCES.glob("*.cpp")), *sorted(SOURCES.glob("*.hpp")), Path(compiler))
    return hostcompiler.digest(files, FLAGS, machine)


def _extensions() -> str:
    """The extensions of its instruction set that this processor has, as Linux lists them."""
    with PROCESSOR.open() as lines:  # of the first of them: Linux takes a while to list all
        return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _make(compiler: HostCompiler, path: Path) -> Path:
    hostcompiler.announce(_WHAT)
    objects = compiler.objects(sorted(SOURCES.glob("*.cpp")), path.parent)
    compiler.run("-shared", *objects.values(), "-o", str(path))
    return path
