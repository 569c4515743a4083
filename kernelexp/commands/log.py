"""The log, read from the records and written to its file: the command `log`, and each run's end."""

from __future__ import annotations

from pathlib import Path

from kernelexp import records
from kernelexp.project import Project
from kernelexp.records import Unreadable
from kernelexp.report import log
from kernelexp.report.log import KernelLog


def read(project: Project) -> tuple[tuple[KernelLog, ...], list[Unreadable]]:
    """The log of each kernel and architecture, and the records that were skipped."""
    told = {name: records.read_telling(project.root, name) for name in project.experiments}
    skipped = [record for each in told.values() for record in each.unreadable]
    return log.assemble(project, told), skipped


def write(project: Project, logs: tuple[KernelLog, ...]) -> Path:
    """Renders logs/EXPERIMENTS.md; its path."""
    from kernelexp.report import markdown

    return records.write_text(project.root, "logs/EXPERIMENTS.md", markdown.render_file(logs))
