"""Changes between two arms, and the consequence that likely made the time: the work of a unit that
is busy, else latency."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.judge.causes import CausedDifference
from kernelexp.judge.limits import bottleneck, bounds, floors
from kernelexp.judge.limits.bounds import Use
from kernelexp.judge.limits.case import Case
from kernelexp.judge.limits.changed import PART, WARPS, ChangedFigure, units
from kernelexp.judge.limits.floors import OF_CHIP, Resource
from kernelexp.model.experiment import AxisValue, spell

BUSY = 40.0
"""Percent of a limit from which more or less work for it is taken to be felt in the time."""
_ALIKE = 0.8
"""Of the largest change of work, the share from which that of another unit is as large."""
_LARGER = 1.2
"""Times what a busy unit's work explains from which another difference that does is named too."""
_SAME = 0.003
"""By which the ratio of the MMAs may differ from that of the padded extents."""
_AXES = 3
_WORTH = 1.0
"""Percent of the time from which what a difference explains is named where there is no cause."""
_LARGE = math.log(1.5)
"""As a logarithm, the relative change from which a count is named though it explains nothing."""
_TRIFLE = 1e-3
"""Of the instructions executed, the share below which a count is not named."""


class Consequence(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a change on the work for one unit."""

    resource: Resource
    before: Use
    after: Use
    more: float
    """Relative change of the work, which is use times time."""
    points: float
    """The same in percent of the baseline's time."""


def changed(before: Case, after: Case) -> str:
    """The kernel or the axes that the candidate has of its own, in words; empty where none."""
    if before.arm.kernel != after.arm.kernel:
        return f"kernel {before.arm.kernel} → {after.arm.kernel}"
    own = _own(before, after)
    if len(own) > _AXES:
        return f"{len(own)} axes ({', '.join(own)})"
    words = [f"{axis} {spell(was)} → {spell(now)}" for axis, (was, now) in own.items()]
    about = after.axes.get(next(iter(own), ""), "") if len(own) == 1 else ""
    values = [spell(value) for value in next(iter(own.values()), ())]
    if " or " in about and not all(value in about for value in values):
        about = ""  # of other values too
    return ", ".join(words) + (f" ({about})" if about else "")


def _own(before: Case, after: Case) -> dict[str, tuple[AxisValue, AxisValue]]:
    was, now = before.arm.axes, after.arm.axes
    return {
        axis: (was[axis], value)
        for axis, value in now.items()
        if axis in was and was[axis] != value
    }


def conclude(
    before: Case,
    after: Case,
    uses: tuple[Sequence[Use], Sequence[Use]],
    differing: CausedDifference,
    slower: float | None,
) -> str:
    """`What changed: ... Likely cause: ...`, or that the counts name no cause; neither where the
    time did not change (`slower` None or 0) or nothing was counted."""
    words = changed(before, after)
    first = f"What changed: {words}." if words else ""
    if not slower or not all(map(bottleneck.is_counted, uses)):
        return first
    uses = of_allowed(before, after, uses)
    unknown = _of_unknown(uses, differing, slower)
    unit = largest(uses, slower)
    if unit and unknown and abs(unknown.explains or 0.0) > abs(unit.points):
        unit = None
    cause = (
        _of_grid(before, after, slower)
        or _of_unit(before, after, unit, slower, differing)
        or _of_sectors(before, after, uses, slower)
        or (_spell(unknown) if unknown else "")
        or _of_rate(uses, slower)
        or _of_warps(differing, slower)
    )
    second = f"Likely cause: {cause}." if cause else _without(after, uses, differing, slower)
    return " ".join(filter(None, (first, second)))


def of_allowed(
    before: Case, after: Case, uses: tuple[Sequence[Use], Sequence[Use]]
) -> tuple[tuple[Use, ...], tuple[Use, ...]]:
    """The units of an SM in percent of what the grid allows, where that of an arm leaves SMs
    idle."""
    one, other = (
        tuple(
            use
            if use.percent is None or use.resource in OF_CHIP
            else msgspec.structs.replace(use, percent=min(100.0, use.percent / share))
            for use in side
        )
        for side, share in zip(uses, bottleneck.allowed_of(before, after), strict=True)
    )
    return one, other


def largest(uses: tuple[Sequence[Use], Sequence[Use]], slower: float) -> Consequence | None:
    """The largest change of the work of a unit that is busy, in the direction of the time; of
    several that are as large, the one nearest to its limit."""
    felt = [
        item
        for item in _consequences(uses, slower)
        if item.points * slower > 0
        and max(item.before.percent or 0.0, item.after.percent or 0.0) >= BUSY
        and abs(item.points) >= 100 * PART * abs(slower)
    ]
    most = max((abs(item.points) for item in felt), default=0.0)
    alike = [item for item in felt if abs(item.points) >= _ALIKE * most]
    return max(alike, key=_use, default=None)


def _use(item: Consequence) -> float:
    return max(item.before.percent or 0.0, item.after.percent or 0.0)


def _consequences(
    uses: tuple[Sequence[Use], Sequence[Use]], slower: float
) -> Iterator[Consequence]:
    for was, now in zip(*uses, strict=True):
        if was.percent is None or now.percent is None:
            continue
        if not (bounds.is_of_time(was) and bounds.is_of_time(now)) or any(
            map(bounds.is_of_parts, (was, now))
        ):
            continue
        work = now.percent * (1 + slower)
        yield Consequence(
            resource=was.resource,
            before=was,
            after=now,
            more=work / was.percent - 1 if was.percent else math.inf,
            points=work - was.percent,
        )


def _of_unit(
    before: Case,
    after: Case,
    item: Consequence | None,
    slower: float,
    differing: CausedDifference,
) -> str:
    if item is None:
        return ""
    verb = "more" if item.more > 0 else "less"
    much = f"{100 * abs(item.more):.1f}% " if item.more < 9 else ""
    idle = min(map(bottleneck.allowed, (before, after))) < 1 and item.resource not in OF_CHIP
    of = "what the grid allows" if idle else "the peak"
    shares = f"{item.before.percent:.1f}% of {of}, then {item.after.percent:.1f}%"
    why = _padding(before, after) if item.resource == "tensor cores" else ""
    most = _leader(differing, slower, item.resource) if not why else None
    which = f"; {_spell(most)}" if most else ""
    rate = _by_rate(differing)
    if rate and rate is not most and abs(rate.explains or 0.0) > _LARGER * abs(item.points):
        which += f"; by its rate more, {_share(rate)}"
    return f"{why}{much}{verb} work for {bottleneck.spell(item.after)} ({shares}){which}"


def _padding(before: Case, after: Case) -> str:
    """Says why more MMAs are executed, where tiles of another width cover more of an extent that
    they do not divide: by as much as the MMAs grew."""
    kind = floors.tensor_type(before)
    was, now = (floors.mma_flops(case, kind) for case in (before, after))
    if not (was and now):
        return ""
    for first, second in _own(before, after).values():
        if not _is_number(first) or not _is_number(second):
            continue
        for name, extent in after.extents.items():
            if not (0 < int(first) <= extent and 0 < int(second) <= extent):
                continue
            covered = [-(-extent // int(tile)) * int(tile) for tile in (first, second)]
            if covered[1] > covered[0] and abs(covered[1] / covered[0] - now / was) < _SAME:
                return (
                    f"{second} does not divide {name} = {extent:,} ({covered[1] // int(second)} x "
                    f"{second} = {covered[1]:,}): "
                )
    return ""


def _is_number(value: AxisValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _of_grid(before: Case, after: Case, slower: float) -> str:
    """Says that the grids leave the chip idle to different extents, if the times agree."""
    was, now = bottleneck.grid(before), bottleneck.grid(after)
    if was is None or now is None or not now.busy:
        return ""
    longer = was.busy / now.busy - 1
    if longer * slower <= 0 or abs(longer) < PART * abs(slower) or was.ctas == now.ctas:
        return ""
    if min(was.busy, now.busy) >= bottleneck.BUSY:
        return ""  # a tail of 2,048 CTAs, which persistent ones have within
    return (
        f"{now.ctas:,} CTAs on {now.sms} SMs can use {100 * now.busy:.1f}% of any limit, "
        f"{was.ctas:,} of them {100 * was.busy:.1f}%"
    )


def _of_unknown(
    uses: tuple[Sequence[Use], Sequence[Use]], differing: CausedDifference, slower: float
) -> ChangedFigure | None:
    """Returns the difference that explains enough by the rate of a unit whose use is not known, if
    it keeps that unit busy by this rate."""
    known = {item.resource for item in _consequences(uses, slower)}
    figure = _leader(differing, slower)
    return (
        figure
        if figure and units(figure.metric)[0] not in known and _busy(figure) >= BUSY
        else None
    )


def _busy(figure: ChangedFigure) -> float:
    """Percent of the time that its unit needs for the larger of the two counts."""
    was, now = _number(figure.before), _number(figure.after)
    more = abs(now - was)
    return abs(figure.explains or 0.0) * max(was, now) / more if more else 0.0


def _of_sectors(
    before: Case, after: Case, uses: tuple[Sequence[Use], Sequence[Use]], slower: float
) -> str:
    """The sectors that ncu counts at L2, whose throughput is no measure of its work."""
    shares = [bounds.percent_of(side, "L2") for side in uses]
    was, now = (case.figure("lts__t_sectors") for case in (before, after))
    if not was or not now or max(shares) < BUSY:
        return ""
    more = now / was - 1
    if more * slower <= 0 or abs(more) * shares[0] < 100 * PART * abs(slower):
        return ""
    return (
        f"{100 * abs(more):.1f}% {'more' if more > 0 else 'fewer'} sectors at L2 ("
        f"{shares[0]:.1f}% of its peak, then {shares[1]:.1f}%): {was:,.0f} → {now:,.0f}"
    )


def _of_rate(uses: tuple[Sequence[Use], Sequence[Use]], slower: float) -> str:
    """Says that device memory, where it bounds both arms, moves the same bytes at another rate."""
    near = [bounds.nearest(side) for side in uses]
    shares = [use.percent or 0.0 for use in near if use and use.resource == "device memory"]
    if len(shares) < 2 or min(shares) < bottleneck.BOUND:
        return ""
    return (
        f"device memory, which bounds both, moves the bytes that must move at a "
        f"{'lower' if slower > 0 else 'higher'} rate ({shares[0]:.1f}% of the peak, then "
        f"{shares[1]:.1f}%): they come in another order, or {'more' if slower > 0 else 'fewer'} "
        f"come with them"
    )


def _of_warps(differing: CausedDifference, slower: float) -> str:
    """Says that the warps on an SM went with the time, where no busy unit's work did."""
    warps = _warps(differing)
    if warps is None or warps.way != "with the time":
        return ""
    less = "less" if slower > 0 else "more"
    return f"{less} latency is hidden, by {warps.before} → {warps.after} warps on an SM"


def _without(
    case: Case,
    uses: tuple[Sequence[Use], Sequence[Use]],
    differing: CausedDifference,
    slower: float,
) -> str:
    """Says that no count explains the time, what was not counted, and what went with it."""
    sides = zip(*uses, strict=True)
    unseen = [was.resource for was, now in sides if was.resource in OF_CHIP and _unseen(was, now)]
    but = f" (not counted: {' and '.join(unseen)})" if unseen else ""
    busy = [item for item in _consequences(uses, slower) if _use(item) >= BUSY]
    more = "more" if slower > 0 else "less"
    worth = " worth a quarter of the change" if any(x.points * slower > 0 for x in busy) else ""
    why = (
        f"that is busy for {BUSY:.0f}% of the time has {more} work{worth}"
        if busy
        else f"is busy for {BUSY:.0f}% of the time"
    )
    most = _by_rate(differing)
    went = (
        f" The largest that went with the time, by its unit's rate: {_share(most)}." if most else ""
    )
    if most and abs(most.explains or 0.0) >= 100 * PART * abs(slower):
        return f"No unit {why}{but}.{went}"
    if not most and (largest_change := _largest(case, differing)):
        went = f" The largest change that went with the time: {_spell(largest_change)}."
    return f"The counts name no cause: no unit {why}{but}.{went}"


def _by_rate(differing: CausedDifference) -> ChangedFigure | None:
    """Returns what went with the time and explains most by a rate, where that is worth a word."""
    leaders = [cause.leader for cause in differing.causes if not cause.noise]
    known = [figure for figure in leaders if figure.way == "with the time"]
    most = max(known, key=lambda figure: abs(figure.explains or 0.0), default=None)
    return most if most and abs(most.explains or 0.0) >= _WORTH else None


def _share(figure: ChangedFigure) -> str:
    return f"{_spell(figure)} ({figure.explains:+.1f}%)"


def _unseen(was: Use, now: Use) -> bool:
    """Whether the traffic of either is not known, or is what must move, the same in both."""
    return any(use.percent is None or use.kind in ("measured", "published") for use in (was, now))


def _warps(differing: CausedDifference) -> ChangedFigure | None:
    every = (figure for cause in differing.causes if not cause.noise for figure in cause.figures)
    return next((figure for figure in every if figure.metric == WARPS), None)


def _largest(case: Case, differing: CausedDifference) -> ChangedFigure | None:
    """Returns the largest relative change in what is executed that went with the time, if it is
    large and the count is no trifle beside the instructions."""
    counts = case.counts("smsp__inst_executed")
    least = _TRIFLE * counts.values[0] if counts else 0.0
    leaders = [
        figure
        for cause in differing.causes
        if not cause.noise and (figure := cause.leader).way == "with the time"
        if figure.kind != "built" and figure.change is not None and _factor(figure) > _LARGE
        if max(_number(figure.before), _number(figure.after)) >= least
    ]
    return max(leaders, key=_factor, default=None)


def _factor(figure: ChangedFigure) -> float:
    """Returns how often it doubled or halved, as a logarithm; infinite where none is left."""
    change = figure.change or 0.0
    return math.inf if change <= -1.0 else abs(math.log1p(change))


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0


def _spell(figure: ChangedFigure) -> str:
    return f"{figure.label}: {_value(figure.before)} → {_value(figure.after)}"


def _leader(
    differing: CausedDifference, slower: float, unit: Resource | None = None
) -> ChangedFigure | None:
    """Returns the leader of the first cause (of work for `unit`) that goes with the time and
    explains enough of it."""
    for cause in differing.causes:
        figure = cause.leader
        if cause.noise or figure.way != "with the time" or figure.explains is None:
            continue
        if unit and unit not in units(figure.metric)[:2]:
            continue
        if abs(figure.explains) >= 100 * PART * abs(slower):
            return figure
    return None


def _value(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)
