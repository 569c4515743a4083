"""Output of `kernelexp history`: a variant over revisions, and the result of a bisection."""

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
    built, time = _built(stage.arm), figures.time_of(stage.arm)
    return (commit, stage.subject, *built, time, _outcome(stage))


def _built(arm: Arm | None) -> tuple[str, str, str, str]:
    if arm is None or arm.build is None:
        return (figures.NONE,) * 4
    used = arm.build.resources
    return (
        str(used.registers),
        figures.value(used.spill_bytes),
        f"{used.static_smem_bytes + used.dynamic_smem_bytes:,}",
        f"{used.sass_bytes:,}",
    )


def _outcome(stage: Stage) -> Cell:
    arm = stage.arm
    if arm is None:
        return Span("absent", "dim")
    if arm.refused:
        return status(arm.refused.status)
    if stage.verdict and arm.effect:
        return f"{figures.percent(arm.effect.ratio)} {stage.verdict.status}"
    if arm.emulated and not arm.emulated.unsupported:
        return "right"
    return ""


def step(taken: BisectStep) -> Block:
    """A revision that was looked at, in a line."""
    side = Span(f"{taken.side:7}", _SIDES[taken.side])
    return paragraph(side, f" {taken.commit[:SHOWN]} {taken.subject}: {taken.sentence}")


def bisected(result: Bisected) -> Iterator[Block]:
    """All revisions that were looked at, then the commit, or why there is none."""
    for taken in result.steps:
        yield step(taken)
    if not result.first_bad:
        skipped = any(item.side == "skipped" for item in result.steps)
        why = "could not both be judged" if skipped else f"do not differ by {result.by}"
        yield paragraph(f"The two revisions {why}: there is nothing to bisect.")
        return
    if len(result.first_bad) > 1:
        yield paragraph("The first bad commit is one of these, as not all could be judged:")
        for taken in result.first_bad:
            yield paragraph(f"{taken.commit[:SHOWN]} {taken.subject}", indent=2)
        return
    (first,) = result.first_bad
    yield paragraph(
        Span(f"{first.commit[:SHOWN]} is the first bad commit: ", "strong"), first.subject
    )
    for name in result.files:
        yield paragraph(name, indent=2)
