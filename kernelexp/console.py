"""What the commands print to: JSON or rich on standard output, progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


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


@contextmanager
def progress_bars() -> Iterator[tuple[Callable[[int, int], None], Callable[[Any], None]]]:
    """Bars for a build and for a measurement on the terminal's standard error; none in a pipe."""
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
        building = progress.add_task("building", total=None, visible=False)
        measuring = progress.add_task("measuring", total=None, visible=False)

        def on_build(done: int, total: int) -> None:
            progress.update(building, completed=done, total=total, visible=True)

        def on_measure(state: Any) -> None:
            from kernelexp.report import measured

            progress.update(
                measuring,
                description=measured.progress_line(state.phase, state.so_far),
                completed=state.processes_done,
                total=state.processes_wanted,
                visible=True,
            )

        yield on_build, on_measure
