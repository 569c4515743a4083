"""The log for a terminal: rich tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kernelexp.model import Status
from kernelexp.report import markdown
from kernelexp.report.log import KernelLog

STYLES: dict[str, str] = {
    Status.IMPROVED: "green",
    Status.REJECTED: "red",
    Status.INCORRECT: "bold red",
    Status.BUILD_FAILED: "bold red",
    Status.CRASHED: "bold red",
    Status.TIMED_OUT: "bold red",
    Status.NEUTRAL: "",
    Status.IMPOSSIBLE: "magenta",
    Status.INCONCLUSIVE: "yellow",
    Status.INVALID: "yellow",
    Status.UNMEASURED: "cyan",
}
"""How a verdict is coloured; its word says the same without colour."""


def render(logs: Sequence[KernelLog]) -> Iterator[RenderableType]:
    """The two tables of each kernel, for a console of 80 columns or more."""
    for log in logs:
        yield Text(f"{log.kernel}, {log.arch}", style="bold")
        yield Text(markdown.best_line(log).replace("**", ""))
        if log.history:
            yield Padding(_history(log), (1, 0, 0, 0))
        if log.experiments:
            yield Padding(_experiments(log), (1, 0, 0, 0))
        yield Text(markdown.provenance_line(log), style="dim")


def _history(log: KernelLog) -> Table:
    table = Table(*markdown.HISTORY_HEADER, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for index in (2, 3, 4):
        table.columns[index].justify = "right"
        table.columns[index].no_wrap = True
    table.columns[0].no_wrap = True
    for step in log.history:
        table.add_row(*map(Text, markdown.history_row(step)))
    return table


def _experiments(log: KernelLog) -> Table:
    table = Table(*markdown.EXPERIMENT_HEADER, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.columns[2].justify = table.columns[3].justify = "right"
    table.columns[4].no_wrap = True
    for entry in log.experiments:
        for cells in markdown.experiment_rows(entry):
            *plain, status = cells
            table.add_row(*map(Text, plain), Text(status, style=STYLES.get(status, "")))
    return table
