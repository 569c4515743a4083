"""What the commands print to: JSON or rich on standard output, progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress


def output(values: Any, renderables: Iterable[RenderableType], json: bool) -> None:
    if json:
        print_json(values)
    else:
        print_rich(renderables)


def print_json(values: Any) -> None:
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(values, enc_hook=str), indent=2)
    typer.echo(text.decode())


def print_rich(renderables: Iterable[RenderableType]) -> None:
    console = _console()
    for renderable in renderables:
        console.print(renderable)


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    # 80 columns in a pipe, whatever a wide terminal was like; NO_COLOR is rich's to heed.
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else 80, highlight=False)


class Bars:
    """A bar for each long part of a command, shown from its first report on."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks = {
            name: progress.add_task(name, total=None, visible=False)
            for name in ("building", "emulating", "measuring")
        }

    def build(self, done: int, total: int) -> None:
        self._show("building", done, total)

    def emulate(self, done: int, total: int) -> None:
        self._show("emulating", done, total)

    def measure(self, state: Any) -> None:
        """Phase, processes and the intervals as they narrow, of kernelexp.gpu.measure."""
        from kernelexp.report import measured

        words = measured.progress_line(state.phase, state.so_far)
        self._show("measuring", state.processes_done, state.processes_wanted, words)

    def _show(self, name: str, done: int, total: int, words: str = "") -> None:
        self._progress.update(
            self._tasks[name],
            description=words or name,
            completed=done,
            total=total,
            visible=True,
        )


@contextmanager
def progress_bars() -> Iterator[Bars]:
    """Bars on the terminal's standard error; none in a pipe."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = _console(stderr=True)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        yield Bars(progress)
