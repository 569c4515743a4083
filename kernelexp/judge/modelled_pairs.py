"""Modelled times against one another, and their reliability: pairs of measured times
against the model's, by experiment."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from kernelexp.facts.modelled_errors import (
    DISTANCES,
    ERRORS,
    HELD,
    LEAST,
    NEVER,
    OFFSET,
    PUBLISHED,
    SURE,
    Apart,
    ErrorsApart,
    RankedPairs,
    Worth,
)
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Variant
from kernelexp.model.modelled import ModelledTime


class ModelledPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms of a run: logarithms of the ratios of their times."""

    experiment: str
    run: str
    kernel: str
    arms: tuple[str, str]
    apart: Apart
    modelled: float
    floor: float
    """What the busiest unit alone says, without a latency."""
    measured: float

    @property
    def is_right(self) -> bool:
        return self.modelled * self.measured > 0

    @property
    def residual(self) -> float:
        """The farther apart two times are modelled, the farther off their ratio may be."""
        return abs(self.modelled - self.measured) / (OFFSET + abs(self.modelled))


MEASURED = (0.0, 0.05, 0.1)
"""Distances of measured ratios from 1 that decisions are counted at."""


class DecidedPairs(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs that were measured so far apart, or farther, with decisions from other experiments."""

    distance: float
    pairs: int
    decided: int
    right: int
    """Of those decided."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of each experiment, with intervals and decisions from the others."""

    pairs: int
    inside: int
    by_measured: tuple[DecidedPairs, ...]
    """At MEASURED."""


def apart(first: Arm | Variant, second: Arm | Variant) -> Apart:
    if first.kernel != second.kernel:
        return "another source"
    names = {*first.axes, *second.axes}
    differing = sum(first.axes.get(name) != second.axes.get(name) for name in names)
    return "one axis" if differing <= 1 else "several axes"


def reach(modelled: float, within: float) -> float:
    """Half of the interval around a modelled ratio, both as logarithms."""
    return within * (OFFSET + abs(modelled))


def is_decided(modelled: float, worth: Worth) -> bool:
    """Whether a modelled ratio says which is faster: its interval does not hold 1, or it is as far
    from 1 as those that are mostly ranked right."""
    return abs(modelled) > reach(modelled, worth.within) or abs(modelled) >= math.log1p(
        worth.resolution
    )


def worth(pairs: Sequence[ModelledPair]) -> Worth:
    """Returns what these pairs, which are equally far apart, imply for others."""
    return Worth(within=within(pairs), resolution=resolution(pairs))


def within(pairs: Sequence[ModelledPair], part: float = HELD) -> float:
    """The residual that `part` of the pairs do not exceed in `part` of the experiments.

    Pairs of one experiment err alike, so that a new experiment is as likely as one of these to need
    more than all pairs together do.
    """
    residuals = defaultdict(list)
    for pair in pairs:
        residuals[pair.experiment].append(pair.residual)
    needed = [_reached(own, part) for own in residuals.values()]
    return _reached(needed, part) if needed else NEVER


def _reached(values: Sequence[float], part: float) -> float:
    """The least of these that `part` of them do not exceed."""
    return sorted(values)[math.ceil(part * len(values) - 1e-9) - 1]


def resolution(pairs: Sequence[ModelledPair]) -> float:
    """The least distance from which on SURE of the pairs that are modelled so far apart, or
    farther, are ranked right."""
    for distance in (x for x in DISTANCES if x >= LEAST):
        far = [pair.is_right for pair in pairs if abs(pair.modelled) >= math.log1p(distance)]
        if far and statistics.mean(far) >= SURE:
            return distance
    return NEVER


def errors_apart(pairs: Sequence[ModelledPair]) -> tuple[ErrorsApart, ...]:
    """Returns intervals and decisions by how far apart two variants are, and their worth for
    experiments that had no part in them."""
    result = []
    for name, left in _left_out(pairs).items():
        own = [pair for pair in pairs if pair.apart == name]
        result.append(
            ErrorsApart(
                apart=name,
                worth=worth(own),
                pairs=left.pairs,
                inside=left.inside,
                decided=left.by_measured[0].decided,
                right=left.by_measured[0].right,
                by_distance=by_distance(own),
            )
        )
    return tuple(result)


def _left_out(pairs: Sequence[ModelledPair]) -> dict[Apart, LeftOut]:
    """Returns what widths and resolutions of the other experiments are worth for each."""
    return {
        name: leave_one_out([pair for pair in pairs if pair.apart == name])
        for name in dict.fromkeys(pair.apart for pair in pairs)
    }


def leave_one_out(pairs: Sequence[ModelledPair]) -> LeftOut:
    """Returns what intervals and decisions would have been worth before each experiment."""
    inside, decisions = 0, []
    for experiment in dict.fromkeys(pair.experiment for pair in pairs):
        others = worth([pair for pair in pairs if pair.experiment != experiment])
        for pair in pairs:
            if pair.experiment == experiment:
                inside += abs(pair.modelled - pair.measured) <= reach(pair.modelled, others.within)
                decisions.append((pair, is_decided(pair.modelled, others)))
    return LeftOut(
        pairs=len(pairs),
        inside=inside,
        by_measured=tuple(_decided(decisions, distance) for distance in MEASURED),
    )


def _decided(decisions: Sequence[tuple[ModelledPair, bool]], distance: float) -> DecidedPairs:
    far = [(pair, decided) for pair, decided in decisions if is_apart(pair, distance)]
    return DecidedPairs(
        distance=distance,
        pairs=len(far),
        decided=sum(decided for _, decided in far),
        right=sum(decided and pair.is_right for pair, decided in far),
    )


def decided_pairs(pairs: Sequence[ModelledPair]) -> tuple[DecidedPairs, ...]:
    """Returns decisions from other experiments at MEASURED, however far apart two variants are."""
    rows = [left.by_measured for left in _left_out(pairs).values()]
    return tuple(
        DecidedPairs(
            distance=own[0].distance,
            pairs=sum(row.pairs for row in own),
            decided=sum(row.decided for row in own),
            right=sum(row.right for row in own),
        )
        for own in zip(*rows, strict=True)
    )


def by_distance(pairs: Sequence[ModelledPair]) -> tuple[RankedPairs, ...]:
    """Pairs that the model puts so far apart, or farther."""
    ranked = []
    for distance in DISTANCES:
        far = [pair for pair in pairs if abs(pair.modelled) >= math.log1p(distance)]
        right = sum(pair.is_right for pair in far)
        ranked.append(RankedPairs(distance=distance, pairs=len(far), right=right))
    return tuple(ranked)


def is_apart(pair: ModelledPair, distance: float) -> bool:
    """Whether they were measured so far apart."""
    return abs(pair.measured) >= math.log1p(distance)


class Regret(msgspec.Struct, frozen=True, kw_only=True):
    """The excess time of a run's modelled best over its fastest, of three arms or more."""

    experiment: str
    kernel: str
    arms: int
    regret: float


def regrets(pairs: Iterable[ModelledPair]) -> tuple[Regret, ...]:
    """Returns the regret of each run of three arms or more, the smallest first."""
    runs = defaultdict(list)
    for pair in pairs:
        runs[pair.run].append(pair)
    many = [_regret(own) for own in runs.values() if len(own) > 1]
    return tuple(sorted(many, key=lambda regret: regret.regret))


def _regret(pairs: Sequence[ModelledPair]) -> Regret:
    """Returns the regret of one run, from the pairs of all its arms."""
    first = pairs[0].arms[0]
    others = [pair for pair in pairs if pair.arms[0] == first]
    modelled, measured = min((-pair.modelled, -pair.measured) for pair in others)
    fastest = min(0.0, *(-pair.measured for pair in others))
    return Regret(
        experiment=pairs[0].experiment,
        kernel=pairs[0].kernel,
        arms=1 + len(others),
        regret=math.expm1((measured if modelled < 0 else 0.0) - fastest),
    )


class ModelledChange(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio of one time to another of the same chip and size."""

    ratio: float
    """Below 1: faster."""
    low: float
    high: float
    """As far from the modelled ratio as eight of ten measured ones of the records are."""
    decided: bool
    """The interval does not hold 1, or nine of ten ratios so far from 1 are ranked right."""
    sentence: str


def change(before: ModelledTime, after: ModelledTime, apart: Apart) -> ModelledChange:
    """`after` against `before`, which both have a time, of variants that are so far apart."""
    ratio = after.cycles / before.cycles
    spelled_worth = ERRORS.of(apart).worth
    spread = math.exp(reach(math.log(ratio), spelled_worth.within))
    low, high = ratio / spread, ratio * spread
    decided = is_decided(math.log(ratio), spelled_worth)
    return ModelledChange(
        ratio=ratio,
        low=low,
        high=high,
        decided=decided,
        sentence=_sentence(ratio, low, high, decided, apart),
    )


def _sentence(ratio: float, low: float, high: float, decided: bool, apart: Apart) -> str:
    between = f"{_percent(low)} to {_percent(high)}"
    if not decided:
        return f"too close for the model: {between}"
    direction = "faster" if ratio < 1 else "slower"
    least, most = sorted((abs(1 - low), abs(1 - high)))
    if low <= 1 <= high:
        return f"{direction}, time {_percent(ratio)} ({between}); {trust(ratio, apart)}"
    return f"{100 * least:.0f} to {100 * most:.0f}% {direction}; {trust(ratio, apart)}"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f}%"


def spelled_worth(chip: str) -> str:
    """Says how far off the model was on measured times, or on those that others have published."""
    if chip == PUBLISHED.chip:
        unknown = f"We measured nothing on a {chip}: its parameters are published ones."
        if not PUBLISHED.times:
            return unknown
        return (
            f"{unknown} Of {PUBLISHED.times} published times of {PUBLISHED.kernel}, the model is "
            f"off by {PUBLISHED.mean:.0%} on average; of {PUBLISHED.steps} published steps of 3% "
            f"or more, it has the sign of {PUBLISHED.right}."
        )
    return (
        f"On {ERRORS.times} times measured on an {ERRORS.device}, the model was off by "
        f"{ERRORS.mean:.0%} on average."
    )


def trust(ratio: float, apart: Apart) -> str:
    """Says how often the model ranked pairs right that it put at least as far apart."""
    ranked = [item for item in ERRORS.of(apart).by_distance if _reaches(ratio, item)][-1]
    return f"{ranked.right} of {ranked.pairs} pairs so far apart ranked right"


def _reaches(ratio: float, ranked: RankedPairs) -> bool:
    return ranked.pairs > 0 and abs(math.log(ratio)) >= math.log1p(ranked.distance)
