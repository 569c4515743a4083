"""The service of explain: all that explains why a candidate is faster or slower than its baseline,
or what a variant could gain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from kernelexp.dossier import comparability, examine
from kernelexp.dossier.dossiers import Dossier
from kernelexp.dossier.session import Session
from kernelexp.dossier.standing import Standing
from kernelexp.judge import consistency, likely
from kernelexp.judge.causes import CausedDifference, differing
from kernelexp.judge.expectations import Judged, judge
from kernelexp.judge.explanation import Question, moved, questions, relieved, slowdown, work
from kernelexp.judge.limits import accounting, bottleneck, bounds
from kernelexp.judge.limits import opportunities as rules
from kernelexp.judge.limits.accounting import Account
from kernelexp.judge.limits.bounds import Use, nearest
from kernelexp.judge.limits.opportunity import Opportunity, Suppressed
from kernelexp.logs import records
from kernelexp.model.arm import Verdict
from kernelexp.model.experiment import AxisValue, Experiment, Variant
from kernelexp.model.record import Record
from kernelexp.project import Project
from kernelexp.services import modelling

T = TypeVar("T")


class OfBoth(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One value for each arm."""

    baseline: T
    candidate: T

    def named(self) -> tuple[tuple[str, T], tuple[str, T]]:
        """Returns both with their names."""
        return ("baseline", self.baseline), ("candidate", self.candidate)


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence on one candidate of an experiment."""

    experiment: str
    candidate: dict[str, AxisValue]
    verdict: Verdict | None
    run: str | None
    changed_since: tuple[str, ...]
    same_code_since: tuple[str, ...] | UnsetType = UNSET
    """Sources whose text has changed since, where the machine code has not; left out where there
    are none."""
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
    """What the model of time says of the two, as a sentence; empty where it was not asked."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """An explanation with what it is made from."""

    explained: Explained
    written: Experiment
    standing: Standing
    sides: OfBoth[Dossier]
    records: tuple[Record, ...]
    """All of the experiment."""

    @property
    def change(self) -> float | None:
        """The change of time where the verdict says that there is one."""
        return _change(self.standing, self.sides)


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """The possible gains in a variant, and its false warnings."""

    variant: str
    conclusion: str
    """What the kernel is bound by."""
    opportunities: tuple[Opportunity, ...]
    suppressed: tuple[Suppressed, ...]
    uses: tuple[Use, ...]
    accounts: tuple[Account, ...]
    """Counts of the profile beside emulated ones."""
    changed_since_measured: tuple[str, ...]
    profile: str | None
    """The run of its profile."""
    profile_changed_since: tuple[str, ...]


def variant(project: Project, wanted: Variant, session: Session) -> tuple[Dossier, Offered]:
    """A variant with what could be gained in it, the largest estimate first."""
    dossier = examine.variant(project, wanted, session)
    case = dossier.case
    gains, suppressed = rules.find(case)
    uses = bounds.uses(case)
    return dossier, Offered(
        variant=case.label,
        conclusion=bottleneck.conclude(case, uses, gains=gains),
        opportunities=tuple(gains),
        suppressed=tuple(suppressed),
        uses=tuple(uses),
        accounts=tuple(accounting.accounts(case)),
        changed_since_measured=tuple(dossier.changed),
        profile=dossier.profile.run if dossier.profile else None,
        profile_changed_since=tuple(dossier.profile_changed),
    )


def candidate(
    project: Project, name: str, number: int, session: Session, *, modelled: bool = False
) -> Explanation:
    """Explains candidate `number` of an experiment, counted from 1; `modelled`: also by the model
    of time."""
    written = project.experiment(name)
    one, other, standing = examine.experiment(project, name, number, session)
    sentence = modelling.compare(project, written, number, session) if modelled else ""
    known, _ = records.read(project.root, name, latest=0)
    sides = OfBoth(baseline=one, candidate=other)
    arms = one.case.arm, other.case.arm
    margin = standing.record.margin if standing.record else 0.01
    differences = differing(one.case, other.case, _direction(standing, slowdown(*arms)))
    before, after = bounds.uses_of_both(one.case, other.case)
    uses = OfBoth(baseline=before, candidate=after)
    near, other_near = nearest(before), nearest(after)
    is_placebo = standing.candidate is not None and standing.candidate.same_code
    undecided = () if is_placebo else tuple(questions(one.case, other.case, name, differences))
    explained = Explained(
        experiment=name,
        candidate=standing.variant.axes,
        verdict=standing.verdict,
        run=standing.record.run if standing.record else None,
        changed_since=standing.changed,
        same_code_since=standing.rewritten or UNSET,
        conclusion=tuple(_conclusions(sides, uses, differences, _change(standing, sides))),
        expectations=judge(written.expectations[number - 1], *arms, margin, name),
        differences=differences,
        uses=uses,
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
        warnings=tuple(_warnings(sides, differences)),
        undecided=undecided,
        modelled=sentence,
    )
    return Explanation(
        explained=explained, written=written, standing=standing, sides=sides, records=tuple(known)
    )


def _direction(standing: Standing, slower: float | None) -> float | None:
    """The change of time where it has a direction: none within the margin, or of both signs."""
    effect = standing.arm.measured.effect if standing.arm and standing.arm.measured else None
    if standing.verdict and standing.verdict.status == "NEUTRAL":
        return None
    return None if effect and effect.low <= 1 <= effect.high else slower


def _change(standing: Standing, sides: OfBoth[Dossier]) -> float | None:
    if standing.verdict is None or standing.verdict.status not in ("IMPROVED", "REJECTED"):
        return None
    return slowdown(sides.baseline.case.arm, sides.candidate.case.arm)


# ---- conclusions ---------------------------------------------------------------------------------


def _conclusions(
    sides: OfBoth[Dossier],
    of_both: OfBoth[tuple[Use, ...]],
    differences: CausedDifference,
    change: float | None,
) -> Iterator[str]:
    """Yields what was changed with its likely cause, then what either arm is bound by."""
    before, case, after = sides.baseline.case, sides.candidate.case, of_both.candidate
    uses = of_both.baseline, after
    if before.arm.refused or case.arm.refused:
        return
    slower = slowdown(before.arm, case.arm)
    differs = any(not cause.noise for cause in differences.causes)
    first = likely.conclude(before, case, uses, differences, change if differs else None)
    if not differs:
        first = f"{first} {_nothing(differences)}".strip()
    if first:
        yield first
    near = nearest(after)
    if near is None or near.percent is None:
        grids = bottleneck.of_grids(before, case)
        words = bottleneck.conclude(case, after, "The candidate")
        if before.time_s == case.time_s == 0 and not (before.ratios_of or case.ratios_of):
            shares = bottleneck.allowed_of(before, case)
            words = bottleneck.of_both(*uses, shares) or words
        yield f"{grids} {words.removeprefix(bottleneck.of_grid(case)).strip()}" if grids else words
        return
    allowed = bottleneck.allowed_of(before, case)
    of_grid = likely.of_allowed(before, case, uses)
    said = likely.largest(of_grid, change) if change else None
    alone = _one_profile(sides, of_both)
    sentences = (
        bottleneck.of_grids(before, case),
        moved(*uses, allowed, alone),
        alone,
        relieved(*uses, change, allowed[0]),
        work(*uses, slower, differences.waits, said.resource if said else None),
        bottleneck.of_latency(case, after, "The candidate"),
        bottleneck.of_same_grid(case) if bottleneck.is_same_grid(before, case) else "",
        bottleneck.of_power(case),
    )
    yield " ".join(filter(None, sentences))


def _nothing(differences: CausedDifference) -> str:
    """Says that no difference is left, as far as it goes."""
    is_known = not (differences.alike or differences.uneven)
    trifles = ", but for trifles" * bool(differences.small)
    limit = trifles if is_known else ", as far as the small sizes tell"
    return f"Nothing that is counted differs{limit}."


def _one_profile(sides: OfBoth[Dossier], uses: OfBoth[tuple[Use, ...]]) -> str:
    """Says what the profile of one arm is nearest to, where the other has none and the shares that
    both have leave it out."""
    for (name, side), (_, chosen) in zip(sides.named(), uses.named(), strict=True):
        profiled = [use for use in bounds.uses(side.case) if use.kind == "profiled"]
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


def _warnings(sides: OfBoth[Dossier], differences: CausedDifference) -> Iterator[str]:
    """Reasons to doubt the profiles: sources that changed since, conditions that differ."""
    elsewhere: dict[str, list[str]] = {}
    theirs: list[str] = []
    changed = (item for cause in differences.causes for item in cause.figures)
    is_shown = bool(differences.waits) or any(item.kind == "profiled" for item in changed)
    for name, side in sides.named():
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
    yield from _benign(sides)
    if theirs and not any(side.case.arm.refused for _, side in sides.named()):
        yield (
            "Times are published, of their author's kernels; what is built and emulated is this "
            "project's code, and emulated shares of limits are its work over those times."
        )
    for words, names in elsewhere.items():
        yield f"The {' and the '.join(names)} {'were' if names[1:] else 'was'} {words}."
    one, other = (side.case.arm for _, side in sides.named())
    if one.profiled and other.profiled:
        both = (comparability.conditions(arm)["profiled"] for arm in (one, other))
        for name, first, second in comparability.different(*both):
            yield f"The arms were profiled under different conditions: {name} {first} and {second}."


def _benign(sides: OfBoth[Dossier]) -> Iterator[str]:
    """Yields the arms that race where problem.py says that it does no harm."""
    for name, side in sides.named():
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
    return consistency.other_build(arm.build, arm.profiled) if arm.build and arm.profiled else ""
