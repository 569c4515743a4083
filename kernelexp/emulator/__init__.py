"""PTX or SASS executed on the CPU: is the result right, can the protocol finish, what is counted.

    program = load(ptx)                          # UnsupportedInstruction for what is not covered
    program = load_cubin(cubin, listing)         # the same of what ptxas made
    result = run(program, launch, arrays, schedule=Schedule(seed=1, asynchrony="late"))
    result.findings, result.counters, result.hang

Knows nothing of experiments: it takes code, a launch, arrays. The arrays are written in place.
"""

from __future__ import annotations

from kernelexp.emulator.compiled import load as load_compiled
from kernelexp.emulator.execute import (
    Comparison,
    Module,
    Result,
    compare,
    load,
    load_cubin,
    run,
    run_each,
)
from kernelexp.emulator.machine.counters import Counters, add_up
from kernelexp.emulator.machine.execution import Printed
from kernelexp.emulator.machine.findings import Finding
from kernelexp.emulator.machine.hangs import Waiter, describe_hang
from kernelexp.emulator.machine.site import UnsupportedInstruction
from kernelexp.emulator.ptx.faults import PtxSyntaxError
from kernelexp.emulator.sass.faults import CubinError, SassSyntaxError
from kernelexp.schedule import Schedule

REFUSALS = (UnsupportedInstruction, PtxSyntaxError, CubinError, SassSyntaxError)
"""What code that cannot be executed raises when it is loaded."""

__all__ = [
    "REFUSALS",
    "Comparison",
    "Counters",
    "CubinError",
    "Finding",
    "Module",
    "Printed",
    "PtxSyntaxError",
    "Result",
    "SassSyntaxError",
    "Schedule",
    "UnsupportedInstruction",
    "Waiter",
    "add_up",
    "compare",
    "describe_hang",
    "load",
    "load_compiled",
    "load_cubin",
    "run",
    "run_each",
]
