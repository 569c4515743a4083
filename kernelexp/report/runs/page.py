"""The page of one run: one row per arm, what differs, what came before, the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernelexp.facts import metrics
from kernelexp.judge import consistency, ranking
from kernelexp.judge import expectations as judging
from kernelexp.judge.consistency import Doubts
from kernelexp.model import experiment
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import FULL, as_argument, spell, spell_point
from kernelexp.model.record import Candidate, Record, own_axes
from kernelexp.report.document import arms, figures
from kernelexp.report.document.arms import measurement_lines
from kernelexp.report.document.document import (
    Block,
    Cell,
    Heading,
    Span,
    grouped,
    paragraph,
    status,
    table,
)
from kernelexp.report.runs import sizes
from kernelexp.report.variants import edited, emulation, expectations

if TYPE_CHECKING:  # a page needs nothing of what judges again
    from kernelexp.services.run.again import Rejudged

_OPCODES_SHOWN = 5
# Up to so many candidates their figures stand side by side in 80 columns.
_SIDE_BY_SIDE = 2


def render(
    record: Record,
    earlier: Sequence[Record] = (),
    path: str = "",
    verbose: bool = False,
    option: str = " (--verbose shows them)",
    charts: bool = True,
    doubts: Doubts = consistency.doubts,
) -> Iterator[Block]:
    """Yields the result of a run; `verbose` adds every figure of every arm. `option` is printed
    after the number of figures that are left out; it is empty where there is no command line.
    `charts` is false for pages that draw their own. `doubts` checks the samples of a record."""
    yield Heading(f"{record.experiment}  {record.title}   {record.kernel}, {record.arch}")
    if record.edited:
        yield paragraph(consistency.EDIT, style="warn")
    yield paragraph(" ".join(record.hypothesis.split()), indent=2)
    if record.sizes:
        yield from sizes.render(record, charts)
    yield _arms(record)
    yield from _same_code(record)
    yield from _shared_axes(record)
    yield from _differences(record, option)
    named = record.by_name
    yield from arms.warnings(named)
    yield from arms.compiler_errors(named)
    yield from emulation.results(named, _arguments(record))
    if record.recounted:
        yield paragraph(f"Emulated again after the run: {record.recounted}.", style="dim")
    if verbose:
        yield from arms.all_figures(named)
        yield from emulation.dearest(named)
    yield from measurement_lines(record, verbose)
    yield from _earlier(record, earlier)
    yield from _verdicts(record)
    said = {
        doubt.casefold() for arm in record.arms if arm.emulated for doubt in arm.emulated.doubts
    }
    own = (
        sentence
        for candidate in record.candidates
        for sentence in candidate.remarks
        if sentence.rstrip(".").casefold() not in said
    )
    for sentence in dict.fromkeys((*own, *consistency.remarks(record, doubts))):
        if sentence == consistency.EDIT:  # said first
            continue
        yield paragraph(sentence, style="warn")
    if record.expect:
        yield from expectations.render(judging.of_record(record))
    if not verbose and (hidden := _hidden(record, option)):
        yield paragraph(hidden, style="dim")
    if path:
        yield paragraph(f"Record: {path}", style="dim")


_AS_MANY = "as many of each SASS instruction as the baseline"


def _same_code(record: Record) -> Iterator[Block]:
    """Names the placebos among the candidates before any of their figures."""
    same = [name for name, candidate in record.judged.items() if candidate.same_code]
    if same:
        words = "the same instructions as the baseline, launched alike: a placebo, and no question"
        yield paragraph(f"{', '.join(same)}: {words}.", style="warn")


def _arguments(record: Record) -> list[str]:
    """Returns the argument of `kernelexp emulate` for each arm: the experiment's id, if it has
    one."""
    if experiment.is_written(record.experiment):
        return [record.experiment] * len(record.arms)
    return [as_argument(f"{arm.kernel}@{arm.arch}: {spell_point(arm.axes)}") for arm in record.arms]


def verdict_of(record: Record, candidate: Candidate) -> Span:
    """The word of a record's verdict on a candidate; of an edited record it is not shown."""
    return Span("edited", "warn") if record.edited else status(candidate.verdict.status)


