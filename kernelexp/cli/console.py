"""Output of commands: JSON or a document on standard output, progress on standard error."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shlex
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from kernelexp.model.text import shorten

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.progress import Progress

    from kernelexp.report.document.document import Document
    from kernelexp.system.live import OnProgress, Phase, Step

# In a pipe nobody sees a bar: a line says now and then that work goes on.
REMIND_S = 30.0
WIDTH = 80


def output(kind: str, values: Any, document: Document, json: bool, markdown: bool = False) -> None:
    """The values as JSON of this kind, one of report.outputs.types(); or the document for
    people."""
    if json:
        print_json(kind, values)
    else:
        print_document(document, markdown)


def print_json(kind: str, values: Any) -> None:
    from kernelexp.report import outputs

    # As bytes: JSON is UTF-8, whatever the console is.
    typer.echo(outputs.encode(kind, values))


def print_schema(schema: Mapping[str, Any]) -> None:
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(schema), indent=2))


def print_text(text: str) -> None:
    # Not typer.echo, which writes UTF-8 to a console that is not.
    sys.stdout.write(text)


def print_document(document: Document, markdown: bool = False, *, stderr: bool = False) -> None:
    if markdown:
        from kernelexp.report.document.document import as_markdown

        print_text(as_markdown(document))
        return
    from kernelexp.report.document import terminal

    console = _console(stderr)
    if console.is_terminal:
        for renderable in terminal.render(document):
            console.print(renderable)
        return
    with console.capture() as captured:
        for renderable in terminal.render(document):
            console.print(renderable)
    # Without the spaces that fill tables to their width.
    text = "\n".join(line.rstrip() for line in captured.get().split("\n"))
    (sys.stderr if stderr else sys.stdout).write(text)


def prepare_output() -> None:
    """Makes any text printable: a console that is not UTF-8 gets `?` for what it can't show."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell: `>&-`
            setattr(sys, name, open(os.devnull, "w"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def print_message(text: str) -> None:
    """A sentence for people on standard error; nowhere, if nobody reads that any more.

    A terminal breaks lines in the middle of words, so they are broken here; in a pipe a sentence
    is one line, which grep finds.
    """
    try:
        if sys.stderr.isatty():
            width = shutil.get_terminal_size((WIDTH, 24)).columns
            text = "\n".join(_folded(line, width) for line in text.splitlines())
        typer.echo(text, err=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _folded(line: str, width: int) -> str:
    wrap = functools.partial(textwrap.wrap, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap(line, width, subsequent_indent="  ")) if len(line) > width else line


def give_up_output() -> None:
    """Drops what standard output does not take, so that Python's exit does not fail on it."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _console(stderr: bool = False) -> Console:
    from rich import console

    class Console(console.Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the program with code 1

    # 80 columns in a pipe, whatever a wide terminal was like; NO_COLOR is rich's to heed.
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDTH, highlight=False)


@contextlib.contextmanager
def progress_bars(root: Path | None = None) -> Iterator[OnProgress]:
    """A bar per phase on a terminal's standard error; a line every half minute in a pipe.

    Those who look at the pages of the project at `root` see the same (`report --serve`).
    """
    with contextlib.ExitStack() as stack:
        tellers = [stack.enter_context(_bars() if sys.stderr.isatty() else _reminders())]
        if root is not None:
            from kernelexp.system import live

            command = shlex.join(("kernelexp", *sys.argv[1:]))
            tellers.append(stack.enter_context(live.published(root, command)))

        def tell(step: Step) -> None:
            for teller in tellers:
                teller(step)

        yield tell


@contextlib.contextmanager
def _bars() -> Iterator[OnProgress]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[phase]:9}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    console = _console(stderr=True)
    with Progress(*columns, console=console, transient=True) as progress:
        yield _show_in(progress)


def _show_in(progress: Progress) -> OnProgress:
    tasks: dict[str, Any] = {}

    def show(step: Step) -> None:
        if step.phase not in tasks:
            tasks[step.phase] = progress.add_task("", total=step.total, phase=step.phase)
        progress.update(
            tasks[step.phase],
            description=shorten(step.now, 36),
            completed=step.done,
            total=step.total,
        )

    return show


_PIECES: dict[Phase, str] = {
    "building": "builds",
    "emulating": "executions",
    "modelling": "variants",
    "measuring": "processes",
    "profiling": "variants",
}


@contextlib.contextmanager
def _reminders() -> Iterator[OnProgress]:
    latest: list[Step] = []
    over = threading.Event()
    begun = time.monotonic()

    def remind() -> None:
        while not over.wait(REMIND_S):
            for step in latest[-1:]:
                words = f"{step.phase}: {step.done} of {step.total} {_PIECES[step.phase]} done"
                words += f" after {time.monotonic() - begun:.0f} s"
                now = f", now {shorten(step.now, WIDTH - len(words) - 6)}" if step.now else ""
                print_message(f"{words}{now}")

    threading.Thread(target=remind, daemon=True).start()

    def note(step: Step) -> None:
        latest[:] = [step]

    try:
        yield note
    finally:
        over.set()
