"""A launch's counts, emulated and as ncu counted them: what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import warpsim as emulator
from warpsim import Module, Result, Schedule

from .golden import Counted
from .launches import Code, Made

_LATE = Schedule(seed=0, asynchrony="late")


def load(code: Code) -> Module:
    return emulator.load_cubin(code.cubin, code.listing)


def execute(module: Module, made: Made) -> Result:
    """Executes a launch on copies of its arrays."""
    arrays = {name: array.copy() for name, array in made.case.arrays.items()}
    return emulator.run(module, made.case.launch, arrays, schedule=_LATE)


def pairs(
    result: Result, counted: Counted, metrics: tuple[str, ...]
) -> Iterator[tuple[str, int, int]]:
    """(metric or opcode, emulated, ncu's) of everything that either has counted."""
    executed: Counter[str] = Counter()
    threads: Counter[str] = Counter()
    for count in result.counters.instructions:
        executed[count.instruction.opcode] += count.executed
        threads[count.instruction.opcode] += count.threads
    # Recorded over sub-partitions; over SMs, as ncu's own sections have it, the sum is the same.
    kernel = {
        name.replace("sm__inst_executed_pipe_", "smsp__inst_executed_pipe_"): value
        for name, value in result.counters.kernel.items()
    }
    yield from _both("", kernel, {m: counted.figures.get(m, 0) for m in metrics if m in kernel})
    yield from _both("executed ", executed, counted.executed)
    yield from _both("threads ", threads, counted.threads)


def _both(
    what: str, mine: Mapping[str, int], ncu: Mapping[str, int]
) -> Iterator[tuple[str, int, int]]:
    names = {*mine, *ncu} if what else ncu
    for name in sorted(names):
        yield f"{what}{name}", mine.get(name, 0), ncu.get(name, 0)
