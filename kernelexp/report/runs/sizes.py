"""Results of a run of several sizes: at each, over all, and where the best arm changes."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.judge import oversizes
from kernelexp.judge.oversizes import Crossover
from kernelexp.judge.verdict import WRONG
from kernelexp.model.experiment import is_sweep, spell_point
from kernelexp.model.measurement import BASELINE
from kernelexp.model.record import Record, SizeResult, own_axes
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Span, paragraph, status, table

_SIDE_BY_SIDE = 4


def render(record: Record, charts: bool = True) -> Iterator[Block]:
    """Of a record with sizes; the rest of the page is about the last one."""
    results = oversizes.ordered(record.sizes)
    few = len(record.candidates) <= _SIDE_BY_SIDE and not is_sweep(record.experiment)
    yield _every(record, results) if few else _best(record, results)
    for result in results:
        if oversizes.best(result) is None:
            why = next(iter(result.verdicts.values())).sentence
            yield paragraph(f"Size {result.size}: {why}", style="warn")
    if charts:
        from kernelexp.report.charts import (
            changes,  # most runs are of one size
            text,
        )

        yield from text.render(list(changes.of_sizes(record)))
    crossed = list(oversizes.crossovers(record.sizes))
    for crossover in crossed:
        yield paragraph(Span("Crossover: ", "strong"), _crossover(record, crossover))
    if not crossed:
        winners = {winner for result in results if (winner := oversizes.best(result))}
        every = "any size" if all(map(oversizes.best, results)) else "a size that was timed"
        for winner in winners if len(winners) == 1 else ():
            yield paragraph(
                f"No crossover: nothing is faster than {_spell(record, winner)} by more than the "
                f"margin at {every}."
                if winner == BASELINE
                else f"No crossover: {_spell(record, winner)} is the best at {every}."
            )
    if few:
        yield from _overall(record)
    yield paragraph(
        Span(f"At size {record.size}", "strong"), " (each size has a record of its own):"
    )


def _every(record: Record, results: list[SizeResult]) -> Block:
    """A row per size and candidate, then what all sizes come to."""
    rows: list[tuple[Cell, ...]] = []
    for result in results:
        for name in record.names[1:]:
            first = name == record.names[1]
            rows.append(
                (
                    result.size if first else "",
                    f"{result.weight:g}" if first else "",
                    _spell(record, name),
                    _time(result.baseline_us),
                    _time(_scaled(result, name)),
                    figures.ratio(result.effect(name)) or figures.NONE,
                    status(result.verdicts[name].status),
                )
            )
    for name, candidate in record.judged.items():
        change = figures.ratio(oversizes.weighted(results, name)) or figures.NONE
        decided = status((candidate.over_sizes or candidate.verdict).status)
        rows.append((Span("all", "strong"), "", _spell(record, name), "", "", change, decided))
    header = ("size", "weight", "candidate", "baseline ms", "ms", "change", "verdict")
    shown = range(7) if len({result.weight for result in results}) > 1 else (0, *range(2, 7))
    return table(header, rows, numbers=(1, 3, 4, 5), unwrapped=(0, 6), shown=shown)


def _best(record: Record, results: list[SizeResult]) -> Block:
    """A row per size: which of many variants is the best there."""
    rows: list[list[Cell]] = []
    for result in results:
        name = oversizes.best(result)
        if name is None:
            rows.append([result.size, Span("not timed", "warn"), figures.NONE, ""])
            continue
        change = figures.ratio(result.effect(name))
        rows.append([result.size, _spell(record, name), _time(_scaled(result, name)), change])
    return table(("size", "best", "ms", "change"), rows, numbers=(2, 3), unwrapped=(0,))


def best_of(record: Record) -> Iterator[tuple[str, str, str]]:
    """Size, time with its unit and variant of the best at each size that was timed."""
    for result in oversizes.ordered(record.sizes):
        if name := oversizes.best(result):
            yield result.size, f"{_time(_scaled(result, name))} ms", _spell(record, name)


def crossings(record: Record) -> Iterator[str]:
    """A sentence for each crossover."""
    for crossover in oversizes.crossovers(record.sizes):
        yield f"Crossover {_crossover(record, crossover)}"


def _overall(record: Record) -> Iterator[Block]:
    for name, candidate in record.judged.items():
        decided = candidate.over_sizes
        if decided is not None:
            yield paragraph(
                Span("Over all sizes: ", "strong"),
                f"{_spell(record, name)}: " if len(record.candidates) > 1 else "",
                status(decided.status),
                f" ({decided.reason}). {decided.sentence}",
            )


def _crossover(record: Record, crossover: Crossover) -> str:
    where = f"between {crossover.after} and {crossover.before}"
    if crossover.at is not None:
        where += f", at about {crossover.parameter}={round(crossover.at):,}"
    before, after = (_spell(record, arm) for arm in (crossover.was, crossover.now))
    wrong = [
        f" {_spell(record, arm)} is {verdict.status} at {result.size}."
        for result in record.sizes
        for arm in (crossover.was, crossover.now)
        if (verdict := result.verdicts.get(arm)) and verdict.status in WRONG
    ]
    return f"{where}: {before} is the best before, {after} after.{''.join(dict.fromkeys(wrong))}"


def _spell(record: Record, name: str) -> str:
    """A candidate by its difference, the baseline by what the others change; of a sweep all of
    both."""
    arm = record.by_name[name]
    own = own_axes(record.baseline, arm)
    if name == BASELINE or is_sweep(record.experiment):
        differing = {axis for other in record.arms for axis in own_axes(record.baseline, other)}
        own = {axis: value for axis, value in arm.axes.items() if axis in differing}
    return f"{spell_point(own)}{' (the baseline)' if name == BASELINE else ''}"


def _scaled(result: SizeResult, name: str) -> float | None:
    effect = result.effect(name)
    if name == BASELINE or effect is None or result.baseline_us is None:
        return result.baseline_us if name == BASELINE else None
    return result.baseline_us * effect.ratio


def _time(time_us: float | None) -> str:
    return figures.NONE if time_us is None else figures.time_ms(time_us / 1000)
