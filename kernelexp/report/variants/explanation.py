"""The page of `explain`: verdict, expectations, differences, limits, what would decide the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.dossier.standing import before_change
from kernelexp.dossier.tree import same_code_words
from kernelexp.facts import widths
from kernelexp.judge.explanation import Question, slowdown
from kernelexp.model.experiment import spell_point
from kernelexp.model.record import own_axes
from kernelexp.report.document.document import (
    Block,
    Heading,
    Items,
    Span,
    grouped,
    paragraph,
    status,
)
from kernelexp.report.variants import bounds, difference_table, expectations
from kernelexp.services import kernel_logs
from kernelexp.services.explaining import Explanation


def render(explanation: Explanation, verbose: bool = False) -> Iterator[Block]:
    """Renders an explanation for a terminal or as markdown: the few differences that explain most
    of the time and the nearest limits; with `verbose`, all of them, and where shares of limits are
    from."""
    explained, written, standing = explanation.explained, explanation.written, explanation.standing
    one, other = explanation.sides.baseline, explanation.sides.candidate
    own = spell_point(own_axes(one.case.arm, other.case.arm))
    yield Heading(f"{explained.experiment}  {written.title}: {own}")
    yield _verdict(explanation)
    if others := _others(explanation):
        yield paragraph(others, style="dim")
    if elsewhere := kernel_logs.of_cards(standing, explanation.records)[1:]:
        yield paragraph(f"Elsewhere: {'; '.join(elsewhere)}.", style="warn")
    if standing.changed and not standing.doubted:
        words = ", ".join(standing.changed)
        yield paragraph(f"The verdict is from before these changed: {words}.", style="warn")
    elif standing.rewritten:
        words = same_code_words(standing.rewritten)
        yield paragraph(f"{words[0].upper()}{words[1:]}.", style="dim")
    for sentence in explained.warnings:
        yield paragraph(sentence, style="warn")
    yield from expectations.render({"candidate": explained.expectations})
    if written.notes:
        yield paragraph(f"Notes: {written.notes.rstrip('.')}.")
    refused = list(_refused(explanation))
    yield from refused
    if refused:
        return
    for sentence in filter(None, (*explained.conclusion, explained.modelled)):
        yield paragraph(sentence)
    profiles = (one.profile, other.profile)
    are_published = any(item and item.provenance == "published" for item in profiles)
    change = explanation.change
    yield from difference_table.render(explained.differences, are_published, verbose, change)
    if rest := _unexplained(explanation):
        yield paragraph(rest, style="dim")
    yield from _limits(explanation, verbose)
    if standing.candidate and standing.candidate.same_code:
        yield paragraph(
            "The candidate is a placebo, the same instructions launched alike: there is nothing "
            "to decide."
        )
    if explained.undecided:
        yield paragraph(Span("What would decide:", "strong"))
        yield Items(tuple(_by_command(explained.undecided)))


def _others(explanation: Explanation) -> str:
    """Says which of several candidates this is, and the fastest that was judged with it."""
    record, count = explanation.standing.record, len(explanation.written.candidates)
    if count == 1 or record is None or explanation.standing.doubted:
        return ""
    arm = explanation.sides.candidate.case.arm
    places = {
        number: len(point)
        for number, point in enumerate(explanation.written.candidates, 1)
        if all(arm.axes.get(axis) == value for axis, value in point.items())
    }
    # Of points that hold one another's axes, the one with most of them.
    own = f"Candidate {max(places, key=lambda place: places[place])}" if places else "One"
    words = f"{own} of {count}"
    changes = {
        index: change
        for index, other in enumerate(record.candidates)
        if (change := slowdown(record.baseline, other.arm)) is not None
    }
    if not changes:
        return f"{words}."
    best = min(changes, key=lambda index: changes[index])
    own = spell_point(own_axes(record.baseline, record.candidates[best].arm))
    return f"{words}. The fastest of them: {own}, {100 * changes[best]:+.1f}%."


def _refused(explanation: Explanation) -> Iterator[Block]:
    """Says why there is nothing to compare, unless the verdict says it already; nothing if both
    arms can run."""
    verdict, record = explanation.standing.verdict, explanation.standing.record
    for name, side in explanation.sides.named():
        if refused := side.case.arm.refused:
            is_theirs = record is not None and record.provenance == "published"
            is_said = is_theirs or (verdict and refused.sentence in verdict.sentence)
            why = f". {refused.sentence}" if not is_said else "."
            yield paragraph(f"The {name} has no figures: ", status(refused.status), why)


def _verdict(explanation: Explanation) -> Block:
    standing = explanation.standing
    if standing.doubted and standing.record:
        words = f"Verdict: none: {before_change(standing)} [{standing.record.run}]."
        return paragraph(words, style="warn")
    if standing.verdict is None or standing.record is None:
        return paragraph("Verdict: none, as there is no record of it.")
    verdict, record = standing.verdict, standing.record
    is_published = record.provenance == "published"
    place = record.source if is_published else record.device or "no GPU"
    arms = [side.case.arm for _, side in explanation.sides.named()]
    change = slowdown(*arms) if is_published else None
    by = f" {100 * abs(change):.1f}% {'slower' if change > 0 else 'faster'}." if change else ""
    return paragraph(
        Span("Verdict: ", "strong"),
        status(verdict.status),
        f" ({verdict.reason}).{by} {verdict.sentence} [{record.run}, {place}]",
    )


def _unexplained(explanation: Explanation) -> str:
    """Says where the rates of what goes with the time explain less than half of its change."""
    change = 100 * abs(explanation.change or 0.0)
    shares = [
        abs(cause.leader.explains or 0.0)
        for cause in explanation.explained.differences.causes
        if not cause.noise and cause.leader.way == "with the time"
    ]
    if (
        not change
        or max(shares, default=0.0) < difference_table.LEAST_EXPLAINED
        or sum(shares) >= change / 2
    ):
        return ""
    return (
        f"By these rates, what goes with the time makes {sum(shares):.1f}% of the time; it changed "
        f"by {change:.1f}%."
    )


def _limits(explanation: Explanation, verbose: bool) -> Iterator[Block]:
    uses = dict(explanation.explained.uses.named())
    yield from bounds.render(uses, verbose, most=difference_table.ROWS)
    if explanation.explained.power and verbose:
        yield paragraph(f"Power, of all arms together: {explanation.explained.power}.")
    for name, side in explanation.sides.named():
        emulated = side.case.arm.emulated
        if emulated and emulated.unsupported:
            yield paragraph(f"{name}: not emulated. {emulated.unsupported}", style="warn")
        if not side.case.arm.counted and (words := widths.summarize(emulated)):
            yield paragraph(f"{name}: {words}.", style="warn")
    case = explanation.sides.candidate.case
    if case.scaled and (verbose or _is_emulated(explanation)):
        yield paragraph(f"Emulated counters of {case.of_size}: {case.scaled}.", style="dim")


def _is_emulated(explanation: Explanation) -> bool:
    """Whether the short page has a figure that was emulated."""
    causes = difference_table.key(explanation.explained.differences.causes, is_timed=True)
    changed = [cause.leader.kind for cause in causes]
    return "emulated" in (
        *changed,
        *(use.kind for _, side in explanation.explained.uses.named() for use in side),
    )


def _by_command(questions: Sequence[Question]) -> Iterator[str]:
    """A sentence for each command, with all that it would answer."""
    commands = grouped((question.command, question) for question in questions)
    for command, item in commands.items():
        answers = "; ".join(f"{entry.question} ({entry.evidence})" for entry in item)
        yield f"{command}: {answers}."
