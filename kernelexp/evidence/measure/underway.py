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
from kernelexp.evidence.measure.stopping import is_hopeless, is_look_due, looks_max, next_share
from kernelexp.judge.statistics.stats import ratios
from kernelexp.judge.verdict import spell_interval
from kernelexp.model.measurement import (
    Device,
    Failure,
    Look,
    Measurement,
    Options,
    PrintedSamples,
    TimedArm,
)
from kernelexp.model.progress import OnProgress, Step

OnLook: TypeAlias = Callable[[Measurement], Look]


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
        return seen.done or len(self._so_far.looks) == looks_max(self._so_far.options)

    def _finish(self) -> Measurement:
        done = len(self._so_far.workers)
        if done > 1 and done not in self._so_far.looks:  # the budget ended between two looks
            self._take_look()
        return self._timed()

    def _next_share(self) -> float:
        return next_share(self._so_far, self._left_out)

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
