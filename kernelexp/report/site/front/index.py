"""The first page's table: a row for each candidate, with the very figures of `log --json`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from kernelexp.dossier import emulations
from kernelexp.dossier.tree import Tree, arm_changes
from kernelexp.judge import verdict
from kernelexp.model.arm import Arm, Status
from kernelexp.model.errors import UsageError
from kernelexp.project import Project
from kernelexp.report.document import document, figures
from kernelexp.report.document.document import Cell, Span
from kernelexp.report.log.logbook import CHANGED, NOT_RUN
from kernelexp.report.variants.emulation import depends

NUMBERS: dict[str, str] = {
    "time_ms": "Time, ms",
    "change_percent": "Change, %",
    "launch__registers_per_thread": "Registers",
    "published_time_ms": "Published",
}
"""The figures that the table shows, by their names in `log --json`."""
ROWS_SHOWN = 200
"""Until all are asked for: Chromium lays 1,000 out in 120 ms of CPU time, after each key."""


class CandidateRow(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate of a step of the history, or of an experiment."""

    kernel: str
    """With its architecture."""
    section: str
    arm: dict[str, Any]
    """Its row in `log --json`."""
    verdict: Cell
    numbers: dict[str, str]
    """The figures of NUMBERS as they are written."""


def rows(values: Iterable[dict[str, Any]]) -> Iterator[CandidateRow]:
    """A row for each candidate of what a KernelLog.logged() gives."""
    for log in values:
        for section, entries in (("step", "history"), ("experiment", "experiments")):
            for arm in (arm for entry in log[entries] for arm in entry["arms"]):
                if arm["arm"] == "candidate":
                    yield CandidateRow(
                        kernel=f"{log['kernel']}@{log['arch']}",
                        section=section,
                        arm=arm,
                        verdict=_verdict(arm),
                        numbers={name: _text(name, arm) for name in NUMBERS},
                    )


def _verdict(arm: dict[str, Any]) -> Cell:
    if arm["verdict"]:
        return document.status(Status(arm["verdict"]))
    return Span(CHANGED, "warn") if arm["changed_since"] else NOT_RUN


def _text(name: str, arm: dict[str, Any]) -> str:
    if name == "published_time_ms":
        return _published(arm)
    value = arm.get(name)
    if value is None:
        return figures.NONE
    if name == "change_percent":
        return figures.percent(1 + value / 100)
    return figures.time_ms(value) if name == "time_ms" else figures.value(value)


def _published(arm: dict[str, Any]) -> str:
    """All that was published of it: "~0.722 ms, 1,516 TFLOPS, 222 registers"."""
    parts = []
    if time := arm.get("published_time_ms"):
        to = arm.get("published_time_ms_to")
        parts = [f"{figures.time_ms(time)}{f' to {figures.time_ms(to)}' if to else ''} ms"]
    for name, unit in (("published_tflops", "TFLOPS"), ("published_registers", "registers")):
        if arm.get(name) is not None:
            parts.append(figures.value(arm[name], unit))
    tilde = "~" if parts and arm["published_approximate"] else ""
    return tilde + (", ".join(parts) or figures.NONE)


def used(rows: Sequence[CandidateRow]) -> dict[str, str]:
    """The headings of the figures that at least one row has."""
    return {
        name: label
        for name, label in NUMBERS.items()
        if any(row.numbers[name] != figures.NONE for row in rows)
    }


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
        return tuple(arm_changes(variant, arm, {}, tree))
    except UsageError:
        return ("its axes",)
