"""Turns that a process of each arm took: a call's net time, and whether the clock was cheated."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from kernelexp.model.arm import Status
from kernelexp.model.measurement import Block, DeviceState, Row, Worker
from kernelexp.services.tasks.failing import TaskFailed
from kernelexp.services.tasks.timing.turns import SOLUTION, SolutionTurn

REFERENCE, NOTHING = "reference", "nothing"
ARMS = (REFERENCE, SOLUTION, NOTHING)
NARROW = "nothing, its answer as large as the solution's"
"""A turn of the process that does nothing, where the solution's answer has fewer bytes than the
reference's: it takes less to digest."""
WIDE = 1 << 20
"""Bytes of an answer above which its digest takes longer than an empty one's."""
LEAST_US = 0.1
EARLY = 0.5
"""Of a call's time that a process may use before the clock more than nothing does."""
SLOWED = 1.25
"""How much slower the reference may be beside the solution than without it."""
_NO_STATE = DeviceState(sm_clock_mhz=0, memory_clock_mhz=0, power_w=0.0, temperature_c=0)


class TurnPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of calls in a turn."""

    calls: int = 1
    """Per turn."""
    in_a_row: bool = False
    answer_bytes: int = 0
    """Of the reference."""
    own_bytes: int = 0
    """Of the solution, where these are fewer and matter; 0: as the reference's."""


class Taken(msgspec.Struct, kw_only=True):
    """The turns that a process of each arm took."""

    rows: list[list[tuple[str, SolutionTurn]]] = []
    plan: TurnPlan = TurnPlan()
    alone: list[SolutionTurn] = []
    """Of the reference, when the solution's process had ended."""

    def turns(self, arm: str) -> list[SolutionTurn]:
        return [turn for row in self.rows for name, turn in row if name == arm]

    def overhead_s(self, arm: str = REFERENCE) -> float:
        """Returns the overhead of a turn, which ends with the digests of answers as large as the
        arm's; of an answer that turns out to be smaller, that part of it."""
        narrow = self.turns(NARROW) if arm == SOLUTION else []
        whole = statistics.median(turn.call_s for turn in narrow or self.turns(NOTHING))
        supposed = self.plan.own_bytes or self.plan.answer_bytes
        if arm != SOLUTION or supposed < WIDE:
            return whole
        seen = [turn.answer_bytes for turn in self.turns(SOLUTION) if turn.answer_bytes]
        return whole * min([1.0, *(size / supposed for size in seen)])


def net_us(taken: Taken, arm: str, turn: SolutionTurn) -> float:
    """Returns the net time of a call."""
    return max(LEAST_US, 1e6 * (turn.call_s - taken.overhead_s(arm)) / taken.plan.calls)


def median_us(taken: Sequence[Taken], arm: str) -> float:
    return statistics.fmean(
        statistics.median(net_us(item, arm, turn) for turn in item.turns(arm)) for item in taken
    )


def to_worker(number: int, taken: Taken) -> Worker:
    """Returns the rows as measurements of kernels have them: the reference is arm 0, the solution
    arm 1."""
    rows = []
    for row in taken.rows:
        timed = [
            (ARMS.index(name), net_us(taken, name, turn))
            for name, turn in row
            if name in (REFERENCE, SOLUTION)
        ]
        order, times = zip(*timed, strict=True)
        rows.append(Row(order=order, times_us=times))
    return Worker(
        process=number,
        seed=0,
        load_order=(0, 1),
        launches_per_sample=1,
        sets=1,
        warm_up_s=0.0,
        drift=0.0,
        blocks=(Block(before=_NO_STATE, after=_NO_STATE, rows=tuple(rows)),),
        checks=(),
    )


def require_honest(taken: Sequence[Taken]) -> None:
    """TaskFailed where the clock was cheated in a way that answers don't show.

    The quickest tenth of what is suspected against the slowest of what it is compared with: a busy
    machine does not convict.
    """
    overhead = statistics.median(item.overhead_s() for item in taken)
    beside = _tenth([t.call_s for item in taken for t in item.turns(REFERENCE)]) - overhead
    beside = max(0.0, beside)
    used = _tenth([t.ready_s for item in taken for t in item.turns(SOLUTION)])
    idle = max(t.ready_s for item in taken for t in item.turns(NOTHING))
    if used - idle > EARLY * beside:
        words = (
            f"before the clock it uses {1e3 * (used - idle):.3g} ms more than a process that does "
            f"nothing; a call of the reference takes {1e3 * beside:.3g} ms."
        )
        raise TaskFailed(Status.INVALID, "early", words)
    alone = max(t.call_s for item in taken for t in item.alone) - overhead
    noise = max(t.call_s for item in taken for t in item.turns(NOTHING)) - overhead
    if beside > SLOWED * max(alone, 0.0) + noise:
        words = (
            f"the reference takes {1e3 * beside:.3g} ms or more beside the solution, and "
            f"{1e3 * alone:.3g} ms at most when its process has ended."
        )
        raise TaskFailed(Status.INVALID, "slows_others", words)


def _tenth(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 10]
