"""Commands with modes: options of one mode stand together in --help, and are refused in another.

An option names its mode once, as its `rich_help_panel`: "With --strategy" or "Without --inject".
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from kernelexp.model.errors import UsageError

BEHIND = "behind"
"""Where the words after `--` lie in a context's meta."""


class ModalCommand(TyperCommand):
    """A command whose --help has a paragraph of options for each of its modes."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        paragraphs: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            line = parameter.get_help_record(ctx)
            if line is not None:
                paragraphs.setdefault(heading(parameter), []).append(line)
        for title in sorted(paragraphs, key=order):
            with formatter.section(title):
                formatter.write_dl(paragraphs[title])


class PartedCommand(ModalCommand):
    """A command that leaves the words after `--` to another program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[BEHIND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


def heading(parameter: Any) -> str:
    """The paragraph of --help that a parameter stands in."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    return getattr(parameter, "rich_help_panel", None) or "Options"


def order(title: str) -> int:
    """Arguments, then the options of all modes, then those of each."""
    return {"Arguments": 0, "Options": 1}.get(title, 2)


def given(ctx: typer.Context) -> list[str]:
    """The names of the parameters that the command line gives a value."""
    return [
        name
        for name in ctx.params
        if (source := ctx.get_parameter_source(name)) and source.name == "COMMANDLINE"
    ]


def refuse_other_modes(ctx: typer.Context, *modes: str) -> None:
    """UsageError for an option on the command line that belongs to none of these modes."""
    for option in _options(ctx):
        title = heading(option)
        if title not in ("Options", *modes):
            raise _misplaced(ctx, option, f"{title[0].lower()}{title[1:]}")


def refuse_all_but(ctx: typer.Context, mode: str, *names: str) -> None:
    """UsageError for an option on the command line other than these, which go with `mode`."""
    for option in _options(ctx):
        if option.name not in names:
            raise _misplaced(ctx, option, f"without {mode}")


def _options(ctx: typer.Context) -> list[Any]:
    """The options on the command line."""
    names = given(ctx)
    return [
        parameter
        for parameter in ctx.command.params
        if parameter.param_type_name == "option" and parameter.name in names
    ]


def _misplaced(ctx: typer.Context, option: Any, place: str) -> UsageError:
    names = (max(names, key=len) for names in (option.opts, option.secondary_opts) if names)
    spelled = "/".join(names)
    return UsageError(f"{spelled} goes {place}; see {ctx.command_path} --help.")
