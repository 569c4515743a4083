"""What modelled times are worth: pairs of measured times against the model's, by experiment."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from kernelexp.facts.modelled_errors import HELD, OFFSET, Error

DISTANCES = (0.0, 0.01, 0.03, 0.05, 0.1, 0.2)
NEVER = 1e9


class ModelledPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms of a run: logarithms of the ratios of their times."""

    experiment: str
    run: str
    kernel: str
    arms: tuple[str, str]
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


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of each experiment, with intervals from the others' residuals."""

    pairs: int
    inside: int
    decided: int
    right: int
    """Of those decided."""
    apart: int
    """That were measured 5% apart or more."""
    apart_undecided: int


def reach(modelled: float, within: float) -> float:
    """Half of the interval around a modelled ratio, both as logarithms."""
    return within * (OFFSET + abs(modelled))


def within(pairs: Sequence[ModelledPair], part: float = HELD) -> float:
    """The residual that `part` of the pairs do not exceed; each experiment weighs the same."""
    count = Counter(pair.experiment for pair in pairs)
    reached = 0.0
    for pair in sorted(pairs, key=lambda modelled_pair: modelled_pair.residual):
        reached += 1 / count[pair.experiment]
        if reached >= part * len(count):
            return pair.residual
    return NEVER


def part_to_hold(pairs: Sequence[ModelledPair]) -> float:
    """The smallest part of residuals whose width holds HELD of the ratios of other experiments."""
    parts = [percent / 100 for percent in range(50, 100)]
    enough = HELD * len(pairs)
    return next((x for x in parts if leave_one_out(pairs, x).inside >= enough), parts[-1])


def leave_one_out(pairs: Sequence[ModelledPair], part: float = HELD) -> LeftOut:
    """What the intervals and their decisions would have been worth before each experiment."""
    inside = decided = right = undecided = 0
    for experiment in {pair.experiment for pair in pairs}:
        width = within([pair for pair in pairs if pair.experiment != experiment], part)
        for pair in pairs:
            if pair.experiment != experiment:
                continue
            limit = reach(pair.modelled, width)
            inside += abs(pair.modelled - pair.measured) <= limit
            if abs(pair.modelled) > limit:
                decided += 1
                right += pair.is_right
            else:
                undecided += is_apart(pair, 0.05)
    return LeftOut(
        pairs=len(pairs),
        inside=inside,
        decided=decided,
        right=right,
        apart=sum(is_apart(pair, 0.05) for pair in pairs),
        apart_undecided=undecided,
    )


def by_distance(pairs: Sequence[ModelledPair]) -> tuple[Error, ...]:
    """Pairs that the model puts so far apart, or farther."""
    errors = []
    for distance in DISTANCES:
        far = [pair for pair in pairs if abs(pair.modelled) >= math.log1p(distance)]
        right = sum(pair.is_right for pair in far)
        errors.append(Error(distance=distance, pairs=len(far), right=right))
    return tuple(errors)


def is_apart(pair: ModelledPair, distance: float) -> bool:
    """Whether they were measured so far apart."""
    return abs(pair.measured) >= math.log1p(distance)


def regrets(pairs: Sequence[ModelledPair]) -> tuple[float, ...]:
    """Of each run of three arms or more: what its modelled best takes beyond its fastest."""
    runs = defaultdict(list)
    for pair in pairs:
        runs[pair.run].append(pair)
    return tuple(sorted(_regret(own) for own in runs.values() if len(own) > 1))


def _regret(pairs: Sequence[ModelledPair]) -> float:
    """Of one run, whose pairs are all of its arms'."""
    first = pairs[0].arms[0]
    others = [pair for pair in pairs if pair.arms[0] == first]
    modelled, measured = min((-pair.modelled, -pair.measured) for pair in others)
    fastest = min(0.0, *(-pair.measured for pair in others))
    return math.expm1((measured if modelled < 0 else 0.0) - fastest)
