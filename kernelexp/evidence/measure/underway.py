"""A measurement under way: its samples so far, the looks at them, its time and its journal."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.evidence.measure import journals
from kernelexp.judge.statistics.stats import ratios
from kernelexp.judge.verdict import spell_interval
from kernelexp.model.measurement import (
    EARLY_LOOKS,
    LOOKS_MAX,
    Device,
    Failure,
    Look,
    Measurement,
    Options,
    PrintedSamples,
    TimedArm,
)
from kernelexp.system.live import OnProgress, Step

OnLook: TypeAlias = Callable[[Measurement], Look]
# Looks at the interval after the first: each costs confidence, so not after every process.
PROCESSES_BETWEEN_LOOKS = 2
PROCESSES_MIN = 3
"""Of a kernel's measurement: an interval of two is 11 times as wide as one of three."""
# What a process costs by itself (context, warm-up) is about what it costs for so many arms.
ARMS_OF_A_PROCESS = 10


def begin(
    target: Device,
    options: Options,
    arms: Sequence[TimedArm],
    journal: Path | None,
    *,
    version: int = 1,
    printed: PrintedSamples | None = None,
) -> Measurement:
    """A measurement without samples, or with those that the journal of the same one has."""
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    start = Measurement(
        version=version,
        device=target,
        options=options,
        seed=seed,
        arms=tuple(arms),
        printed=printed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    return journals.resume(journal, start) if journal else start


class Underway:
    """One measurement, to which workers are added until a look or the budget ends it.

    Without `look` it ends at the first.
    """

    def __init__(
        self,
        start: Measurement,
        on_progress: OnProgress | None,
        look: OnLook | None,
        journal: Path | None,
    ) -> None:
        self._so_far = start
        self._on_progress, self._on_look, self._journal = on_progress, look, journal
        self._begun = time.monotonic() - start.elapsed_s
        self._left_out = 0
        """Arms that the last worker left out."""
        self._turns_s: list[float] = []
        self._standing: dict[int, str] = {}
        """The intervals by workers: those of many arms take a while."""

    def _is_settled(self) -> bool:
        """Whether further samples would change nothing."""
        return is_hopeless(self._so_far) or (is_look_due(self._so_far) and self._take_look())

    def _take_look(self) -> bool:
        """Looks at the samples, leaves out what is settled; whether that was the last look."""
        self._add(looks=(*self._so_far.looks, len(self._so_far.workers)))
        if self._on_look is None:
            return True
        seen = self._on_look(self._so_far)
        self._add(departures=(*self._so_far.departures, *seen.leaving))
        most = LOOKS_MAX + len(EARLY_LOOKS) * self._so_far.options.race  # that share the risk
        return seen.done or len(self._so_far.looks) == most

    def _finish(self) -> Measurement:
        done = len(self._so_far.workers)
        if done > 1 and done not in self._so_far.looks:  # the budget ended between two looks
            self._take_look()
        return self._timed()

    def _next_share(self) -> float:
        """Returns the next worker's time over that of the last one."""
        arms = len(self._so_far.arms) + ARMS_OF_A_PROCESS
        return (arms - len(self._so_far.excluded)) / (arms - self._left_out)

    def _timed(self) -> Measurement:
        return msgspec.structs.replace(self._so_far, elapsed_s=round(self._elapsed_s(), 3))

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._begun

    def _save(self) -> None:
        if self._journal:
            journals.save(self._journal, self._timed())

    def _fail(self, failure: Failure) -> None:
        self._add(failures=(*self._so_far.failures, failure))

    def _refuse_company(self, others: int) -> None:
        """Whatever was timed beside other processes says nothing."""
        count = "Another process" if others == 1 else f"{others} processes"
        self._add(invalid=f"{count} computed on the GPU during the measurement.")

    def _add(self, **fields: object) -> None:
        self._so_far = msgspec.structs.replace(self._so_far, **fields)

    def _say(self, phase: str) -> None:
        """Tells a step, with the intervals as they narrow."""
        if self._on_progress is None:
            return
        done = len(self._so_far.workers)
        if done not in self._standing:
            self._standing[done] = _how_it_stands(self._so_far)
        now = "; ".join(filter(None, (phase, self._standing[done])))
        total = self._so_far.options.processes
        self._on_progress(Step(phase="measuring", done=done, total=total, now=now))


def _how_it_stands(so_far: Measurement) -> str:
    """The intervals of one candidate or two, how many are still timed of more."""
    candidates = [arm.name for arm in so_far.arms if arm.role == "candidate"]
    if len(candidates) > 2:
        return f"{sum(arm not in so_far.excluded for arm in candidates)} of {len(candidates)} left"
    effects = ratios(so_far)[0] if len(so_far.workers) > 1 else ()
    return "; ".join(map(spell_interval, effects))


def is_hopeless(so_far: Measurement) -> bool:
    """Whether more processes could not lead to a verdict on any candidate."""
    failed = {failure.arm for failure in so_far.failures}
    roles = [arm.role for arm in so_far.arms if arm.name not in failed]
    nothing_left = "baseline" not in roles or "candidate" not in roles
    return bool(so_far.invalid) or "" in failed or nothing_left


def is_budget_spent(
    elapsed_s: float,
    turns_s: Sequence[float],
    budget_s: float,
    next_share: float = 1.0,
    least: int = 2,
) -> bool:
    """Whether another process, which takes `next_share` of the last one's time, would end after the
    budget.

    So many as `least` are taken in any case: one says nothing of another. What the first takes
    longer than any other is not counted: on a fresh H200 machine the first one's imports and peers
    that compile themselves took all of 30 s.
    """
    if len(turns_s) < least:
        return False
    starting_up = max(0.0, turns_s[0] - max(turns_s[1:]))
    return elapsed_s - starting_up + next_share * turns_s[-1] > budget_s


def is_look_due(so_far: Measurement) -> bool:
    """Whether the interval is to be looked at now: after the first processes, then every second; in
    a race early too."""
    done, first = len(so_far.workers), so_far.options.processes
    if so_far.options.race and done in EARLY_LOOKS and done < first:
        return done not in so_far.looks
    at_a_look = done >= first and (done - first) % PROCESSES_BETWEEN_LOOKS == 0
    return at_a_look and done not in so_far.looks
