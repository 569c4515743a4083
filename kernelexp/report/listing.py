"""What a project holds: kernels with their axes, experiments, and all about one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kernelexp.model import Arm, Axis, Experiment, Record, spell, spell_point
from kernelexp.project import Project
from kernelexp.report import figures
from kernelexp.report.tables import STYLES


def to_values(project: Project) -> Any:
    """The project, ready for JSON."""
    return {
        "root": str(project.root),
        "kernels": project.kernels,
        "experiments": project.experiments,
        "history": project.history,
    }


def render(project: Project) -> Iterator[RenderableType]:
    """Kernels with their axes, then experiments, then the steps of the history."""
    for name, kernel in project.kernels.items():
        for arch, target in kernel.targets.items():
            yield Text(f"{name}@{arch}", style="bold").append(f"  {kernel.title}", style="not bold")
            table = _table("axis", "values", "")
            for axis_name, axis in target.axes.items():
                table.add_row(axis_name, _values(axis), Text(axis.about, style="dim"))
            yield Padding(table, (0, 0, 1, 2))
    table = _table("experiment", "title", "kernel")
    for name, experiment in project.experiments.items():
        where = f"{experiment.kernel}@{experiment.arch}"
        style = "dim" if name in project.history else ""
        table.add_row(Text(name), Text(experiment.title), Text(where), style=style)
    yield table


def render_experiment(
    name: str, experiment: Experiment, records: Sequence[Record]
) -> Iterator[RenderableType]:
    """What experiments.yaml says of an experiment, and each of its records, oldest first."""
    yield Text(f"{name}  {experiment.title}", style="bold")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    points = "\n".join(map(spell_point, experiment.candidates))
    changes = "\n".join(f"- {change}" for change in experiment.changes)
    for label, text in (
        ("kernel", f"{experiment.kernel}@{experiment.arch}"),
        ("baseline", spell_point(experiment.baseline)),
        ("candidate", points),
        ("hypothesis", experiment.hypothesis),
        ("changes", changes),
        ("why", experiment.why),
        ("decision", experiment.decision),
        ("notes", experiment.notes),
    ):
        if text:
            table.add_row(Text(label, style="bold"), Text(text))
    yield table
    yield Text("")
    if not records:
        yield Text(f"No records yet: kernelexp run {name}")
    for record in records:
        yield from _record(record)


def _record(record: Record) -> Iterator[RenderableType]:
    head = Text(record.run, style="bold")
    place = record.device or (record.machine.cpu if record.machine else "")
    facts = [record.created, place, f"nvcc {record.compiler}" if record.compiler else ""]
    if record.git:
        facts.append(f"git {record.git.commit[:10]}{', dirty' if record.git.dirty else ''}")
    if record.overrides:
        facts.append(f"--set {spell_point(record.overrides)}")
    yield head.append("  " + ", ".join(filter(None, facts)), style="not bold dim")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_row("", "baseline", Text(_arm(record.baseline)), "")
    for candidate in record.candidates:
        status = candidate.verdict.status
        table.add_row("", "candidate", Text(_arm(candidate.arm)), Text(status, STYLES[status]))
    yield table


def _arm(arm: Arm) -> str:
    parts = []
    if arm.published:
        parts.append(f"published {figures.published_line(arm.published)}")
    if arm.build:
        used = arm.build.resources
        parts.append(
            f"built {used.registers} registers, {used.dynamic_smem_bytes:,} B shared memory"
        )
    return "; ".join(parts) or "no figures"


def _values(axis: Axis) -> Text:
    text = Text()
    for index, value in enumerate(axis.values):
        text.append(", " if index else "")
        text.append(spell(value), style="bold underline" if value == axis.default else "")
        text.append("*" if value == axis.default else "")
    return text


def _table(*header: str) -> Table:
    return Table(*header, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
