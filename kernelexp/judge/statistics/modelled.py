"""What two modelled times say of each other: a ratio with an interval, or nothing."""

from __future__ import annotations

import math

import msgspec

from kernelexp.facts.modelled_errors import ERRORS, PUBLISHED, Error
from kernelexp.judge import modelled_pairs
from kernelexp.model.modelled import ModelledTime


class ModelledChange(msgspec.Struct, frozen=True, kw_only=True):
    """Of one time against another's of the same chip and size."""

    ratio: float
    """Below 1: faster."""
    low: float
    high: float
    """As far from the modelled ratio as eight of ten measured ones of the records are."""
    decided: bool
    """The interval does not hold 1."""
    sentence: str


def change(before: ModelledTime, after: ModelledTime) -> ModelledChange:
    """`after` against `before`, which both have a time."""
    ratio = after.cycles / before.cycles
    spread = math.exp(modelled_pairs.reach(math.log(ratio), ERRORS.within))
    low, high = ratio / spread, ratio * spread
    decided = not low <= 1 <= high
    return ModelledChange(
        ratio=ratio,
        low=low,
        high=high,
        decided=decided,
        sentence=_sentence(ratio, low, high),
    )


def _sentence(ratio: float, low: float, high: float) -> str:
    if low <= 1 <= high:
        return f"too close for the model: {_percent(low)} to {_percent(high)}"
    direction = "faster" if ratio < 1 else "slower"
    least, most = sorted((abs(1 - low), abs(1 - high)))
    return f"{100 * least:.0f} to {100 * most:.0f}% {direction}; {trust(ratio)}"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f}%"


def worth(chip: str) -> str:
    """How far off the model was on measured times, or on those that others have published."""
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


def trust(ratio: float) -> str:
    """How often the model ranked pairs right that it put at least as far apart."""
    error = next((item for item in reversed(ERRORS.by_distance) if _reaches(ratio, item)), None)
    if error is None:
        return "no measured pair is as near"
    return f"{error.right} of {error.pairs} pairs so far apart ranked right"


def _reaches(ratio: float, error: Error) -> bool:
    return abs(math.log(ratio)) >= math.log1p(error.distance)
