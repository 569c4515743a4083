"""PTX or SASS executed on the CPU: is the result right, can the protocol finish, what is counted.

    program = load(ptx)                          # UnsupportedInstruction for what is not covered
    program = load_cubin(cubin, listing)         # SASS, as ptxas made it
    result = run(program, launch, arrays, schedule=Schedule(seed=1, asynchrony="late"))
    result.findings, result.counters, result.hang

Knows nothing of experiments: it takes code, a launch, arrays. The arrays are written in place.

Names are imported when first used: `warpsim.launch`, `warpsim.errors` and the tables cost a command
line nothing, the machine costs it NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsim.compiled import load as load_compiled
    from warpsim.execute import Result, ScheduleComparison, compare, run, run_each
    from warpsim.front.ptx.faults import PtxSyntaxError
    from warpsim.front.sass.faults import CubinError, SassSyntaxError
    from warpsim.machine.core.findings import Finding
    from warpsim.machine.core.site import UnsupportedInstruction
    from warpsim.machine.counts.counters import Counters, add_up
    from warpsim.machine.counts.patterns import AccessPattern, Patterns
    from warpsim.machine.memory.execution import Printed
    from warpsim.machine.schedule.hangs import Waiter, describe_hang
    from warpsim.modules import REFUSALS, Module, load, load_cubin
    from warpsim.schedule import Schedule

__all__ = [
    "REFUSALS",
    "AccessPattern",
    "Counters",
    "CubinError",
    "Finding",
    "Module",
    "Patterns",
    "Printed",
    "PtxSyntaxError",
    "Result",
    "SassSyntaxError",
    "Schedule",
    "ScheduleComparison",
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

_HOME = {
    "warpsim.execute": "Result ScheduleComparison compare run run_each",
    "warpsim.front.ptx.faults": "PtxSyntaxError",
    "warpsim.front.sass.faults": "CubinError SassSyntaxError",
    "warpsim.machine.core.findings": "Finding",
    "warpsim.machine.core.site": "UnsupportedInstruction",
    "warpsim.machine.counts.counters": "Counters add_up",
    "warpsim.machine.counts.patterns": "AccessPattern Patterns",
    "warpsim.machine.memory.execution": "Printed",
    "warpsim.machine.schedule.hangs": "Waiter describe_hang",
    "warpsim.modules": "REFUSALS Module load load_cubin",
    "warpsim.schedule": "Schedule",
}


def __getattr__(name: str) -> Any:
    if name == "load_compiled":
        return importlib.import_module("warpsim.compiled").load
    for module, names in _HOME.items():
        if name in names.split():
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'warpsim' has no attribute {name!r}")
