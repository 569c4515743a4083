"""The SASS instructions that are executed, by area: importing this fills the table."""

from __future__ import annotations

from kernelexp.emulator.sass.isa import (
    atomics,
    barrier,
    bits,
    control,
    conversion,
    double,
    floating,
    half,
    integer,
    matrix,
    memory,
    special,
    warp,
)

__all__ = [
    "atomics",
    "barrier",
    "bits",
    "control",
    "conversion",
    "double",
    "floating",
    "half",
    "integer",
    "matrix",
    "memory",
    "special",
    "warp",
]
