"""Which arms of a measurement need more processes: a race, in which settled arms leave, in heats
where there are several GPUs.

A race for verdicts (`verdicts`) is over for an arm when its verdict is reached. A race for the
fastest arm (`fastest`) is over for an arm when some other is proved faster, and as a whole when the
leader is proved to be within the margin of every arm that is left. Both are successive elimination
with blocks: all arms of a process are paired, as in Maron & Moore, "The Racing Algorithm" (1997),
and Even-Dar, Mannor & Mansour, "Action Elimination and Stopping Conditions" (2006), with Student's
t over processes as the bound. docs/verdicts.md compares it with other methods.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from kernelexp.judge.statistics.stats import (
    LEVEL,
    center,
    mean_logs,
    ratios,
    share_of_arm,
    share_of_look,
    t_quantile,
    usable_rows,
)
from kernelexp.judge.verdict import enough, is_settled, is_trusted
from kernelexp.model.measurement import Departure, Effect, Goal, Look, Measurement, Worker

Scores: TypeAlias = Mapping[str, float]
"""One process: each arm's median log ratio to the baseline, which has 0."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """The log ratio of two arms' times over processes."""

    center: float
    low: float
    high: float
    processes: int

    def turned(self) -> Interval:
        """The ratio of the second arm's time to that of the first."""
        return Interval(
            center=-self.center, low=-self.high, high=-self.low, processes=self.processes
        )


class Race(msgspec.Struct, frozen=True, kw_only=True):
    """The standing of the arms that are still timed against the fastest of them."""

    leader: str
    slower: tuple[str, ...]
    """Arms that are proved to be slower than the leader."""
    tied: tuple[str, ...]
    """Arms that the leader is proved to be within the margin of, whichever is faster."""
    open: tuple[str, ...]
    """The others: more processes would tell."""


class RaceResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a race for the fastest arm."""

    leader: str
    contenders: tuple[str, ...]
    """The arms that may be the fastest, the leader first."""
    is_decided: bool
    """The leader is within the margin of the fastest arm, at the race's level."""
    behind: dict[str, Interval]
    """Each arm's log ratio to the leader's time."""


def look(measurement: Measurement, margin: float, goal: Goal) -> Look:
    """Decides what to do after the samples so far, the last of `measurement.looks` included."""
    if not measurement.options.race:
        return Look(done=enough(measurement, margin))
    effects, placebo = ratios(measurement)
    settled = {effect.arm for effect in effects if is_settled(effect, margin)}
    running = [arm for arm in _entered(measurement) if arm not in measurement.excluded]
    if goal == "verdicts":
        leaving = {arm: "" for arm in running if arm in settled}
        return _look(measurement, leaving, enough(measurement, margin))
    standing = _race(measurement, scores(measurement), margin)
    if standing is None:
        return Look(done=False)
    base = _baseline(measurement)
    leaving = {arm: standing.leader for arm in standing.slower if arm != base}
    is_known = standing.leader == base or standing.leader in settled
    done = not standing.open and is_known and is_trusted(placebo, margin)
    return _look(measurement, leaving, done)


def _look(measurement: Measurement, leaving: Mapping[str, str], done: bool) -> Look:
    """`leaving`: arms with the one that was faster, empty where the verdict was reached."""
    processes, number = len(measurement.workers), len(measurement.looks)
    return Look(
        done=done,
        leaving=tuple(
            Departure(arm=arm, processes=processes, look=number, slower_than=than)
            for arm, than in leaving.items()
        ),
    )


def _race(measurement: Measurement, taken: Sequence[Scores], margin: float) -> Race | None:
    entered = _entered(measurement)
    share = share_of_look(len(measurement.looks), measurement.options.race)
    risk = (1.0 - LEVEL) * share / (len(entered) - 1)
    running = [arm for arm in entered if arm not in measurement.excluded]
    return race(taken, running, risk, margin)


def race(
    taken: Sequence[Scores], running: Sequence[str], risk: float, margin: float
) -> Race | None:
    """Returns how the arms `running` stand after these processes; None before two timed them all.

    `risk` is that of one pair of arms at this look, both sides of its interval together.
    """
    timed = [arm for arm in running if sum(arm in item for item in taken) > 1]
    if not timed:
        return None
    leader = min(timed, key=lambda arm: _mean(taken, arm))
    slower: list[str] = []
    tied: list[str] = []
    open_ = [arm for arm in running if arm not in timed]
    for arm in timed:
        if arm == leader:
            continue
        pair = between(taken, arm, leader, risk)
        if pair is None:
            open_.append(arm)
        elif pair.low > 0.0:
            slower.append(arm)
        else:
            (tied if -pair.low <= math.log1p(margin) else open_).append(arm)
    return Race(leader=leader, slower=tuple(slower), tied=tuple(tied), open=tuple(open_))


def result(measurement: Measurement, margin: float) -> RaceResult | None:
    """The outcome of a race for the fastest arm, from its samples alone; None where no two
    processes timed any two arms."""
    entered = _entered(measurement)
    scoreses = scores(measurement)
    standing = _race(measurement, scoreses, margin) if len(entered) > 1 else None
    if standing is None:
        return None
    behind = {}
    for arm in entered:
        risk = (1.0 - LEVEL) * share_of_arm(measurement, arm) / (len(entered) - 1)
        pair = between(scoreses, arm, standing.leader, risk)
        if pair is not None and arm != standing.leader:
            behind[arm] = pair
    contenders = (standing.leader, *standing.tied, *standing.open)
    return RaceResult(
        leader=standing.leader,
        contenders=contenders,
        is_decided=not standing.open,
        behind=behind,
    )


