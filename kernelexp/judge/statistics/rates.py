"""Reliability of measurements on a machine: A/A, and known slowdowns, from recordings.

Many identical arms are timed at once, and comparisons are drawn from what was recorded: some of the
processes, two or three of the arms. Draws that share processes are not independent; `Rates` says
how many disjoint comparisons the recording holds.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.judge.statistics import stats
from kernelexp.judge.verdict import decided
from kernelexp.model.arm import Status
from kernelexp.model.measurement import Measurement

VERDICTS = (Status.IMPROVED, Status.REJECTED)
SEED = 1
"""Of the draws: one recording always gives the same rates."""
DOUBLE = 1000
"""Extra work, in thousandths, of the arm that does all work twice."""


def arm_name(extra: int, copy: int) -> str:
    """The name of an arm with so many thousandths of extra work, one of several copies."""
    return f"extra-{extra}-{copy}"


def extra_of(name: str) -> int:
    """The extra work, in thousandths, of an arm that arm_name() named."""
    return int(name.split("-")[1])


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of many comparisons of one true effect."""

    truth: float
    """The true ratio minus 1."""
    comparisons: int
    disjoint: int
    """Comparisons that share no process and arm with another, of those that could be drawn."""
    statuses: dict[str, int]
    detected: int
    """Comparisons whose interval leaves out a ratio of 1."""
    covered: int
    """Comparisons whose interval holds the true ratio."""
    bias: float
    """Mean of the estimates minus the truth."""
    spread: float
    """Standard deviation of the estimates."""
    half_width: float
    """Median half width of the intervals."""
    detectable: float
    """Median minimal detectable effect."""

    @property
    def false_verdicts(self) -> int:
        """IMPROVED or REJECTED; false where the truth is within the margin."""
        return sum(self.statuses.get(status, 0) for status in VERDICTS)


def true_effects(measurement: Measurement) -> dict[str, float]:
    """Each candidate's true effect (0.005 is 0.5% slower), from arms that do all work twice."""
    result = {effect.arm: effect.ratio - 1.0 for effect in stats.ratios(measurement)[0]}
    extra = {name: extra_of(name) for name in result}
    doubled = statistics.fmean(result[name] for name in result if extra[name] == DOUBLE)
    return {name: doubled * extra[name] / DOUBLE for name in result if extra[name] != DOUBLE}


def draw(
    measurement: Measurement,
    bases: Sequence[int],
    candidates: Sequence[int],
    processes: int,
    count: int,
    rng: random.Random,
) -> Iterator[Measurement]:
    """`count` measurements of `processes` workers each: a base, another as placebo, a candidate."""
    for _ in range(count):
        base, placebo = rng.sample(list(bases), 2)
        candidate = rng.choice([i for i in candidates if i not in (base, placebo)])
        roles = {base: "baseline", placebo: "placebo", candidate: "candidate"}
        arms = tuple(
            msgspec.structs.replace(arm, role=roles.get(index, "peer"))
            for index, arm in enumerate(measurement.arms)
        )
        workers = tuple(rng.sample(list(measurement.workers), processes))
        yield msgspec.structs.replace(measurement, arms=arms, workers=workers, looks=(processes,))


def rates(
    drawn: Sequence[Measurement],
    truth: float,
    disjoint: int,
    margin: float = 0.01,
) -> Rates:
    """Summarizes the verdicts of these measurements, each of one candidate."""
    statuses: Counter[str] = Counter()
    ratios, halves, detectables = [], [], []
    detected = covered = 0
    for measurement in drawn:
        (effect,), placebo = stats.ratios(measurement)
        statuses[decided(effect, placebo, margin).status] += 1
        ratios.append(effect.ratio)
        halves.append((effect.high - effect.low) / 2.0)
        detectables.append(effect.detectable)
        detected += not effect.low <= 1.0 <= effect.high
        covered += effect.low <= 1.0 + truth <= effect.high
    return Rates(
        truth=truth,
        comparisons=len(drawn),
        disjoint=disjoint,
        statuses=dict(statuses),
        detected=detected,
        covered=covered,
        bias=statistics.fmean(ratios) - 1.0 - truth,
        spread=statistics.stdev(ratios) if len(ratios) > 1 else math.nan,
        half_width=statistics.median(halves),
        detectable=statistics.median(detectables),
    )


def of_same_arms(
    measurement: Measurement,
    processes: int = 4,
    count: int = 300,
    margin: float = 0.01,
) -> Rates:
    """A/A rates from what `record_same_arms` recorded."""
    arms = [i for i, arm in enumerate(measurement.arms) if arm.role != "peer"]
    rng = random.Random(SEED)
    drawn = list(draw(measurement, arms, arms, processes, count, rng))
    disjoint = len(measurement.workers) // processes * (len(arms) // 2)
    return rates(drawn, 0.0, disjoint, margin)


def of_injected(
    measurement: Measurement,
    processes: int = 4,
    count: int = 200,
    margin: float = 0.01,
) -> dict[int, Rates]:
    """Rates for each amount of extra work (in thousandths) that `record_injected` recorded."""
    truths = true_effects(measurement)
    bases = [i for i, a in enumerate(measurement.arms) if a.role in ("baseline", "placebo")]
    rng = random.Random(SEED)
    groups: dict[int, list[int]] = {}
    for index, arm in enumerate(measurement.arms):
        if arm.name in truths:
            groups.setdefault(extra_of(arm.name), []).append(index)
    result = {}
    for extra, candidates in groups.items():
        drawn = list(draw(measurement, bases, candidates, processes, count, rng))
        disjoint = len(measurement.workers) // processes * min(len(candidates), len(bases))
        truth = truths[measurement.arms[candidates[0]].name]
        result[extra] = rates(drawn, truth, disjoint, margin)
    return result
