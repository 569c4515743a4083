"""Comparison of two modelled times: a ratio with an interval, or nothing."""

from __future__ import annotations

import math

import msgspec

from kernelexp.facts.modelled_errors import ERRORS, PUBLISHED, Apart, RankedPairs
from kernelexp.judge import modelled_pairs
from kernelexp.model.modelled import ModelledTime


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
    worth = ERRORS.of(apart).worth
    spread = math.exp(modelled_pairs.reach(math.log(ratio), worth.within))
    low, high = ratio / spread, ratio * spread
    decided = modelled_pairs.is_decided(math.log(ratio), worth)
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


def worth(chip: str) -> str:
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