def _arms(record: Record) -> Block:
    """A row per arm: where it departs from the others, its time, its verdict."""
    timed = any(arm.measured or arm.published for arm in record.arms)
    refused, differing = record.baseline.refused, differing_axes(record)
    words = {name: verdict_of(record, one) for name, one in record.judged.items()}
    rows: list[list[Cell]] = []
    for name, arm in record.by_name.items():
        axes = differing if arm is record.baseline else own_axes(record.baseline, arm)
        own = {axis: value for axis, value in arm.axes.items() if axis in axes}
        cells: list[Cell] = [Span(name, "strong"), spell_point(own)]
        if timed:
            cells += [figures.cell_of(arm), figures.effect(arm.effect)]
        rows.append([*cells, words.get(name) or (status(refused.status) if refused else "")])
    times = [figures.head_of(record.arms), "change"] if timed else []
    header = ["", "variant", *times, "verdict"]
    return table(header, rows, numbers=range(2, len(header) - 1), unwrapped=(0, len(header) - 1))


def differing_axes(record: Record) -> list[str]:
    """The axes that not all arms have the same value of."""
    axes = dict.fromkeys(axis for arm in record.arms for axis in arm.axes)

    def spelled(axis: str) -> set[str]:
        return {spell(arm.axes[axis]) if axis in arm.axes else "" for arm in record.arms}

    return [axis for axis in axes if len(spelled(axis)) > 1]


def _shared_axes(record: Record) -> Iterator[Block]:
    differing = differing_axes(record)
    shared = {axis: v for axis, v in record.baseline.axes.items() if axis not in differing}
    whose = "both" if len(record.arms) == 2 else "all"
    if shared:
        yield paragraph(f"{whose}: {spell_point(shared)}", style="dim")


def _differences(record: Record, option: str) -> Iterator[Block]:
    """Yields the differences from the baseline in build and counters."""
    base = record.baseline
    if not base.is_built:
        return
    built = {
        name: candidate.arm for name, candidate in record.judged.items() if candidate.arm.is_built
    }
    if len(record.candidates) <= _SIDE_BY_SIDE:
        yield from edited.render(base, built, record.size or FULL, option)
        for name, arm in built.items():
            yield from _opcodes(name, base, arm)
        return
    own = {spell_point(own_axes(base, arm)): arm for arm in built.values()}
    yield from arms.matrix({"baseline": base, **own})
    if same := [name for name, arm in own.items() if _is_same_code(base, arm)]:
        yield paragraph(f"{'; '.join(same)}: {_AS_MANY}", style="dim")


def _opcodes(name: str, base: Arm, arm: Arm) -> Iterator[Block]:
    """The opcodes whose static count differs most from the baseline's."""
    one, other = base.build or base.program, arm.build or arm.program
    if one is None or other is None:
        return
    if _is_same_code(base, arm):
        yield paragraph(f"{name}: {_AS_MANY}", style="dim")
        return
    was, now = one.opcodes, other.opcodes
    changed = [op for op in {**was, **now} if was.get(op, 0) != now.get(op, 0)]
    if not changed:
        return
    changed.sort(key=lambda op: (-abs(now.get(op, 0) - was.get(op, 0)), op))
    words = (f"{op} {was.get(op, 0):,} → {now.get(op, 0):,}" for op in changed[:_OPCODES_SHOWN])
    yield paragraph(f"{name}, SASS most changed: " + ", ".join(words))


def _is_same_code(base: Arm, arm: Arm) -> bool:
    """Whether opcodes are the same, and for other entries that are launched, their resources."""
    one, other = base.build or base.program, arm.build or arm.program
    if not (one and other and one.opcodes and one.opcodes == other.opcodes):
        return False
    return not (base.build and arm.build) or base.build.others == arm.build.others


def _hidden(record: Record, option: str) -> str:
    """Says what the page leaves out, so that nobody looks for it in vain."""
    compiler = f"nvcc {record.compiler}" if record.compiler else ""
    shown = [arm for arm in record.arms if arm.is_built]
    every = [metrics.figures(arm, *arms.KINDS) for arm in shown]
    shared = set.intersection(*map(set, every)) if every else set()
    if not shared:
        return compiler
    differing = {
        difference.metric.name
        for arm in shown
        for difference in ranking.between(shown[0], arm, *arms.KINDS)
    }
    equal = len(shared - differing)
    if len(record.candidates) <= _SIDE_BY_SIDE:
        words = [f"{equal} figures are equal in all arms{option}"]
    else:
        left_out = len(differing.difference(arms.columns(shown)))
        words = [f"{left_out} more figures differ{option}"] if left_out else []
        words.append(f"{equal} are equal in all arms")
    return "; ".join(filter(None, (compiler, *words))) + "."


