"""PTX executed on the CPU: is the result right, can the protocol finish, what would be counted.

    program = load(ptx)                          # UnsupportedInstruction for what is not covered
    result = run(program, launch, arrays, schedule=Schedule(seed=1, asynchrony="late"))
    result.findings, result.counters, result.hang

Knows nothing of experiments: it takes PTX, a launch, arrays. The arrays are written in place.
"""

from __future__ import annotations

import os

# Matrices here are of 128 x 32: OpenBLAS gains nothing from a second thread on them, and where both
# cores are busy its threads wait for each other (6 tiles of patch_embed_gemm on 2 busy cores: 2.5 s
# against 0.6 s). NumPy reads this when it is imported first.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from kernelexp.emulator.counters import Counters
from kernelexp.emulator.execute import Comparison, Module, Result, Schedule, compare, load, run
from kernelexp.emulator.findings import Finding
from kernelexp.emulator.ptx.faults import PtxSyntaxError, UnsupportedInstruction
from kernelexp.emulator.scheduler import Waiter

__all__ = [
    "Comparison",
    "Counters",
    "Finding",
    "Module",
    "PtxSyntaxError",
    "Result",
    "Schedule",
    "UnsupportedInstruction",
    "Waiter",
    "compare",
    "load",
    "run",
]
