"""The service of audit: all that is known of a variant and of the one it is compared with."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from kernelexp import comparisons, examine, prepare, profiles, subjects
from kernelexp.arch import ARCHITECTURES
from kernelexp.arm import Arm
from kernelexp.comparisons import Comparison, Options
from kernelexp.errors import BuildError, UsageError
from kernelexp.evidence import emulated
from kernelexp.examine import Recorded
from kernelexp.judge import standing
from kernelexp.judge.ranking import Group
from kernelexp.judge.standing import Standings
from kernelexp.limits import Limits
from kernelexp.model import Variant
from kernelexp.progress import OnProgress
from kernelexp.project import Project, parse_variant
from kernelexp.record import Record
from kernelexp.subjects import Subject
from kernelexp.toolchain import Toolchain

STALLS = "stalls"
TABLES = (STALLS, "memory throughput", "access efficiency")
"""Groups of counters that an audit shows apart."""
FLOOR = 0.05
"""Of the findings: a relative change."""
_STALL = re.compile(r"issue_stalled|warps_issue")
_SHOWN = 0.05


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two variants."""

    label: str
    variant: Variant
    arm: Arm
    """With all kinds of evidence that there are."""
    record: Record | None = None
    """That the time is from."""
    changed: tuple[str, ...] = ()
    """What has changed since it was measured or profiled."""
    subject: Subject


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody else's kernel that was timed in the same run."""

    name: str
    time_us: float
    flops: int


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What the document is made of."""

    kernel: str
    arch: str
    problem: str
    after: Side
    before: Side
    name: str = ""
    """The experiment whose candidate is audited; empty where no experiment names it."""
    number: int = 1
    """Of the candidate in the experiment."""
    standings: Standings | None = None
    peers: tuple[Peer, ...] = ()
    tables: tuple[Group, ...] = ()
    findings: tuple[Group, ...] = ()
    warnings: tuple[str, ...] = ()
    ratio: float | None = None
    """Time after / before: of one run from its pairs, else of the two times."""
    interleaved: bool = False


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    tools: Toolchain
    limits: Limits = Limits()
    on_progress: OnProgress | None = None


def audit(project: Project, text: str, against: str, asked: Asked) -> Audit:
    """Builds both variants, and takes times, counters and words from the records.

    BuildError where one of them does not build. UsageError where a text names no variant, or both
    name the same.
    """
    wanted, name, number = _named(project, text)
    other, whose, place = _named(project, against)
    if wanted == other:
        raise UsageError(f"{text} and {against} are the same variant: name another one.")
    if (wanted.kernel, wanted.arch) != (other.kernel, other.arch):
        raise UsageError(
            f"{project.label(wanted)} and {project.label(other)} are of different kernels or "
            "architectures: `kernelexp compare` shows what differs."
        )
    built = prepare.built(project, [other, wanted], asked.tools, asked.limits, asked.on_progress)
    before = _side(project, other, built.arm(other), whose, place)
    after = _side(project, wanted, built.arm(wanted), name, number)
    name, number = (name, number) if name else _experiment_of(project, wanted, other)
    tables, findings, warnings = _compare(before, after)
    ratio, interleaved = _ratio(before, after)
    kernel = project.kernels[wanted.kernel]
    return Audit(
        kernel=wanted.kernel,
        arch=wanted.arch,
        problem=kernel.problem,
        after=after,
        before=before,
        name=name,
        number=number,
        standings=_standings(project, name) if name else None,
        peers=tuple(_peers(after.record)),
        tables=tables,
        findings=findings,
        warnings=warnings,
        ratio=ratio,
        interleaved=interleaved,
    )


def _named(project: Project, text: str) -> tuple[Variant, str, int]:
    """The variant that a text names; where it is a candidate, of which experiment it is, and the
    candidate's number."""
    name, _, part = text.partition(":")
    if name not in project.experiments:
        return parse_variant(project, text), "", 1
    baseline, candidates = project.variants(project.experiments[name])
    if part == "baseline":
        return baseline, "", 1
    if not part and len(candidates) > 1:
        raise UsageError(f"{name} has {len(candidates)} candidates: write {name}:1 or another.")
    if part and not (part.isdigit() and 1 <= int(part) <= len(candidates)):
        raise UsageError(
            f"{text!r}: after the colon comes baseline or the number of a candidate, up to "
            f"{len(candidates)}."
        )
    number = int(part or 1)
    return candidates[number - 1], name, number