def _earlier(now: Record, earlier: Sequence[Record]) -> Iterator[Block]:
    """Yields published results of the experiment, and the last time that each card measured it."""
    for record in earlier:
        if record.provenance == "published":
            base = record.baseline.published
            words = [f"baseline {figures.published_line(base)}"] if base else []
            for candidate in record.candidates:
                own = spell_point(own_axes(record.baseline, candidate.arm))
                result = candidate.arm.published
                line = figures.published_line(result) if result else "no figures"
                words.append(f"{own}: {line}, {candidate.verdict.status}")
            yield from _lines(f"Published ({record.source}):", words)
    timed = [one for one in reversed(earlier) if one.estimate and not one.edited]
    alike = [record for record in timed if record.size == (now.size or FULL)]
    latest: dict[str, Record] = {}
    for record in alike or timed[:1]:
        latest.setdefault(record.device, record)
    for last in latest.values():
        words = [
            f"{spell_point(own_axes(last.baseline, candidate.arm))}: "
            f"{figures.effect(candidate.arm.effect)}, {candidate.verdict.status}"
            for candidate in last.candidates
            if candidate.arm.effect
        ]
        other = any(then.files != arm.files for then, arm in zip(last.arms, now.arms, strict=False))
        when = "Measured before the sources changed" if other else "Measured before"
        size = f", size {last.size}" if last.size else ""
        yield from _lines(f"{when} ({last.device}{size}, {last.created[:10]}):", words)


def _lines(title: str, lines: Sequence[str]) -> Iterator[Block]:
    yield paragraph(title, style="dim")
    for line in lines:
        yield paragraph(line, indent=2)


def _verdicts(record: Record) -> Iterator[Block]:
    """A paragraph per verdict; candidates with the same words share one."""
    groups = grouped(
        ((one.verdict.status, one.verdict.reason, one.verdict.sentence, one.reproduction), one)
        for one in record.candidates
    )
    refused = record.baseline.refused
    if refused and not any(c.verdict.reason == "baseline_failed" for c in record.candidates):
        words = f" ({refused.reason}). {refused.sentence}"
        yield paragraph(Span("Baseline: ", "strong"), status(refused.status), words)
    for (verdict, reason, sentence, reproduction), candidates in groups.items():
        own = (spell_point(own_axes(record.baseline, item.arm)) for item in candidates)
        yield paragraph(
            Span("Verdict as edited: " if record.edited else "Verdict: ", "strong"),
            f"{'; '.join(own)}: " if len(record.candidates) > 1 else "",
            Span(verdict, "warn") if record.edited else status(verdict),
            f" ({reason}). {sentence}",
        )
        if reproduction:
            yield paragraph(reproduction, indent=2)


def summary(records: Sequence[Record], failures: dict[str, str]) -> Iterator[Block]:
    """One row per candidate of several runs, after their pages."""
    rows: list[tuple[Cell, ...]] = []
    for record in records:
        for name, candidate in record.judged.items():
            again: Cell = Span("no", "bad") if candidate.reproduces is False else ""
            rows.append(
                (
                    record.experiment if name == record.names[1] else "",
                    spell_point(own_axes(record.baseline, candidate.arm)),
                    figures.time_of(candidate.arm),
                    figures.ratio(candidate.arm.effect),
                    verdict_of(record, candidate),
                    "yes" if candidate.reproduces else again,
                )
            )
    rows += [
        (name, Span(words, "broken"), "", "", "not run", "") for name, words in failures.items()
    ]
    header = ("Id", "Candidate", "ms", "Change", "Verdict", "Reproduces")
    yield table(header, rows, numbers=(2, 3), unwrapped=(0, 4))
    yield from _cards(records)


def _cards(records: Sequence[Record]) -> Iterator[Block]:
    """Names the GPU that timed each experiment, where it was not the same for all."""
    timed = ((one.measurement.device, one.experiment) for one in records if one.measurement)
    cards = grouped(((device.name, device.uuid), name) for device, name in timed)
    if len(cards) > 1:
        words = (f"{name} {uuid}: {', '.join(ids)}" for (name, uuid), ids in cards.items())
        yield paragraph(f"Timed on {'; '.join(words)}. Times of two GPUs do not compare.")


def judged_again(rejudged: Rejudged) -> Iterator[Block]:
    """The figures of a record's samples, then each verdict next to the record's own."""
    yield from measurement_lines(rejudged.record, verbose=True)
    for candidate, now in zip(rejudged.record.candidates, rejudged.verdicts, strict=True):
        then = candidate.verdict.status
        yield paragraph(
            Span(f"Verdict at a margin of {100 * rejudged.margin:g}%: ", "strong"),
            status(now.status),
            f" ({now.reason}). {now.sentence}",
        )
        if then is not now.status:
            yield paragraph(f"The record's own: {then}.")
    for sentence in rejudged.remarks:
        yield paragraph(sentence, style="warn")
