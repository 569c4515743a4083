"""Kernels without an experiment, on the first page: the result of their latest emulation."""

from __future__ import annotations

import functools

import msgspec

from kernelexp.dossier import emulations, standing
from kernelexp.dossier.standing import Tree
from kernelexp.judge import verdict
from kernelexp.model.arm import Arm
from kernelexp.model.errors import UsageError
from kernelexp.project import Project
from kernelexp.report.document.document import Cell, Span
from kernelexp.report.variants.emulation import depends


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel on one architecture."""

    kernel: str
    """With its architecture."""
    title: str
    state: Cell
    """What is known of it, in a word or two."""
    sentence: str = ""
    next_step: str
    is_wrong: bool = False


def of_kernel(project: Project, kernel: str, arch: str, tree: Tree) -> Idle:
    """Describes an idle kernel from what is kept of emulating it; nothing is built or executed."""
    name = f"{kernel}@{arch}"
    of = functools.partial(Idle, kernel=name, title=project.kernels[kernel].title)
    again = f"Next: `kernelexp emulate {name}`."
    known = [
        (kept, _changes(project, kernel, arch, kept.arm, tree))
        for kept in emulations.latest(project.root, kernel, arch)
    ]
    if not known:
        return of(state="not emulated, not timed", next_step=again)
    stand = (one for one in known if one[0].arm.emulated and not one[1])
    kept, changed = next(stand, known[0])
    evidence = kept.arm.emulated
    if changed or evidence is None:
        what = ", ".join(changed) or "problem.py or the emulator"
        state = Span("changed since it was emulated", "warn")
        return of(state=state, sentence=f"{what}.", next_step=again)
    if evidence.is_right:
        orders = f"under {len(evidence.schedules)} schedules"
        varies = f" At this size {depends(evidence)}" if evidence.varying else ""
        return of(
            state=Span("Emulated: right", "good"),
            sentence=f"at size {kept.size}, {orders}; never timed.{varies}",
            next_step=f"Next: `kernelexp explain {name}` ranks what it could gain.",
        )
    against = verdict.emulated(evidence)
    return of(
        state=Span(against.status.name, "bad") if against else Span("not judged", "warn"),
        sentence=against.sentence if against else evidence.unsupported,
        next_step=f"Next: `kernelexp emulate {name}` shows every finding.",
        is_wrong=against is not None,
    )


def _changes(project: Project, kernel: str, arch: str, arm: Arm, tree: Tree) -> tuple[str, ...]:
    try:
        variant = project.variant(kernel, arch, arm.axes)
        return tuple(standing.arm_changes(variant, arm, {}, tree))
    except UsageError:
        return ("its axes",)
