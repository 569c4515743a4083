"""A variant over revisions, and what a bisection found, as documents."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.model.arm import Arm
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Cell, Span, Style, paragraph, status, table
from kernelexp.services.revisions.bisecting import Bisected, BisectStep
from kernelexp.services.revisions.timeline import RevisionTimeline, Stage

SHOWN = 10
"""Characters of a commit's name."""
_SIDES: dict[str, Style] = {"good": "good", "bad": "bad", "skipped": "warn"}
_HEADER = ("Commit", "Change", "Regs", "Spill", "SMEM", "SASS", "ms", "")


def timeline(history: RevisionTimeline) -> Iterator[Block]:
    """A row for each commit; then what keeps commits from being timed."""
    yield paragraph(f"{history.label}, oldest first; bytes of spills, shared memory and SASS")
    rows = [_row(stage) for stage in history.stages]
    yield table(_HEADER, rows, numbers=(2, 3, 4, 5, 6), unwrapped=(0, 7))
    for stage in history.stages:
        if stage.why and not stage.same_as:
            yield paragraph(f"{stage.commit[:SHOWN]}: {stage.why}", style="warn")
    if history.why_not:
        yield paragraph(f"Not timed: {history.why_not}")


def _row(stage: Stage) -> tuple[Cell, ...]:
    commit = stage.commit[:SHOWN]
    if stage.same_as:
        same = Span(f"as {stage.same_as[:SHOWN]}", "dim")
        return (commit, stage.subject, "", "", "", "", "", same)
    return (
        commit,
        stage.subject,
        *_built(stage.arm),
        figures.time_of(stage.arm),
        _outcome(stage),
    )


def _built(arm: Arm | None) -> tuple[str, str, str, str]:
    if arm is None or arm.build is None:
        return (figures.NONE,) * 4
    resources = arm.build.resources
    spill, memory = (
        resources.spill_bytes,
        resources.static_smem_bytes + resources.dynamic_smem_bytes,
    )
    return (
        str(resources.registers),
        figures.value(spill),
        f"{memory:,}",
        f"{resources.sass_bytes:,}",
    )


def _outcome(stage: Stage) -> Cell:
    arm = stage.arm
    if arm is None:
        return Span("absent", "dim")
    if arm.refused:
        return status(arm.refused.status)
    if stage.verdict and arm.measured and arm.measured.effect:
        return f"{figures.percent(arm.measured.effect.ratio)} {stage.verdict.status}"
    if arm.emulated and not arm.emulated.unsupported:
        return "right"
    return ""


def step(bisect_step: BisectStep) -> Block:
    """A revision that was looked at, in a line."""
    side = Span(f"{bisect_step.side:7}", _SIDES[bisect_step.side])
    return paragraph(
        side, f" {bisect_step.commit[:SHOWN]} {bisect_step.subject}: {bisect_step.sentence}"
    )


def bisected(result: Bisected) -> Iterator[Block]:
    """All revisions that were looked at, then the commit, or why there is none."""
    for bisect_step in result.steps:
        yield step(bisect_step)
    if not result.first_bad:
        skipped = any(item.side == "skipped" for item in result.steps)
        why = "could not both be judged" if skipped else f"do not differ by {result.by}"
        yield paragraph(f"The two revisions {why}: there is nothing to bisect.")
        return
    if len(result.first_bad) > 1:
        yield paragraph("The first bad commit is one of these, as not all could be judged:")
        for bisect_step in result.first_bad:
            yield paragraph(f"{bisect_step.commit[:SHOWN]} {bisect_step.subject}", indent=2)
        return
    (first,) = result.first_bad
    yield paragraph(
        Span(f"{first.commit[:SHOWN]} is the first bad commit: ", "strong"), first.subject
    )
    for name in result.files:
        yield paragraph(name, indent=2)
