"""Output of commands for the README: cog calls show() between its markers.

The commands run in cog's process, each once for all pages that it is given.
"""

from __future__ import annotations

import contextlib
import functools
import shlex
from pathlib import Path

from typer.testing import CliRunner

from kernelexp.cli import app

ROOT = Path(__file__).parent.parent


def show(command: str) -> None:
    """Writes the command and what it prints, as a console block."""
    _write("```console", f"$ {command}", *_lines(command), "```")


def excerpt(command: str, first: int, last: int) -> None:
    """Writes some lines of what a command prints, counted from 1, as a console block."""
    lines = _lines(command)
    shown = [line for line in lines[first - 1 : last] if line]
    before, after = (["..."] if cut else [] for cut in (first > 1, last < len(lines)))
    _write("```console", f"$ {command}", *before, *shown, *after, "```")


def tables(command: str, *titles: str) -> None:
    """Writes those paragraphs of what a command prints that begin with a title, as a block."""
    _write("```console", f"$ {command}", "...", *_paragraphs(command, titles), "...", "```")


def show_markdown(command: str, *titles: str, last: int) -> None:
    """Writes paragraphs of markdown as tables() does; of the last one, a table, its last rows."""
    *before, table = "\n".join(_paragraphs(command, titles)).split("\n\n")
    heading, line, *rows = table.splitlines()
    _write("", *before, "", heading, line, *rows[-last:], "")


def _paragraphs(command: str, titles: tuple[str, ...]) -> list[str]:
    blocks = [part.strip("\n") for part in "\n".join(_lines(command)).split("\n\n")]
    for title in titles:
        if not any(block.lstrip().startswith(title) for block in blocks):
            raise SystemExit(f"kernelexp prints nothing that begins with {title!r}: {command}")
    return ["\n\n".join(block for block in blocks if block.lstrip().startswith(titles))]


def _write(*lines: str) -> None:
    import cog  # exists only while cog runs this

    cog.outl("\n".join(lines))


@functools.cache
def _lines(command: str) -> tuple[str, ...]:
    program, *arguments = shlex.split(command)
    with contextlib.chdir(ROOT):
        result = CliRunner(env={"NO_COLOR": "1"}).invoke(app, arguments, prog_name=program)
    if result.exit_code:
        raise SystemExit(f"{command} ended with {result.exit_code}:\n{result.output}")
    return tuple(line.rstrip() for line in result.stdout.splitlines())
