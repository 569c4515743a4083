"""PTX executed on the CPU: is the result right, can the protocol finish, what would be counted.

    program = load(ptx)                          # UnsupportedInstruction for what is not covered
    result = run(program, launch, arrays, schedule=Schedule(seed=1, asynchrony="late"))
    result.findings, result.counters, result.hang

Knows nothing of experiments: it takes PTX, a launch, arrays. The arrays are written in place.
"""

from __future__ import annotations

from kernelexp.emulator.compiled import load as load_compiled
from kernelexp.emulator.execute import Comparison, Module, Result, compare, load, run, run_each
from kernelexp.emulator.machine.counters import Counters, add_up
from kernelexp.emulator.machine.execution import Printed
from kernelexp.emulator.machine.findings import Finding
from kernelexp.emulator.machine.hangs import Waiter
from kernelexp.emulator.machine.site import UnsupportedInstruction
from kernelexp.emulator.ptx.faults import PtxSyntaxError
from kernelexp.schedule import Schedule

__all__ = [
    "Comparison",
    "Counters",
    "Finding",
    "Module",
    "Printed",
    "PtxSyntaxError",
    "Result",
    "Schedule",
    "UnsupportedInstruction",
    "Waiter",
    "add_up",
    "compare",
    "load",
    "load_compiled",
    "run",
    "run_each",
]
