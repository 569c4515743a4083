"""The service of audit: all that is known of a variant and of the one it is compared with."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.dossier import dossiers, prepare, speaking, standing, subjects
from kernelexp.dossier.dossiers import Dossier
from kernelexp.dossier.session import Session
from kernelexp.dossier.speaking import Recorded
from kernelexp.dossier.standing import Standings
from kernelexp.dossier.subjects import Subject
from kernelexp.dossier.tree import Tree
from kernelexp.facts import counters
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.judge import ranking
from kernelexp.judge.ranking import ComparedFigure, ComparedGroup
from kernelexp.model.arm import MeasuredEvidence, PublishedResult, Resources
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import AxisValue, Variant
from kernelexp.model.record import Record
from kernelexp.project import Project, parse_arm
from kernelexp.services import comparisons
from kernelexp.services.comparisons import ComparisonOptions

STALLS = "stalls"
TABLES = (STALLS, "memory throughput", "access efficiency")
"""Groups of counters that an audit shows apart."""
FLOOR = 0.05
"""Of the findings: a relative change."""
_STALLED = 0.01
"""A reason for stalls that both have less of, in percent, is left out."""
_EVERYTHING = ComparisonOptions(metric=re.compile(""))


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody else's kernel."""

    name: str
    time_ms: float
    tflops: float | None
    notes: str
    """Whose figures these are, and of what."""