def between(taken: Sequence[Scores], one: str, other: str, risk: float) -> Interval | None:
    """Student's t over the processes that timed both; None where fewer than two did."""
    return of_values(
        [item[one] - item[other] for item in taken if one in item and other in item], risk
    )


def of_values(values: Sequence[float], risk: float) -> Interval | None:
    """Student's t interval of the mean of these, one of each process."""
    count = len(values)
    if count < 2:
        return None
    center = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(count)
    half = t_quantile(1.0 - risk / 2.0, count - 1) * error
    return Interval(center=center, low=center - half, high=center + half, processes=count)


def scores(measurement: Measurement) -> tuple[Scores, ...]:
    """The scores of each process; an arm that it did not time, or no pair of which is usable, is
    left out."""
    base = measurement.position("baseline")
    if base is None:
        return ()
    arms = {
        index: arm.name
        for index, arm in enumerate(measurement.arms)
        if arm.role in ("candidate", "placebo")
    }
    name = measurement.arms[base].name
    version = measurement.version
    return tuple(_scores(worker, arms, base, name, version) for worker in measurement.workers)


def _scores(
    worker: Worker, arms: Mapping[int, str], base: int, baseline: str, version: int
) -> Scores:
    """Scores through an arm that no row is without, where the baseline is slow and sits out rows:
    else 12 of 240 rows compared two fast arms."""
    rows = [(number, mean_logs(row)) for number, row in usable_rows(worker, version)]
    counts = {index: sum(index in row for _, row in rows) for index in (base, *arms)}
    through = max(counts, key=lambda index: counts[index])  # the baseline, of those in all rows
    kept: dict[int, dict[int, list[float]]] = {index: {} for index in (base, *arms)}
    for number, row in rows:
        for index in kept.keys() & row.keys() if through in row else ():
            kept[index].setdefault(number, []).append(row[index] - row[through])
    medians = {index: center(own) for index, own in kept.items() if sum(map(len, own.values())) > 1}
    if base not in medians:
        return {baseline: 0.0}
    own = {arms[index]: item - medians[base] for index, item in medians.items() if index != base}
    return {baseline: 0.0, **own}


def _mean(taken: Sequence[Scores], arm: str) -> float:
    return statistics.fmean(item[arm] for item in taken if arm in item)


def _baseline(measurement: Measurement) -> str:
    base = measurement.position("baseline")
    return "" if base is None else measurement.arms[base].name


def _entered(measurement: Measurement) -> list[str]:
    return [arm.name for arm in measurement.arms if arm.role in ("baseline", "candidate")]


FINALISTS_MAX = 24
"""A final of more arms would take longer than all heats."""
SMALLEST = 2
"""Candidates of a heat: fewer are not worth a measurement of their own."""

SLOW = 4.0
"""A baseline that takes longer than so many times the best of the heats is not in the final: of 34
s in a final of kernels that took 3.6 ms, nearly all went to a baseline of 275 ms (two H200)."""

Item = TypeVar("Item")


def count(candidates: int, cards: int) -> int:
    """Returns how many heats so many candidates make on so many cards; 1 is an ordinary race."""
    return max(1, min(cards, candidates // SMALLEST))


def deal(items: Sequence[Item], heats: int) -> list[list[Item]]:
    """The items of each heat: neighbours, which are much alike, go to different heats."""
    return [list(items[first::heats]) for first in range(heats)]


def finalists(heats: Sequence[Measurement], margin: float) -> list[str]:
    """The candidates that may be the fastest of all, the most promising first; at least one where
    any was timed."""
    ranked = _ranked(heats, margin)
    if not ranked:
        return []
    limit = min(ranked[0].high, 1.0) * (1.0 + margin)  # the baseline is in the final too
    kept = [effect.arm for effect in ranked if effect.low <= limit]
    return (kept or [ranked[0].arm])[:FINALISTS_MAX]


def among_themselves(heats: Sequence[Measurement], margin: float) -> list[str]:
    """The finalists, two at least, where the baseline is so slow that they meet without it, and are
    compared with the first of them; else empty."""
    ranked = _ranked(heats, margin)
    if len(ranked) < 2 or ranked[0].ratio * SLOW >= 1.0:
        return []
    names = finalists(heats, margin)
    return names if len(names) > 1 else [effect.arm for effect in ranked[:2]]


def _ranked(heats: Sequence[Measurement], margin: float) -> list[Effect]:
    effects = {effect.arm: effect for heat in heats for effect in _contenders(heat, margin)}
    return sorted(effects.values(), key=lambda effect: effect.ratio)


def _contenders(heat: Measurement, margin: float) -> list[Effect]:
    """The candidates of a heat that none of it was proved to be faster than, and its best one."""
    failed = {failure.arm for failure in heat.failures}
    if heat.invalid or "" in failed:
        return []
    effects = [ratio for ratio in ratios(heat)[0] if ratio.arm not in failed]
    race = result(heat, margin)
    best = min(effects, key=lambda effect: effect.ratio, default=None)
    kept = set(race.contenders) if race else {effect.arm for effect in effects}
    return [effect for effect in effects if effect.arm in kept or effect is best]