def _experiment_of(project: Project, wanted: Variant, other: Variant) -> tuple[str, int]:
    """The experiment that has both, else one that has the variant as its candidate."""
    found: list[tuple[bool, str, int]] = []
    for name, each in project.experiments.items():
        baseline, candidates = project.variants(each)
        if wanted in candidates:
            found.append((baseline == other, name, candidates.index(wanted) + 1))
    best = max(found, key=lambda each: each[0], default=None)
    return (best[1], best[2]) if best else ("", 1)


def _standings(project: Project, name: str) -> Standings:
    return standing.of_experiment(project, name, standing.Tree(project.root))


def _recorded(project: Project, variant: Variant, name: str, number: int) -> Recorded | None:
    """What was measured or published of a variant, in the experiment that was named or in any."""
    if name:
        each = _standings(project, name).candidates[number - 1]
        if each.record and each.arm and (each.arm.measured or each.arm.published):
            return Recorded(record=each.record, arm=each.arm, changed=each.changed)
    return examine.recorded(project, variant)


def _side(project: Project, variant: Variant, arm: Arm, name: str, number: int) -> Side:
    """A variant that is built, with what else there is of it."""
    label = project.label(variant)
    if arm.build is None:
        raise BuildError(f"{label}: {arm.refused.sentence if arm.refused else 'is not built.'}")
    found = _recorded(project, variant, name, number)
    profile = profiles.latest(project.root, variant.kernel, variant.arch, variant.axes)
    arm = msgspec.structs.replace(
        arm,
        emulated=emulated.find(project.root, arm),
        measured=found.arm.measured if found else None,
        published=found.arm.published if found else None,
        profiled=profile.arm.profiled if profile else None,
    )
    record = found.record if found else None
    tree = standing.Tree(project.root)
    since = standing.profile_changes(variant, profile, tree) if profile else ()
    about = [record.source or record.run] if record else []
    about += [profile.short_source or profile.run] if profile else []
    return Side(
        label=label.partition(": ")[2],
        variant=variant,
        arm=arm,
        record=record,
        changed=tuple(dict.fromkeys((*(found.changed if found else ()), *since))),
        subject=Subject(
            label=label,
            arm=arm,
            conditions=subjects.conditions(arm, record, profile),
            about=tuple(dict.fromkeys(about)),
            run=record.run if record and arm.measured else "",
        ),
    )


def _compare(
    before: Side, after: Side
) -> tuple[tuple[Group, ...], tuple[Group, ...], tuple[str, ...]]:
    """The groups that have tables of their own, those with findings, and what stands against it."""
    pair = (before.subject, after.subject)
    stalls = comparisons.compare(*pair, Options(metric=_STALL))
    every = comparisons.compare(*pair, Options(floor=0.0))
    found = comparisons.compare(*pair, Options(floor=FLOOR))
    tables = (*_stalls(stalls), *(each for each in every.groups if each.name in TABLES[1:]))
    # An emulation or the compiler may have groups of the same name.
    profiled = tuple(each for each in tables if each.kind == "profiled")
    rest = tuple(
        each for each in found.groups if each.kind == "profiled" and each.name not in TABLES
    )
    return profiled, rest, found.warnings


def _stalls(found: Comparison) -> Sequence[Group]:
    """All reasons, changed or not, but those that neither has."""
    return [
        msgspec.structs.replace(
            group,
            findings=tuple(
                each
                for each in group.findings
                if max(_number(each.difference.before), _number(each.difference.after)) >= _SHOWN
            ),
        )
        for group in found.groups
        if group.name == STALLS
    ]


def _number(value: float | str) -> float:
    return 0.0 if isinstance(value, str) else abs(value)


def _peers(record: Record | None) -> Sequence[Peer]:
    if record is None or record.estimate is None:
        return []
    own = {*record.names, "placebo"}
    return [
        Peer(name=each.arm, time_us=each.median_us, flops=record.flops)
        for each in record.estimate.times
        if each.arm not in own
    ]


def _ratio(before: Side, after: Side) -> tuple[float | None, bool]:
    """Time after / before, and whether both were timed in one run."""
    one, other = before.arm, after.arm
    same_run = before.record and after.record and before.record.run == after.record.run
    if same_run and other.measured and other.measured.effect and one.measured:
        baseline = after.record.baseline if after.record else None
        if baseline and baseline.axes == one.axes:
            return other.measured.effect.ratio, True
    if one.measured and other.measured:
        return other.measured.time_us / one.measured.time_us, False
    if one.published and other.published and one.published.time_ms and other.published.time_ms:
        return other.published.time_ms / one.published.time_ms, False
    return None, False


def smem_limit(arch: str) -> int:
    """Bytes of shared memory that a CTA may have."""
    return ARCHITECTURES[arch].smem_per_cta_bytes
