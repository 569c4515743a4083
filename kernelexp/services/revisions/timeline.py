"""The service of history: one variant at each of some revisions, built, emulated or timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kernelexp.dossier import atrevision
from kernelexp.dossier.atrevision import AtRevision
from kernelexp.dossier.session import Session
from kernelexp.model.arm import Arm, Verdict
from kernelexp.model.errors import UsageError
from kernelexp.model.experiment import Experiment, Variant, arm_names
from kernelexp.model.measurement import Measuring
from kernelexp.model.record import Record
from kernelexp.project import Project, revisions
from kernelexp.services.run import conclusion, runner
from warpsim.launch import Launch


def compare(
    project: Project,
    variant: Variant,
    arms: Sequence[tuple[Arm, Sequence[Launch]]],
    session: Session,
    measuring: Measuring,
) -> Record:
    """Times arms, the baseline first, and judges them as a run does with its own; nothing is
    written. An arm without launches is launched as the project's problem.py says.

    Raises what kept them from being timed.
    """
    experiment = Experiment(
        kernel=variant.kernel,
        arch=variant.arch,
        title=f"{project.label(variant)} at several revisions",
        candidate={},
        hypothesis="The time is that of the first revision.",
    )
    settings = conclusion.RunSettings(measuring=measuring, keep=False)
    shared = runner.share(project, project.root, session, settings=settings)
    built = [arm for arm, _ in arms]
    names = arm_names(len(arms) - 1)
    launches = {name: item for name, (_, item) in zip(names, arms, strict=True) if item}
    timed = conclusion.take(shared, built, launches)
    return conclusion.conclude(shared, "revisions", experiment, built, timed).record


TIMED_MAX = 24
"""Different codes that are timed together."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """The variant at one revision."""

    commit: str
    subject: str
    arm: Arm | None = None
    """None where the revision does not have the variant, or it could not be examined."""
    why: str = ""
    """Why there is no time to be had of it, as a sentence."""
    same_as: str = ""
    """The first commit with the same code, which has its time; empty where this is the first."""
    verdict: Verdict | None = None
    """On its time against the first revision's; None for that one, and where nothing was timed."""


class RevisionTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """A variant from one revision to another, oldest first."""

    label: str
    stages: tuple[Stage, ...]
    why_not: str = ""
    """Why nothing was timed, as a sentence."""


def trace(
    project: Project,
    variant: Variant,
    revision_range: str,
    session: Session,
    measuring: Measuring | None = None,
) -> RevisionTimeline:
    """Examines the variant at each commit of a range, along first parents; what is new in code is
    timed together, in the same processes.

    UsageError for a range that is none, or with more codes than can be timed together.
    """
    size = measuring.size if measuring else "full"
    commits = revisions.resolve_range(project.root, revision_range)
    every = [atrevision.examine(project, commit, variant, session, size) for commit in commits]
    firsts: dict[str, AtRevision] = {}
    for at_revision in every:
        if at_revision.code:
            firsts.setdefault(at_revision.code, at_revision)
    timed, why_not = _time(
        project, variant, revision_range, list(firsts.values()), session, measuring
    )
    return RevisionTimeline(
        label=project.label(variant),
        stages=tuple(_stage(revision, firsts, timed) for revision in every),
        why_not=why_not,
    )


def _time(
    project: Project,
    variant: Variant,
    revision_range: str,
    stages: Sequence[AtRevision],
    session: Session,
    measuring: Measuring | None,
) -> tuple[dict[str, tuple[Arm, Verdict | None]], str]:
    """Each code's arm with its time, and its verdict against the first; or why nothing is timed."""
    if measuring is None:
        return {}, "timing was switched off."
    gpus = session.executor.gpus().of(variant.arch)
    if not gpus.devices:
        return {}, gpus.why_none
    arms = {
        stage.code: (stage.arm, stage.launches)
        for stage in stages
        if stage.arm and not stage.arm.refused
    }
    if len(arms) < 2:
        return {}, "there are no two revisions with different code that can be timed."
    if len(arms) > TIMED_MAX:
        raise UsageError(
            f"{revision_range} has {len(arms)} different codes, and up to {TIMED_MAX} "
            "can be timed together: name a shorter range, or bisect it."
        )
    record = compare(project, variant, list(arms.values()), session, measuring=measuring)
    verdicts = (None, *(candidate.verdict for candidate in record.candidates))
    return dict(zip(arms, zip(record.arms, verdicts, strict=True), strict=True)), ""


def _stage(
    at_revision: AtRevision,
    firsts: Mapping[str, AtRevision],
    timed: Mapping[str, tuple[Arm, Verdict | None]],
) -> Stage:
    first = firsts[at_revision.code].commit if at_revision.code else ""
    arm, verdict = timed.get(at_revision.code, (at_revision.arm, None))
    return Stage(
        commit=at_revision.commit,
        subject=at_revision.subject,
        arm=arm,
        why=at_revision.fault,
        same_as=first if first != at_revision.commit else "",
        verdict=verdict,
    )
