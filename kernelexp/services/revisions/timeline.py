"""The service of history: one variant at each of some revisions, built, emulated or timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kernelexp.dossier import atrevision
from kernelexp.dossier.atrevision import AtRevision
from kernelexp.evidence.executor import Executor, Local
from kernelexp.evidence.measure.measured import Measuring
from kernelexp.model.arm import Arm, Verdict
from kernelexp.model.errors import UsageError
from kernelexp.model.limits import Limits
from kernelexp.model.progress import OnProgress
from kernelexp.model.variant import Variant
from kernelexp.project import Project, revisions
from kernelexp.services.revisions import sidebyside
from kernelexp.services.run import timing
from kernelexp.system.toolchain import Toolchain

TIMED_MAX = 24
"""Different codes that are timed together."""


class TimelineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to look at, as the command line says it."""

    revisions: str
    """A..B."""
    emulate: bool = False
    measuring: Measuring | None = None
    """None: nothing is timed."""
    tools: Toolchain
    limits: Limits = Limits()
    executor: Executor = Local()
    on_progress: OnProgress | None = None


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


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A variant from one revision to another, oldest first."""

    label: str
    stages: tuple[Stage, ...]
    why_not: str = ""
    """Why nothing was timed, as a sentence."""


def trace(project: Project, variant: Variant, asked: TimelineOptions) -> Timeline:
    """Examines the variant at each commit of a range, along first parents; what is new in code is
    timed together, in the same processes.

    UsageError for a range that is none, or with more codes than can be timed together.
    """
    how = atrevision.RevisionOptions(
        tools=asked.tools,
        limits=asked.limits,
        emulate=asked.emulate,
        size=asked.measuring.size if asked.measuring else "full",
        on_progress=asked.on_progress,
    )
    commits = revisions.resolve_range(project.root, asked.revisions)
    every = [atrevision.examine(project, commit, variant, how) for commit in commits]
    firsts: dict[str, AtRevision] = {}
    for each in every:
        if each.code:
            firsts.setdefault(each.code, each)
    timed, why_not = _time(project, variant, list(firsts.values()), asked)
    return Timeline(
        label=project.label(variant),
        stages=tuple(_stage(each, firsts, timed) for each in every),
        why_not=why_not,
    )


def _time(
    project: Project, variant: Variant, stages: Sequence[AtRevision], asked: TimelineOptions
) -> tuple[dict[str, tuple[Arm, Verdict | None]], str]:
    """Each code's arm with its time, and its verdict against the first; or why nothing is timed."""
    if asked.measuring is None:
        return {}, "timing was switched off."
    cards = timing.cards(asked.executor.gpus(), variant.arch)
    if isinstance(cards, str):
        return {}, cards
    arms = {
        stage.code: (stage.arm, stage.launches)
        for stage in stages
        if stage.arm and not stage.arm.refused
    }
    if len(arms) < 2:
        return {}, "there are no two revisions with different code that can be timed."
    if len(arms) > TIMED_MAX:
        raise UsageError(
            f"{asked.revisions} has {len(arms)} different codes, and up to {TIMED_MAX} "
            "can be timed together: name a shorter range, or bisect it."
        )
    made = sidebyside.compare(
        project,
        variant,
        list(arms.values()),
        asked.tools,
        asked.measuring,
        asked.limits,
        asked.executor,
        asked.on_progress,
    )
    verdicts = (None, *(candidate.verdict for candidate in made.candidates))
    return dict(zip(arms, zip(made.arms, verdicts, strict=True), strict=True)), ""


def _stage(
    each: AtRevision,
    firsts: Mapping[str, AtRevision],
    timed: Mapping[str, tuple[Arm, Verdict | None]],
) -> Stage:
    first = firsts[each.code].commit if each.code else ""
    arm, verdict = timed.get(each.code, (each.arm, None))
    return Stage(
        commit=each.commit,
        subject=each.subject,
        arm=arm,
        why=each.fault,
        same_as=first if first != each.commit else "",
        verdict=verdict,
    )
