"""A launch in parts on several cores: waves of CTAs in forks, where they keep out of each other's
memory.

Each fork executes its waves on memory of its own. Where no part has written what another one has
read or written, as their histories tell, its writes and counts are taken over, and everything is
as if one process had executed all waves. Otherwise, and where a fork has found anything, what it
did is dropped: this process executes those waves too.

A launch that is not judged has no history: its parts share the memory, as CTAs do on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.clocks import TIME
from warpsim.machine.core.findings import Findings
from warpsim.machine.counts.counters import ExecutionCounts
from warpsim.machine.counts.tally import Tally
from warpsim.machine.memory.execution import Execution, Printed
from warpsim.machine.schedule.hangs import Waiter
from warpsim.machine.schedule.program import DecodedProgram

_AT_ONCE = 1 << 15
"""Units that are looked at, which the cache holds."""
PATIENCE_S = 0.05
"""How long a launch is executed by one process: forks take 10 ms and more."""


class Touched:
    """Units of global memory that waves from a time on have written and read, bool [units]."""

    def __init__(self, execution: Execution, since: int) -> None:
        history, first = execution.history, since << TIME
        units, used = len(history.written), history.used.tolist()
        self.written: Array = np.zeros(units, bool)
        self.read: Array = np.zeros(units, bool)
        for begin in range(0, units, _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            np.greater_equal(history.written[some], first, out=self.written[some])
            for column in used:
                self.read[some] |= history.read[column, some] >= first

    def meets(self, part: Part) -> bool:
        """Whether one has written what the other has touched."""
        written, read = part.masks(len(self.written))
        return bool(
            (self.written & written).any()
            or (self.written & read).any()
            or (self.read & written).any()
        )

    def add(self, part: Part) -> None:
        written, read = part.masks(len(self.written))
        self.written |= written
        self.read |= read


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
    written: bytes = b""
    """Units, a bit each."""
    read: bytes = b""
    data: Array | None = None
    """Of these units."""
    states: Array | None = None
    """Likewise."""

    def masks(self, units: int) -> tuple[Array, Array]:
        """The units that it has written, and read."""
        written, read = (
            np.unpackbits(np.frombuffer(bits, np.uint8), count=units).view(bool)
            for bits in (self.written, self.read)
        )
        return written, read


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
    touched = Touched(execution, since)
    data, states = _by_unit(execution)
    return msgspec.structs.replace(
        part,
        written=np.packbits(touched.written).tobytes(),
        read=np.packbits(touched.read).tobytes(),
        data=data[touched.written],
        states=states[touched.written],
    )


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
        touched = Touched(execution, since)
        for part in given:
            if touched.meets(part):
                return False
            touched.add(part)
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
    if part.data is None or part.states is None:
        return
    history = execution.history
    written, read = part.masks(len(history.written))
    data, states = _by_unit(execution)
    data[written], states[written] = part.data, part.states
    # Who it was matters no more: the launch is over.
    history.use([history.earlier])
    for epochs, mask in (history.written, written), (history.read[history.earlier], read):
        epochs[mask] = execution.now << TIME


def _by_unit(execution: Execution) -> tuple[Array, Array]:
    """Global memory and its states, as far as there is a history, [units]."""
    arena, history = execution.world.arena, execution.history
    kind = np.dtype(f"u{history.unit}")
    size = len(history.written) * history.unit
    return arena.data[:size].view(kind), arena.state[:size].view(kind)
