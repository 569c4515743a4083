"""Differences of two variants on the page of `explain`, with what they explain of the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.facts import metrics
from kernelexp.facts.counters import EXECUTED, PIPE
from kernelexp.judge.causes import OF_TIME, CausedDifference
from kernelexp.judge.limits.changed import ON_AN_SM, Cause, ChangedFigure
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Items, paragraph, table

_WITH_IT = 3
ROWS = 3
LEAST_EXPLAINED = 1.0
"""Percent of the time from which what a difference explains has a row on the short page."""
_FACTOR = 9.0
_LEAST = 0.1


def render(
    differing: CausedDifference, are_published: bool, verbose: bool, slower: float | None
) -> Iterator[Block]:
    causes = [cause for cause in differing.causes if not cause.noise]
    shown = causes if verbose else key(causes, is_timed=differing.of == OF_TIME)
    if shown:
        rows = [
            (
                f"{number}.",
                cause.leader.label,
                _value(cause.leader.before),
                _value(cause.leader.after),
                _change(cause.leader),
                _explains(cause),
            )
            for number, cause in enumerate(shown, 1)
        ]
        header = ("", "differs most", "baseline", "candidate", "change", "explains")
        yield table(header, rows, numbers=(0, 2, 3, 4, 5))
    if verbose:
        yield Items(tuple(map(_with_it, differing.causes)))
    cells = [_explains(cause) for cause in shown]
    unknown = " —: no unit's rate says how much." if figures.NONE in cells else ""
    if any(cell != figures.NONE for cell in cells):
        on = f" on {100 * differing.busy:.1f}% of the SMs" if differing.busy < 1.0 else ""
        yield paragraph(
            "Explains: what the change adds or saves by the rate of the unit that executes it"
            f"{on}, in percent of {differing.of}, and no more than the next limit or the unit's "
            "other counts leave of it: less where other work hides it, more where it is waited "
            f"for.{_polls(shown, differing)}"
            f"{unknown}",
            style="dim",
        )
    elif unknown:
        yield paragraph(unknown.strip(), style="dim")
    waits = differing.waits if verbose else _largest_waits(differing.waits, slower)
    yield from _waits(waits, are_published)
    left = len(differing.causes) - len(shown)
    if verbose:
        yield from _left_out(differing)
    elif left:
        more = "more" if shown else "difference" if left == 1 else "differences"
        yield paragraph(f"{left} {more} with --verbose.", style="dim")


def _largest_waits(waits: Sequence[ChangedFigure], slower: float | None) -> list[ChangedFigure]:
    """Of a slower arm first those that grew, of a faster one those that fell."""
    ahead = [wait for wait in waits if (wait.points or 0.0) * (slower or 0.0) > 0]
    return [*ahead, *(wait for wait in waits if wait not in ahead)][:ROWS]


def _polls(shown: Sequence[Cause], differing: CausedDifference) -> str:
    """Says what the share of instructions leaves out of their difference."""
    changed = [cause.leader for cause in shown if cause.leader.kind == "emulated"]
    if not differing.polled or not any(item.metric in EXECUTED.values() for item in changed):
        return ""
    more = "more" if differing.polled > 0 else "fewer"
    return f" Left out of instructions: {abs(differing.polled):,} {more} that poll mbarriers."


def key(causes: Sequence[Cause], is_timed: bool) -> list[Cause]:
    """The few that explain some of the time by a rate, and the warps that hide latency; of arms
    that were not timed, where no rate is known, those that changed most."""
    known = [cause for cause in causes if cause.leader.explains is not None]
    large = [
        cause
        for cause in causes
        if abs(cause.leader.explains or 0.0) >= LEAST_EXPLAINED
        or (cause.leader.metric in ON_AN_SM and cause.leader.way != "against it")
    ]
    return (large if known or is_timed else list(causes))[:ROWS]


def _left_out(differing: CausedDifference) -> Iterator[Block]:
    """Yields the counts that no row has, and why."""
    if differing.uneven:
        few = "1 count is" if differing.uneven == 1 else f"{differing.uneven} counts are"
        yield paragraph(
            f"{few} not compared: two small sizes do not solve both arms' counts.", style="dim"
        )
    if differing.small:
        differ = "differs and explains" if differing.small == 1 else "differ and explain"
        yield paragraph(f"{differing.small} more {differ} nothing.", style="dim")


def _with_it(cause: Cause) -> str:
    """Says where a cause's figures are from, which way it goes, and what else it changed, in a
    line."""
    left = list(cause.figures if cause.noise else cause.figures[1:])
    if cause.name == "instructions":  # of which pipe most are, whether or not its rate is known
        left.sort(key=_by_count)
    kind, way = cause.leader.kind, cause.noise or cause.leader.way
    others = [
        f"{item.label} {_value(item.before)} → {_value(item.after)}"
        + _aside(
            item.kind if item.kind != kind else "",
            item.way if item.way != way and not cause.noise else "",
        )
        for item in left[:_WITH_IT]
    ]
    rest = len(left) - len(others)
    words = "; ".join(others) + (f"; {rest} more" if rest else "")
    goes = way if cause.noise or not way else f"the row goes {way}"
    return f"{cause.name}{_aside(kind, goes)}" + (f": {words}." if words else ".")


def _aside(*words: str) -> str:
    said = ", ".join(filter(None, words))
    return f" ({said})" if said else ""


def _by_count(figure: ChangedFigure) -> tuple[bool, float]:
    numbers = [value for value in (figure.before, figure.after) if not isinstance(value, str)]
    moved = abs(numbers[1] - numbers[0]) if len(numbers) == 2 else 0.0
    return not figure.metric.startswith(PIPE), -moved


def _change(figure: ChangedFigure) -> str:
    """Spells a change in percent; many times as much is a factor."""
    if figure.change is None:
        return ""
    if figure.change >= _FACTOR:
        return f"x {1 + figure.change:,.0f}"
    return f"{100 * figure.change:+.1f}%"


def _explains(cause: Cause) -> str:
    share = cause.leader.explains
    if share is None:
        return figures.NONE
    return f"{share:+.1f}%" if abs(share) >= _LEAST else f"< {_LEAST}%"


def _waits(waits: Sequence[ChangedFigure], are_published: bool) -> Iterator[Block]:
    """Tabulates where warps wait, by points; of published profiles, which leave out small reasons,
    of those that they have."""
    rows = [
        (wait.label, f"{wait.before:.2f}%", f"{wait.after:.2f}%", f"{wait.points:+.2f}")
        for wait in waits
    ]
    if rows:
        of = "of the stalls that are published" if are_published else "of the warps' time"
        header = (of, "baseline", "candidate", "points")
        yield table(header, rows, numbers=(1, 2, 3))


def _value(value: metrics.Value) -> str:
    """ncu's counts are floats that are whole."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return figures.value(int(value) if whole else value)
