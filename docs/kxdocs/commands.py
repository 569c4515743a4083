"""The command line's own help as pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from kernelexp.cli import app
from kernelexp.cli.commands import UNWRAPPED
from kernelexp.model import errors
from kxdocs.markdown import code, escape, paragraphs, table


def commands() -> str:
    """A section for each command, in the order of --help."""
    group: Any = typer.main.get_command(app)
    parent = group.context_class(group, info_name="kernelexp", **group.context_settings)
    return "\n".join(_section(group.commands[name], parent) for name in group.commands)


def exit_codes() -> str:
    """A table of them."""
    rows = ((str(exit_code), meaning) for exit_code, meaning in errors.EXIT_CODES.items())
    return table(("exit code", "meaning"), rows)


def _section(command: Any, parent: Any) -> str:
    ctx = command.context_class(command, info_name=command.name, parent=parent)
    usage = " ".join((f"kernelexp {command.name}", *command.collect_usage_pieces(ctx)))
    lines = [f"## kernelexp {command.name}", "", "```text", usage, "```", ""]
    text, _, examples = command.help.partition(UNWRAPPED)
    for paragraph in paragraphs(text):
        lines += [escape(paragraph), ""]
    if examples:
        first, *commands_ = examples.strip().splitlines()
        lines += [first, "", "```console", *(f"$ {each.strip()}" for each in commands_), "```", ""]
    records = [
        (each.param_type_name, each.get_help_record(ctx)) for each in command.get_params(ctx)
    ]
    for kind in ("argument", "option"):
        rows = list(_rows(record for of, record in records if of == kind and record))
        if rows:
            lines += [table((kind, "meaning"), rows)]
    return "\n".join(lines)


def _rows(records: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, text in records:
        yield code(name), escape(" ".join(text.split()))
