"""Differences between two arms under conditions that compare, and which of them to show first.

One per counter, grouped, largest first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from kernelexp.facts import counters
from kernelexp.facts.counters import Better
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


FLOOR = 0.05
"""Relative change below which a figure is not shown."""

NEGLIGIBLE_PERCENT = 0.5
"""A share below this on both sides is not shown, however much it changed."""


class RankedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A counter of two arms, by the one of its metrics that is read."""

    difference: Difference
    others: tuple[str, ...] = ()
    """Further metrics of the same counter: its other rollups, its part of the peak."""


class ComparedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of both."""

    metric: str
    label: str
    unit: str
    better: Better
    before: Value
    after: Value
    change: float | None
    """Relative, 0.1 for 10% more; None where it is not a number."""
    direction: str
    """`better`, `worse`, or empty where neither is known."""
    others: tuple[str, ...]
    """Further metrics of the same counter."""


class ComparedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Figures about one subject, of one kind of evidence, largest change first."""

    group: str
    """One of counters.GROUPS, or counters.OTHER."""
    kind: str
    findings: tuple[ComparedFigure, ...]


def collapse(differences: Iterable[Difference]) -> list[RankedFinding]:
    """One finding for all the metrics of a counter, in the order in which they came."""
    same: dict[tuple[str, str, str], list[Difference]] = {}
    for difference in differences:
        key = (difference.metric.kind, difference.metric.group, difference.metric.label)
        same.setdefault(key, []).append(difference)
    return [_read(views) for views in same.values()]


def _read(views: Sequence[Difference]) -> RankedFinding:
    first, *rest = sorted(views, key=lambda difference: counters.preference(difference.metric.name))
    metric = first.metric
    if metric.kind == "profiled" and not counters.is_named(metric.name):
        # The label is that of a view which these profiles lack.
        metric = msgspec.structs.replace(metric, label=metric.name)
        first = msgspec.structs.replace(first, metric=metric)
    return RankedFinding(
        difference=first, others=tuple(difference.metric.name for difference in rest)
    )


def is_large(
    difference: Difference | ComparedFigure, floor: float, near_zero: bool = False
) -> bool:
    """Whether a figure changed by at least `floor`, appeared, or disappeared; texts that differ.

    Shares that are close to 0 on both sides count only with `near_zero`.
    """
    if difference.before == difference.after:
        return False
    if numbers(difference.before, difference.after) is None:
        return True
    if is_near_zero(difference) and not near_zero:
        return False
    change = difference.change
    return change is None or abs(change) >= floor


def is_near_zero(difference: Difference | ComparedFigure) -> bool:
    """Whether a share that changed is close to 0 on both sides."""
    both = numbers(difference.before, difference.after)
    if both is None or both[0] == both[1]:
        return False
    return difference.unit == "%" and max(map(abs, both)) < NEGLIGIBLE_PERCENT


def rank(findings: Iterable[RankedFinding]) -> tuple[ComparedGroup, ...]:
    """Groups in the order of counters.GROUPS; in each the largest factor first, of stalls the most
    points.

    A doubling ranks with a halving; what appears or disappears comes before all other changes.
    """
    order = (*counters.GROUPS, counters.OTHER)
    groups: dict[tuple[int, str, str], list[RankedFinding]] = {}
    for finding in findings:
        metric = finding.difference.metric
        groups.setdefault((order.index(metric.group), metric.group, metric.kind), []).append(
            finding
        )
    return tuple(
        ComparedGroup(
            group=name, kind=kind, findings=tuple(map(_compared, sorted(entry, key=_place)))
        )
        for (_, name, kind), entry in sorted(groups.items(), key=lambda item: item[0])
    )


def _place(finding: RankedFinding) -> tuple[float, str]:
    difference = finding.difference
    both = numbers(difference.before, difference.after)
    if both and difference.metric.group == "stalls":  # of ten times a small one nothing depends
        return -abs(both[1] - both[0]), difference.metric.name
    return -difference.factor, difference.metric.name


def _compared(finding: RankedFinding) -> ComparedFigure:
    difference, metric = finding.difference, finding.difference.metric
    return ComparedFigure(
        metric=metric.name,
        label=metric.label.strip(),
        unit=metric.unit,
        better=metric.better,
        before=difference.before,
        after=difference.after,
        change=difference.change,
        direction=_direction(difference),
        others=finding.others,
    )


def _direction(difference: Difference) -> str:
    """Whether the change is `better` or `worse`; empty where that depends on the kernel, and for
    one of less than a thousandth."""
    both, better = numbers(difference.before, difference.after), difference.metric.better
    if both is None or not better or both[0] == both[1]:
        return ""
    if difference.change is not None and both[1] and round(100 * abs(difference.change), 1) == 0:
        return ""
    return "better" if (both[1] < both[0]) == (better == "less") else "worse"
