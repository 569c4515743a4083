"""A launch's counts, emulated and as ncu counted them: what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kernelexp import emulator
from kernelexp.emulator import Module, Result, Schedule

from .golden import Counted
from .launches import Code, Made

_LATE = Schedule(seed=0, asynchrony="late")


def load(code: Code) -> Module:
    return emulator.load_cubin(code.cubin, code.listing)


def execute(module: Module, made: Made) -> Result:
    """Executes a launch on copies of its arrays."""
    arrays = {name: array.copy() for name, array in made.case.arrays.items()}
    return emulator.run(module, made.case.launch, arrays, schedule=_LATE)


def differences(result: Result, counted: Counted, metrics: tuple[str, ...]) -> dict[str, str]:
    """What is not equal, "emulated, ncu" by the metric or the opcode."""
    executed: Counter[str] = Counter()
    threads: Counter[str] = Counter()
    for count in result.counters.instructions:
        executed[count.instruction.opcode] += count.executed
        threads[count.instruction.opcode] += count.threads
    kernel = result.counters.kernel
    named = {name: value for name, value in kernel.items() if name in metrics}
    return (
        _apart("", named, {name: counted.figures.get(name, 0) for name in named})
        | _apart("executed ", executed, counted.executed)
        | _apart("threads ", threads, counted.threads)
    )


def _apart(what: str, mine: Mapping[str, int], ncu: Mapping[str, int]) -> dict[str, str]:
    return {
        f"{what}{name}": f"{mine.get(name, 0):,}, {ncu.get(name, 0):,}"
        for name in sorted({*mine, *ncu})
        if mine.get(name, 0) != ncu.get(name, 0)
    }
