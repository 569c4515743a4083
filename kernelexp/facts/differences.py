"""Differences between two arms: figures that both have, under conditions that compare."""

from __future__ import annotations

import math

import msgspec

from kernelexp.facts import counters
from kernelexp.facts.metrics import Figure, Kind, Metric, Value, figures
from kernelexp.model.arm import Arm


def comparable(one: Arm, other: Arm) -> tuple[Kind, ...]:
    """The kinds of evidence that both arms have under the same conditions.

    Counters of two versions of the emulator, or of two sizes, do not compare. A profile whose size
    is not known may be of any.
    """
    first, second = one.executed, other.executed
    kinds: list[Kind] = ["built"] if one.has_code and other.has_code else []
    if first and second and (first.emulator, first.size) == (second.emulator, second.size):
        kinds.append("emulated")
    if one.measured and other.measured and one.measured.size == other.measured.size:
        kinds.append("measured")
    if one.profiled and other.profiled:
        sizes = {profile.size for profile in (one.profiled, other.profiled) if profile.size}
        kinds += ["profiled"] if len(sizes) < 2 else []
    return tuple(kinds)


def numbers(before: Value, after: Value) -> tuple[float, float] | None:
    """Both values of a figure; None where one is text."""
    if isinstance(before, str) or isinstance(after, str):
        return None
    return before, after


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of two arms; a counter that one of them lacks is 0 there."""

    metric: Metric
    before: Value
    after: Value

    @property
    def unit(self) -> str:
        return self.metric.unit

    @property
    def change(self) -> float | None:
        """Relative change, 0.1 for 10% more; None where there is no number to divide by."""
        both = numbers(self.before, self.after)
        return (both[1] - both[0]) / abs(both[0]) if both and both[0] else None

    @property
    def factor(self) -> float:
        """The factor of growth or shrinkage, as factor() gives it."""
        return factor(self.before, self.after)


def factor(before: Value, after: Value) -> float:
    """The factor of growth or shrinkage, at least 1: 2 for a doubling and for a halving.

    Infinite where the figure appears, disappears, changes its sign, or is text.
    """
    if before == after:
        return 1.0
    if isinstance(before, str) or isinstance(after, str):
        return math.inf
    if not before or not after or (before < 0) != (after < 0):
        return math.inf
    small, large = sorted((abs(before), abs(after)))
    return large / small


def between(before: Arm, after: Arm, *kinds: Kind, same: bool = False) -> tuple[Difference, ...]:
    """Returns the differences between two arms, in the table's order, of evidence that both have.

    With `same`, includes figures that do not differ. Where the SASS of both was counted, counts of
    PTX say nothing more and are left out.
    """
    one, other = figures(before, *kinds), figures(after, *kinds)
    names = {name: (one.get(name) or other[name]).metric for name in (*one, *other)}
    if before.counted and after.counted:
        names = {name: item for name, item in names.items() if not name.startswith(counters.PTX)}

    def value(figures: dict[str, Figure], metric: Metric, arm: Arm) -> Value | None:
        """Returns a value of the same kind: one arm's profile is not compared with a count."""
        figure = figures.get(metric.name)
        same_kind = figure and figure.metric.kind == metric.kind
        return figure.value if figure and same_kind else metric.read(arm)

    pairs = [
        (metric, value(one, metric, before), value(other, metric, after))
        for metric in names.values()
    ]
    return tuple(
        Difference(metric=metric, before=was, after=now)
        for metric, was, now in pairs
        if (same or was != now) and was is not None and now is not None
    )
