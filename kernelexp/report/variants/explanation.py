"""The page of `explain`: verdict, expectations, differences, limits, what would decide the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from kernelexp.dossier import comparability
from kernelexp.dossier.dossiers import Dossier
from kernelexp.dossier.standing import Standing
from kernelexp.facts import widths
from kernelexp.judge import likely, samebuild
from kernelexp.judge.causes import CausedDifference, differing
from kernelexp.judge.expectations import Judged, judge
from kernelexp.judge.explanation import (
    Question,
    moved,
    questions,
    relieved,
    slowdown,
    work,
)
from kernelexp.judge.limits import bottleneck
from kernelexp.judge.limits.bounds import Use, nearest, uses, uses_of_both
from kernelexp.model.arm import Verdict
from kernelexp.model.axes import AxisValue, spell_point
from kernelexp.model.experiment import Experiment
from kernelexp.model.record import Record, own_axes
from kernelexp.report.document.document import (
    Block,
    Heading,
    Items,
    Span,
    paragraph,
    status,
)
from kernelexp.report.log import logbook
from kernelexp.report.variants import bounds, difference_table, expectations

T = TypeVar("T")


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """All that explains one candidate of an experiment."""

    experiment: str
    written: Experiment
    standing: Standing
    baseline: Dossier
    candidate: Dossier
    judged: tuple[Judged, ...]
    differing: CausedDifference
    uses: tuple[tuple[Use, ...], tuple[Use, ...]]
    questions: tuple[Question, ...]
    elsewhere: tuple[str, ...]
    """Its verdicts on other GPUs, where they differ."""
    modelled: str
    """What the model of time says of the two, as a sentence; empty where it was not asked."""


def assemble(
    name: str,
    written: Experiment,
    number: int,
    standing: Standing,
    one: Dossier,
    other: Dossier,
    modelled: str = "",
    records: Sequence[Record] = (),
) -> Explanation:
    """Assembles the evidence on candidate `number`, counted from 1; `records` are all of its
    experiment."""
    arms = one.case.arm, other.case.arm
    margin = standing.record.margin if standing.record else 0.01
    differ = differing(one.case, other.case, _direction(standing, slowdown(*arms)))
    return Explanation(
        experiment=name,
        written=written,
        standing=standing,
        baseline=one,
        candidate=other,
        judged=judge(written.expectations[number - 1], *arms, margin, name),
        differing=differ,
        uses=uses_of_both(one.case, other.case),
        questions=(
            ()
            if standing.candidate and standing.candidate.same_code
            else tuple(questions(one.case, other.case, name, differ))
        ),
        elsewhere=tuple(logbook.of_cards(standing, records)[1:]),
        modelled=modelled,
    )


def _direction(standing: Standing, slower: float | None) -> float | None:
    """The change of time where it has a direction: none within the margin, or of both signs."""
    effect = standing.arm.measured.effect if standing.arm and standing.arm.measured else None
    if standing.verdict and standing.verdict.status == "NEUTRAL":
        return None
    return None if effect and effect.low <= 1 <= effect.high else slower


class OfBoth(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One value for each arm."""

    baseline: T
    candidate: T


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence on one candidate of an experiment."""

    experiment: str
    candidate: dict[str, AxisValue]
    verdict: Verdict | None
    run: str | None
    changed_since: tuple[str, ...]
    conclusion: tuple[str, ...]
    """What the arms are bound by."""
    expectations: tuple[Judged, ...]
    differences: CausedDifference
    uses: OfBoth[tuple[Use, ...]]
    nearest: OfBoth[str | None]
    """The limit that is nearest."""
    counters: OfBoth[str | None]
    """How emulated counters were scaled to the full problem, as the end of a sentence."""
    power: str | None
    profiles: OfBoth[str | None]
    """Their runs."""
    warnings: tuple[str, ...]
    undecided: tuple[Question, ...]
    modelled: str = ""


def to_values(explanation: Explanation) -> Explained:
    """The explanation, for programs."""
    standing = explanation.standing
    one, other = explanation.baseline, explanation.candidate
    near, other_near = (nearest(use) for use in explanation.uses)
    return Explained(
        experiment=explanation.experiment,
        candidate=standing.variant.axes,
        verdict=standing.verdict,
        run=standing.record.run if standing.record else None,
        changed_since=standing.changed,
        conclusion=tuple(conclusions(explanation)),
        expectations=explanation.judged,
        differences=explanation.differing,
        uses=OfBoth(baseline=explanation.uses[0], candidate=explanation.uses[1]),
        nearest=OfBoth(
            baseline=near.resource if near else None,
            candidate=other_near.resource if other_near else None,
        ),
        counters=OfBoth(baseline=one.case.scaled or None, candidate=other.case.scaled or None),
        power=other.case.power or None,
        profiles=OfBoth(
            baseline=one.profile.run if one.profile else None,
            candidate=other.profile.run if other.profile else None,
        ),
        warnings=tuple(_warnings(explanation)),
        undecided=explanation.questions,
        modelled=explanation.modelled,
    )


def render(explanation: Explanation, verbose: bool = False) -> Iterator[Block]:
    """Renders an explanation for a terminal or as markdown: the few differences that explain most
    of the time and the nearest limits; with `verbose`, all of them, and where shares of limits are
    from."""
    own = spell_point(own_axes(explanation.baseline.case.arm, explanation.candidate.case.arm))
    yield Heading(f"{explanation.experiment}  {explanation.written.title}: {own}")
    yield _verdict(explanation)
    if others := _others(explanation):
        yield paragraph(others, style="dim")
    if explanation.elsewhere:
        yield paragraph(f"Elsewhere: {'; '.join(explanation.elsewhere)}.", style="warn")
    if explanation.standing.changed:
        words = ", ".join(explanation.standing.changed)
        yield paragraph(f"The verdict is from before these changed: {words}.", style="warn")
    for sentence in _warnings(explanation):
        yield paragraph(sentence, style="warn")
    yield from expectations.render({"candidate": explanation.judged})
    if explanation.written.notes:
        yield paragraph(f"Notes: {explanation.written.notes.rstrip('.')}.")
    refused = list(_refused(explanation))
    yield from refused
    if refused:
        return
    for sentence in conclusions(explanation):
        yield paragraph(sentence)
    if explanation.modelled:
        yield paragraph(explanation.modelled)
    profiles = (explanation.baseline.profile, explanation.candidate.profile)
    are_published = any(item and item.provenance == "published" for item in profiles)
    slower = _judged(explanation)
    yield from difference_table.render(explanation.differing, are_published, verbose, slower)
    if rest := _unexplained(explanation):
        yield paragraph(rest, style="dim")
    yield from _limits(explanation, verbose)
    if (candidate := explanation.standing.candidate) and candidate.same_code:
        yield paragraph(
            "The candidate is a placebo, the same instructions launched alike: there is nothing "
            "to decide."
        )
    if explanation.questions:
        yield paragraph(Span("What would decide:", "strong"))
        yield Items(tuple(_by_command(explanation.questions)))


def conclusions(explanation: Explanation) -> Iterator[str]:
    """Yields what was changed with its likely cause, then what either arm is bound by."""
    before, case, after = explanation.baseline.case, explanation.candidate.case, explanation.uses[1]
    if before.arm.refused or case.arm.refused:
        return
    slower = slowdown(before.arm, case.arm)
    judged = _judged(explanation)
    differs = any(not cause.noise for cause in explanation.differing.causes)
    of_time = judged if differs else None
    first = likely.conclude(before, case, explanation.uses, explanation.differing, of_time)
    if not differs:
        first = f"{first} {_nothing(explanation.differing)}".strip()
    if first:
        yield first
    near = nearest(after)
    if near is None or near.percent is None:
        grids = bottleneck.of_grids(before, case)
        words = bottleneck.conclude(case, after, "The candidate")
        if before.time_s == case.time_s == 0 and not (before.ratios_of or case.ratios_of):
            shares = bottleneck.allowed_of(before, case)
            words = bottleneck.of_both(*explanation.uses, shares) or words
        yield f"{grids} {words.removeprefix(bottleneck.of_grid(case)).strip()}" if grids else words
        return
    allowed = bottleneck.allowed_of(before, case)
    of_grid = likely.of_allowed(before, case, explanation.uses)
    said = likely.largest(of_grid, judged) if judged else None
    alone = _one_profile(explanation)
    sentences = (
        bottleneck.of_grids(before, case),
        moved(*explanation.uses, allowed, alone),
        alone,
        relieved(*explanation.uses, judged, allowed[0]),
        work(
            *explanation.uses, slower, explanation.differing.waits, said.resource if said else None
        ),
        bottleneck.of_latency(case, after, "The candidate"),
        bottleneck.of_same_grid(case) if bottleneck.is_same_grid(before, case) else "",
        bottleneck.of_power(case),
    )
    yield " ".join(filter(None, sentences))


def _nothing(differing: CausedDifference) -> str:
    """Says that no difference is left, as far as it goes."""
    trifles = ", but for trifles" * bool(differing.small)
    return f"Nothing that is counted differs{_as_far(differing) or trifles}."


def _as_far(differing: CausedDifference) -> str:
    """That some counts are not known well enough to be compared; empty where all are."""
    is_known = not (differing.alike or differing.uneven)
    return "" if is_known else ", as far as the small sizes tell"


def _one_profile(explanation: Explanation) -> str:
    """Says what the profile of one arm is nearest to, where the other has none and the shares that
    both have leave it out."""
    for (name, side), chosen in zip(_sides(explanation), explanation.uses, strict=True):
        profiled = [use for use in uses(side.case) if use.kind == "profiled"]
        near, shown = nearest(profiled), nearest(chosen)
        if near is None or any(use.kind == "profiled" for use in chosen):
            continue
        if shown is None or (near.percent or 0.0) > (shown.percent or 0.0):
            by = side.profile.provenance == "published" if side.profile else False
            return (
                f"Only the {name} was profiled{', by others' * by}: it is nearest to "
                f"{bottleneck.spell(near)} ({near.percent:.1f}%)."
            )
    return ""


def _others(explanation: Explanation) -> str:
    """Says which of several candidates this is, and the fastest that was judged with it."""
    record, count = explanation.standing.record, len(explanation.written.candidates)
    if count == 1 or record is None:
        return ""
    arm = explanation.candidate.case.arm
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


def _sides(explanation: Explanation) -> tuple[tuple[str, Dossier], ...]:
    return ("baseline", explanation.baseline), ("candidate", explanation.candidate)


def _warnings(explanation: Explanation) -> Iterator[str]:
    """Reasons to doubt the profiles: sources that changed since, conditions that differ."""
    elsewhere: dict[str, list[str]] = {}
    theirs: list[str] = []
    changed = (item for cause in explanation.differing.causes for item in cause.figures)
    is_shown = bool(explanation.differing.waits) or any(item.kind == "profiled" for item in changed)
    for name, side in _sides(explanation):
        used = is_shown or name == "candidate"
        if used and side.profile and side.profile.provenance == "published":
            yield f"The {name} was profiled by others: {side.profile.run}."
        if side.profile_changed:
            words = ", ".join(side.profile_changed)
            yield f"The {name} was profiled before these changed: {words}."
        if side.record and side.record.provenance == "published" and side.case.counters:
            theirs.append(name)
        published, build = side.case.arm.published, side.case.arm.build
        if published and build and published.registers not in (None, build.resources.registers):
            yield (
                f"The {name}'s published figures are of its author's build: "
                f"{published.registers} registers per thread (this build: "
                f"{build.resources.registers})."
            )
        if is_shown and side.case.profiled_elsewhere and side.case.arm.profiled and side.record:
            elsewhere.setdefault(_elsewhere(side), []).append(name)
        if doubt := _other_build(side):
            yield f"The {name}'s profile is of another build: {doubt}."
    yield from _benign(explanation)
    if theirs and not any(side.case.arm.refused for _, side in _sides(explanation)):
        yield (
            "Times are published, of their author's kernels; what is built and emulated is this "
            "project's code, and emulated shares of limits are its work over those times."
        )
    for words, names in elsewhere.items():
        yield f"The {' and the '.join(names)} {'were' if names[1:] else 'was'} {words}."
    one, other = (side.case.arm for _, side in _sides(explanation))
    if one.profiled and other.profiled:
        both = (comparability.conditions(arm)["profiled"] for arm in (one, other))
        for name, first, second in comparability.different(*both):
            yield f"The arms were profiled under different conditions: {name} {first} and {second}."


def _benign(explanation: Explanation) -> Iterator[str]:
    """Yields the arms that race where problem.py says that it does no harm."""
    for name, side in _sides(explanation):
        evidence = side.case.arm.emulated
        if evidence and any(item.name == "benign-race" for item in evidence.warnings):
            yield f"The {name} has a race, which problem.py calls benign."


def _elsewhere(side: Dossier) -> str:
    """Says on which card and at which size it was profiled and timed, where these differ."""
    profiled, record = side.case.arm.profiled, side.record
    device, timed = profiled.device if profiled else "", record.device if record else ""
    if device != timed:
        where = f"profiled on {device} and timed on {timed}"
    else:
        size = profiled.size if profiled else ""
        where = f"profiled at size {size!r} and timed at size {side.case.size!r}"
    return f"{where}: waits and profiled counts are of the former"


def _other_build(side: Dossier) -> str:
    """Says what differs between its profile and its build; empty where they agree."""
    arm = side.case.arm
    return samebuild.doubt(arm.build, arm.profiled) if arm.build and arm.profiled else ""


def _refused(explanation: Explanation) -> Iterator[Block]:
    """Says why there is nothing to compare, unless the verdict has said it or the log has its own
    reckoning; nothing where both arms can run."""
    verdict, record = explanation.standing.verdict, explanation.standing.record
    for name, side in _sides(explanation):
        if refused := side.case.arm.refused:
            is_theirs = record is not None and record.provenance == "published"
            is_said = is_theirs or (verdict and refused.sentence in verdict.sentence)
            why = f". {refused.sentence}" if not is_said else "."
            yield paragraph(f"The {name} has no figures: ", status(refused.status), why)


def _verdict(explanation: Explanation) -> Block:
    standing = explanation.standing
    if standing.verdict is None or standing.record is None:
        return paragraph("Verdict: none, as there is no record of it.")
    verdict, record = standing.verdict, standing.record
    is_published = record.provenance == "published"
    place = record.source if is_published else record.device or "no GPU"
    arms = explanation.baseline.case.arm, explanation.candidate.case.arm
    change = slowdown(*arms) if is_published else None
    by = f" {100 * abs(change):.1f}% {'slower' if change > 0 else 'faster'}." if change else ""
    return paragraph(
        Span("Verdict: ", "strong"),
        status(verdict.status),
        f" ({verdict.reason}).{by} {verdict.sentence} [{record.run}, {place}]",
    )


def _unexplained(explanation: Explanation) -> str:
    """Says where the rates of what goes with the time explain less than half of its change."""
    change = 100 * abs(_judged(explanation) or 0.0)
    shares = [
        abs(cause.leader.explains or 0.0)
        for cause in explanation.differing.causes
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


def _judged(explanation: Explanation) -> float | None:
    """The change of time where the verdict says that there is one."""
    verdict = explanation.standing.verdict
    if verdict is None or verdict.status not in ("IMPROVED", "REJECTED"):
        return None
    return slowdown(explanation.baseline.case.arm, explanation.candidate.case.arm)


def _limits(explanation: Explanation, verbose: bool) -> Iterator[Block]:
    one, other = explanation.uses
    yield from bounds.render(
        {"baseline": one, "candidate": other}, verbose, most=difference_table.ROWS
    )
    if explanation.candidate.case.power and verbose:
        yield paragraph(f"Power, of all arms together: {explanation.candidate.case.power}.")
    for name, side in (("baseline", explanation.baseline), ("candidate", explanation.candidate)):
        emulated = side.case.arm.emulated
        if emulated and emulated.unsupported:
            yield paragraph(f"{name}: not emulated. {emulated.unsupported}", style="warn")
        if not side.case.arm.counted and (words := widths.summarize(emulated)):
            yield paragraph(f"{name}: {words}.", style="warn")
    case = explanation.candidate.case
    if case.scaled and (verbose or _is_emulated(explanation)):
        yield paragraph(f"Emulated counters of {case.of_size}: {case.scaled}.", style="dim")


def _is_emulated(explanation: Explanation) -> bool:
    """Whether the short page has a figure that was emulated."""
    causes = difference_table.key(explanation.differing.causes, is_timed=True)
    changed = [cause.leader.kind for cause in causes]
    return "emulated" in (*changed, *(use.kind for side in explanation.uses for use in side))


def _by_command(questions: Sequence[Question]) -> Iterator[str]:
    """A sentence for each command, with all that it would answer."""
    commands: dict[str, list[Question]] = {}
    for question in questions:
        commands.setdefault(question.command, []).append(question)
    for command, item in commands.items():
        answers = "; ".join(f"{entry.question} ({entry.evidence})" for entry in item)
        yield f"{command}: {answers}."