class AuditedSide(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two variants."""

    label: str
    axes: dict[str, AxisValue]
    measured: MeasuredEvidence | None
    published: PublishedResult | None
    resources: Resources | None
    sources: tuple[str, ...]
    """Where its evidence is from."""
    changed_since: tuple[str, ...]


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """A variant against the one that it is compared with."""

    date: str
    kernel: str
    arch: str
    experiment: str
    """Whose candidate is audited; empty where no experiment names it."""
    before: AuditedSide
    after: AuditedSide
    time_ratio: float | None
    """Time after / before: of one run from its pairs, else of the two times; None where one is not
    timed, or one is measured and the other published."""
    time_ratio_how: str
    """How the ratio was taken."""
    peers: tuple[Peer, ...]
    smem_budget: dict[str, int]
    """Bytes of shared memory by what they are for."""
    groups: tuple[ComparedGroup, ...]
    """Those of TABLES, then other findings."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """An audit with what its document is written from."""

    audited: Audited
    problem: str
    after: Dossier
    before: Dossier
    has_both: bool
    """Whether the experiment compares these two variants."""
    standings: Standings | None
    """Of the experiment."""
    number: int
    """Of the candidate in the experiment."""
    warnings: tuple[str, ...]


def audit(project: Project, text: str, against: str | None, session: Session) -> Audit:
    """Builds both variants, and takes times, counters and words from the records.

    Without `against` an experiment's candidate is compared with its baseline.
    BuildError where one of them does not build. UsageError where a text names no variant, or both
    name the same.
    """
    (wanted, name, number), (other, whose, place) = _pair(project, text, against)
    prepare.refuse_programs([other, wanted], "an audit")
    spoken = _speaking(project, (other, whose, place), (wanted, name, number))
    before, after = dossiers.of_variants(project, [other, wanted], spoken, session)
    name, number = (name, number) if name else _experiment_of(project, wanted, other)
    compared, warnings = _compare(before, after, project.root)
    ratio = speaking.ratio(*spoken)
    audited = Audited(
        date=datetime.date.today().isoformat(),
        kernel=wanted.kernel,
        arch=wanted.arch,
        experiment=name,
        before=_side(before),
        after=_side(after),
        time_ratio=ratio.value if ratio else None,
        time_ratio_how=ratio.how if ratio else "",
        peers=(*timed_peers(after.record), *_published_peers(after)),
        smem_budget=dict(_budget(after)),
        groups=(*_tables(compared), *_findings(compared)),
    )
    return Audit(
        audited=audited,
        problem=project.kernels[wanted.kernel].problem,
        after=after,
        before=before,
        has_both=bool(name) and project.variants(project.experiments[name])[0] == other,
        standings=_standings(project, name) if name else None,
        number=number,
        warnings=tuple(warnings),
    )


def _side(side: Dossier) -> AuditedSide:
    return AuditedSide(
        label=side.point,
        axes=side.variant.axes,
        measured=side.arm.measured,
        published=side.arm.published,
        resources=side.arm.build.resources if side.arm.build else None,
        sources=side.sources,
        changed_since=tuple(dict.fromkeys((*side.changed, *side.profile_changed))),
    )


_Named: TypeAlias = tuple[Variant, str, int]
"""A variant, the experiment that names it, if one does, and which of its arms it is."""


def _pair(project: Project, text: str, against: str | None) -> tuple[_Named, _Named]:
    """The variant to audit, and the one that it is compared with."""
    wanted, name, number = parse_arm(project, text)
    if against is None:
        if not name:
            raise UsageError(
                f"{text} is not a candidate of an experiment, which would have a baseline: name "
                "another variant with --against."
            )
        against = f"{name}:baseline"
    other, whose, place = parse_arm(project, against)
    if wanted == other:
        raise UsageError(f"{text} and {against} are the same variant: name another one.")
    if (wanted.kernel, wanted.arch) != (other.kernel, other.arch):
        raise UsageError(
            f"{project.label(wanted)} and {project.label(other)} are of different kernels or "
            "architectures: `kernelexp compare` shows what differs."
        )
    return (wanted, name, number), (other, whose, place)


def _experiment_of(project: Project, wanted: Variant, other: Variant) -> tuple[str, int]:
    """The experiment that has both, else one that has the variant as its candidate."""
    result: list[tuple[bool, str, int]] = []
    for name, experiment in project.experiments.items():
        baseline, candidates = project.variants(experiment)
        if wanted in candidates:
            result.append((baseline == other, name, candidates.index(wanted) + 1))
    best = max(result, key=lambda item: item[0], default=None)
    return (best[1], best[2]) if best else ("", 1)


def _standings(project: Project, name: str) -> Standings:
    return standing.of_experiment(project, name, Tree(project.root))


def _speaking(
    project: Project, before: _Named, after: _Named
) -> tuple[Recorded | None, Recorded | None]:
    """Returns what speaks for both; for published candidates, the experiment that is named."""
    first, second = speaking.of_pair(project, before[0], after[0])
    return _published(project, before) or first, _published(project, after) or second


def _published(project: Project, named: _Named) -> Recorded | None:
    _, name, number = named
    spoken = _standings(project, name).candidates[number - 1] if name else None
    if spoken is None or spoken.record is None or spoken.arm is None or not spoken.arm.published:
        return None
    return Recorded(record=spoken.record, arm=spoken.arm, changed=spoken.changed)


def _compare(before: Dossier, after: Dossier, root: Path) -> tuple[list[ComparedGroup], list[str]]:
    """The counters of both by group and kind, those of published profiles as `published`; and what
    stands against comparing them."""
    pair, warnings = (subjects.of_dossier(before, root), subjects.of_dossier(after, root)), []
    origins = {side.profile.provenance == "published" for side in (before, after) if side.profile}
    if len(origins) == 2:
        pair = (_without_profile(pair[0]), _without_profile(pair[1]))
        warnings.append("one profile is published, the other is not: counters are left out.")
    comparison = comparisons.compare(*pair, _EVERYTHING)
    kinds = {"emulated": "emulated", "profiled": "published" if True in origins else "profiled"}
    groups = [
        msgspec.structs.replace(group, kind=kinds[group.kind])
        for group in comparison.groups
        if group.kind in kinds
    ]
    return groups, [*warnings, *comparison.warnings]


def _without_profile(subject: Subject) -> Subject:
    return msgspec.structs.replace(subject, arm=msgspec.structs.replace(subject.arm, profiled=None))


def _tables(groups: Iterable[ComparedGroup]) -> Iterator[ComparedGroup]:
    """The groups that have sections of their own, with all that changed or is stated always."""
    for group in groups:
        if group.group in TABLES:
            shown = _stalls(group) if group.group == STALLS else _shown(group, 0.0)
            if shown:
                yield msgspec.structs.replace(group, findings=tuple(shown))


def _stalls(group: ComparedGroup) -> list[ComparedFigure]:
    """All reasons, changed or not."""
    return [
        finding
        for finding in group.findings
        if any(isinstance(x, str) or abs(x) >= _STALLED for x in (finding.before, finding.after))
    ]


def _shown(group: ComparedGroup, floor: float) -> list[ComparedFigure]:
    return [
        finding
        for finding in group.findings
        if counters.is_headline(finding.label) or ranking.is_large(finding, floor)
    ]


def _findings(groups: Iterable[ComparedGroup]) -> Iterator[ComparedGroup]:
    """Yields other changes of more than FLOOR, in counters that have a group."""
    for group in groups:
        if group.group not in (*TABLES, counters.OTHER):
            large = [finding for finding in group.findings if ranking.is_large(finding, FLOOR)]
            if large:
                yield msgspec.structs.replace(group, findings=tuple(large))


def timed_peers(record: Record | None) -> list[Peer]:
    """Those of the same run."""
    if record is None or record.estimate is None:
        return []
    shown = map(record.estimate.shown, (effect.arm for effect in record.estimate.peers))
    return [
        Peer(
            name=times.arm,
            time_ms=times.median_us / 1000,
            tflops=record.flops / times.median_us / 1e6 if record.flops else None,
            notes="measured in the same run",
        )
        for times in shown
        if times
    ]


def _published_peers(side: Dossier) -> list[Peer]:
    """Those that were published with a variant whose own time is published too."""
    if side.arm.published is None or side.profile is None or side.profile.arm.published is None:
        return []
    return [
        Peer(
            name=peer.name,
            time_ms=peer.time_ms,
            tflops=peer.tflops,
            notes=f"published; {peer.notes}" if peer.notes else "published",
        )
        for peer in side.profile.arm.published.peers
    ]


def _budget(side: Dossier) -> Iterator[tuple[str, int]]:
    """Shared memory by its parts: what the source exports as smem_<part>_bytes, the total, the
    limit, and what is left of it."""
    if side.arm.build is None:
        return
    resources = side.arm.build.resources
    parts = {
        name.removeprefix("smem_").removesuffix("_bytes"): count
        for name, count in side.arm.build.exports.items()
        if is_part(name)
    }
    yield from parts.items()
    rest = resources.dynamic_smem_bytes - sum(parts.values())
    if rest:
        yield ("dynamic, other" if parts else "dynamic"), rest
    if resources.static_smem_bytes:
        yield "static", resources.static_smem_bytes
    total = resources.dynamic_smem_bytes + resources.static_smem_bytes
    limit = ARCHITECTURES[side.arm.arch].smem_per_cta_bytes
    yield from (("total", total), ("limit of a CTA", limit), ("headroom", limit - total))


def is_part(name: str) -> bool:
    """Whether an export is the size of a part of shared memory."""
    return name.startswith("smem_") and name.endswith("_bytes")
