"""A launch in parts on several cores: waves of CTAs in forks, where they keep out of each other's
memory.

Each fork executes its waves on memory of its own. Where no part has written what another one has
read or written, as their histories tell, its writes and counts are taken over, and everything is
as if one process had executed all waves. Otherwise, and where a fork has found anything, what it
did is dropped: this process executes those waves too.

A launch that is not judged has no history: its parts share the memory, as CTAs do on a GPU.
"""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Sequence

import msgspec
import numpy as np

from warpsim.machine.core.arrays import Array, touched_pages
from warpsim.machine.core.clocks import TIME
from warpsim.machine.core.findings import Findings
from warpsim.machine.counts.counters import ExecutionCounts
from warpsim.machine.counts.tally import Tally
from warpsim.machine.memory.execution import Execution, Printed
from warpsim.machine.memory.history import PAGE, History
from warpsim.machine.schedule.hangs import Waiter
from warpsim.machine.schedule.program import DecodedProgram

PATIENCE_S = 0.05
"""How long a launch is executed by one process: forks take 10 ms and more."""


_BLOCK = 1 << PAGE
"""Units that are looked at together, if any of them may have been touched."""


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """Units of global memory that some waves have written and read."""

    blocks: Array
    """Those with such a unit, ascending."""
    bits: Array
    """uint8 [2, blocks, units / 8]: which were written, which were read."""

    @property
    def written(self) -> Array:
        """Numbers of units."""
        return self._units(0)

    @property
    def read(self) -> Array:
        return self._units(1)

    def _units(self, kind: int) -> Array:
        block, unit = np.nonzero(np.unpackbits(self.bits[kind], axis=1))
        units: Array = self.blocks[block] * _BLOCK + unit
        return units

    def meets(self, other: Touched) -> bool:
        """Whether one has written what the other has written or read."""
        _, mine, others = np.intersect1d(self.blocks, other.blocks, True, return_indices=True)
        (written, read), (wrote, has_read) = self.bits[:, mine], other.bits[:, others]
        return bool((written & (wrote | has_read)).any() or (read & wrote).any())


def touched(history: History, since: int) -> Touched:
    """From a time on."""
    rows = [(0, history.written), *((1, history.read[c]) for c in history.used.tolist())]
    looked_at = history.pages.copy()
    for _, epochs in rows[1:]:
        looked_at |= _in_use(epochs)
    blocks = np.flatnonzero(looked_at)
    bits = np.zeros((2, len(blocks), _BLOCK), bool)
    for number, block in enumerate(blocks.tolist()):
        units = slice(block * _BLOCK, (block + 1) * _BLOCK)
        for kind, epochs in rows:
            some = epochs[units]
            bits[kind, number, : len(some)] |= some >= since << TIME
    some_bit = bits.any(axis=(0, 2))
    return Touched(blocks=blocks[some_bit], bits=np.packbits(bits[:, some_bit], axis=2))


def _in_use(epochs: Array) -> Array:
    """Blocks of a row of the history that may hold anything but zeros."""
    result = np.zeros(len(epochs) // _BLOCK + 1, bool)
    pages, count = touched_pages(epochs), -(-len(epochs) // _BLOCK)
    edges = epochs.ctypes.data % mmap.PAGESIZE + np.arange(count + 1) * _BLOCK * epochs.itemsize
    last = np.minimum(-(-edges[1:] // mmap.PAGESIZE), len(pages)) - 1
    result[:count] = np.logical_or.reduceat(pages, edges[:-1] // mmap.PAGESIZE) | pages[last]
    return result


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a fork has done."""

    counts: ExecutionCounts
    tallies: dict[int, Tally]
    steps: int
    now: int
    printed: list[Printed]
    fills: dict[int, set[tuple[int, bool]]]
    findings: Findings
    contended: bool
    hang: tuple[Waiter, ...] = ()
    given_up: bool = False
    """Where the launch is not judged."""
    touched: Touched | None = None
    data: Array | None = None
    """Of the units that it has written."""
    states: Array | None = None
    """Likewise."""


def may_be_split(program: DecodedProgram, execution: Execution) -> bool:
    """Whether parts of a launch can be executed apart, if its CTAs touch different memory."""
    apart = execution.judged or (not execution.follows and execution.world.is_shared)
    return apart and execution.patterns is None and program.keeps_apart


def ranges(begun: int, execution: Execution, count: int) -> list[range]:
    """The CTAs that are left in that many parts of whole waves, at most."""
    step = execution.resident
    waves = -(-(execution.grid_ctas - begun) // step)
    count = min(count, waves)
    cuts = [begun + step * -(-waves * i // count) for i in range(count)]
    return [range(*ends) for ends in zip(cuts, [*cuts[1:], execution.grid_ctas], strict=True)]


def begin(execution: Execution) -> None:
    """In a fork, before its waves: what was found and counted so far is the other process's."""
    if execution.judged:
        execution.world.detach()
    execution.tallies, execution.printed, execution.findings = {}, [], Findings()
    execution.fills = {}
    execution.reads_clock = False


def finish(execution: Execution, counts: ExecutionCounts, since: int, steps: int) -> Part | None:
    """In a fork, after its waves; since, steps: when it began. None where a judged part cannot be
    taken over."""
    part = Part(
        counts=counts,
        tallies=execution.tallies,
        steps=execution.steps - steps,
        now=execution.now,
        printed=execution.printed,
        fills=execution.fills,
        findings=execution.findings,
        contended=execution.contended,
    )
    if not execution.judged:
        return part
    if execution.findings.any() or execution.contended or execution.reads_clock:
        return None
    mine = touched(execution.history, since)
    data, states = _by_unit(execution)
    units = mine.written
    return msgspec.structs.replace(part, touched=mine, data=data[units], states=states[units])


def take(
    execution: Execution,
    counts: ExecutionCounts,
    parts: Sequence[Part | None],
    since: int,
    limit: int,
) -> bool:
    """Takes over what forks have done since they were made; False if that cannot be, and nothing
    has happened."""
    if any(part is None for part in parts):
        return False
    given = [part for part in parts if part is not None]
    if execution.judged:
        steps = execution.steps + sum(part.steps for part in given)
        if execution.findings.any() or execution.contended or steps > limit:
            return False
        sets = [
            touched(execution.history, since),
            *(part.touched for part in given if part.touched),
        ]
        if any(one.meets(other) for one, other in itertools.combinations(sets, 2)):
            return False
    for part in given:
        _take(execution, counts, part)
    return True


def _take(execution: Execution, counts: ExecutionCounts, part: Part) -> None:
    counts.take(part.counts)
    for number, tally in part.tallies.items():
        execution.tally(number).take(tally)
    execution.steps += part.steps
    execution.now = max(execution.now, part.now)
    execution.printed += part.printed
    for number, fills in part.fills.items():
        execution.fills.setdefault(number, set()).update(fills)
    execution.contended |= part.contended
    execution.findings.take(part.findings)
    if part.touched is None:
        return
    history, units = execution.history, part.touched.written
    data, states = _by_unit(execution)
    data[units], states[units] = part.data, part.states
    # Who it was matters no more: the launch is over.
    epoch = execution.now << TIME
    history.use([history.earlier])
    history.note(units, np.full(len(units), epoch))
    history.read[history.earlier, part.touched.read] = epoch


def _by_unit(execution: Execution) -> tuple[Array, Array]:
    """Global memory and its states, as far as there is a history, [units]."""
    arena, history = execution.world.arena, execution.history
    kind = np.dtype(f"u{history.unit}")
    size = len(history.written) * history.unit
    return arena.data[:size].view(kind), arena.state[:size].view(kind)
