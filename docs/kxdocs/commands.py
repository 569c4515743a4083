"""The command line's own help as pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import typer

from kernelexp.cli import app
from kernelexp.cli.app import ALIASES, UNWRAPPED
from kernelexp.cli.modes import heading, order
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


def earlier_names() -> str:
    """A table of names that still work."""
    rows = (
        (code(f"kernelexp {old}"), code(f"kernelexp {' '.join(words)}"))
        for old, words in ALIASES.items()
    )
    return table(("earlier name", "today"), rows)


_KINDS = {"Arguments": "argument", "Options": "option"}


def _section(command: Any, parent: Any) -> str:
    ctx = command.context_class(command, info_name=command.name, parent=parent)
    usage = " ".join((f"kernelexp {command.name}", *command.collect_usage_pieces(ctx)))
    lines = [f"## kernelexp {command.name}", "", "```text", usage, "```", ""]
    text, _, examples = command.help.partition(UNWRAPPED)
    for paragraph in paragraphs(text):
        lines += [escape(paragraph), ""]
    if examples:
        first, *commands_ = examples.strip().splitlines()
        lines += [first, "", "```console", *(f"$ {item.strip()}" for item in commands_), "```", ""]
    paragraphs_: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        if record := parameter.get_help_record(ctx):
            paragraphs_.setdefault(heading(parameter), []).append(record)
    for title in sorted(paragraphs_, key=order):
        kind = _KINDS.get(title, f"option {title[0].lower()}{title[1:]}")
        lines += [table((kind, "meaning"), _rows(paragraphs_[title]))]
    return "\n".join(lines)


def _rows(records: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, text in records:
        yield code(name), escape(" ".join(text.split()))
