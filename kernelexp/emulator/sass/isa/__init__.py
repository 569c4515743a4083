"""The SASS instructions that are executed, by area: importing this fills the table."""

from __future__ import annotations

from kernelexp.emulator.sass.isa import (
    atomics,
    barrier,
    bits,
    bulk,
    control,
    conversion,
    double,
    floating,
    half,
    integer,
    matrix,
    mbarrier,
    memory,
    remote,
    special,
    tensor_copy,
    tensor_core,
    tensor_memory,
    warp,
    warpgroup,
)

__all__ = [
    "atomics",
    "barrier",
    "bits",
    "bulk",
    "control",
    "conversion",
    "double",
    "floating",
    "half",
    "integer",
    "matrix",
    "mbarrier",
    "memory",
    "remote",
    "special",
    "tensor_copy",
    "tensor_core",
    "tensor_memory",
    "warp",
    "warpgroup",
]
