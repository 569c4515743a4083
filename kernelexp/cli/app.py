"""The program: its commands' common options, and the one place where errors become exit codes."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kernelexp import __version__
from kernelexp.cli.commands import (
    ALIASES,
    GROUPS,
    SUMMARIES,
    UNWRAPPED,
    Commands,
    project_last,
    translate,
)
from kernelexp.cli.completion import join_bash_words
from kernelexp.cli.console import give_up_output, prepare_output, print_message
from kernelexp.cli.mistakes import Refusal, as_error, no_command
from kernelexp.cli.options import option
from kernelexp.model import errors
from kernelexp.model.errors import EnvironmentFault, KernelexpError

_LAST_S = 253_402_000_000.0
"""Python's last date, by the clock of time.time(), less some days."""


def _clock_is_usable() -> bool:
    try:
        return time.time() < _LAST_S
    except OverflowError:  # Python counts nanoseconds in 64 bits, to the year 2262
        return False


_FIRST = """\
kernelexp: reproducible experiments on GPU kernel variants. A hypothesis,
variants built by the real compiler, evidence, a verdict, a line in the log.

First commands:
  kernelexp doctor             what works on this machine
  kernelexp init demo          a project with a kernel and an experiment
  kernelexp run E1 -C demo     build, emulate, time and judge it

In a project, kernelexp show lists kernels and experiments, and kernelexp adopt
FILE.cu adds your kernel. kernelexp --help lists all commands."""


class _Commands(TyperGroup):
    """Ends a user's mistake with its sentence and exit code; makes a command when it is named."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": {}})
        self.commands = _COMMANDS

    def list_commands(self, ctx: Any) -> list[str]:
        return list(SUMMARIES)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, SUMMARIES))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **settings: Any
    ) -> Any:
        try:
            words = project_last(args)
            if not words and not settings.get("resilient_parsing"):  # which completion sets
                typer.echo(_FIRST)
                raise typer.Exit(errors.USAGE)
            return super().make_context(info_name, words, parent, **settings)
        except Refusal as refusal:
            raise _ended(as_error(refusal)) from None
        except OSError as error:  # --help and --version print here
            raise _unprinted(error) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not args[0].startswith("-") and args[0] not in SUMMARIES and args[0] not in ALIASES:
            raise no_command(args[0], list(SUMMARIES))
        return super().resolve_command(ctx, translate(args))

    def invoke(self, ctx: Any) -> Any:
        try:
            if not _clock_is_usable():
                raise EnvironmentFault("this machine's clock is centuries ahead: set it.")
            return super().invoke(ctx)
        except Refusal as refusal:
            command = f"{ctx.command_path} {ctx.invoked_subcommand or ''}".strip()
            raise _ended(as_error(refusal, command)) from None
        except KernelexpError as error:
            raise _ended(error) from None
        except OSError as error:
            raise _unprinted(error) from None
        except KeyboardInterrupt as interrupt:
            print_message("interrupted")
            raise typer.Exit(getattr(interrupt, "exit_code", errors.INTERRUPTED)) from None


def _unprinted(error: OSError) -> Exception:
    """Says what a file or the output came to; what then ends the command with its exit code."""
    give_up_output()
    if isinstance(error, BrokenPipeError):  # what reads our output has enough of it
        return typer.Exit(errors.BROKEN_PIPE)
    print_message(f"error: {errors.explain(error)}.")
    return typer.Exit(errors.ENVIRONMENT)


def _ended(error: Exception) -> Exception:
    """Says what the mistake is; what then ends the command with its exit code."""
    if not isinstance(error, KernelexpError):
        return error
    print_message(f"error: {error}")
    return typer.Exit(error.exit_code)


_EXITS = "\n".join(f"{code:>5}  {meaning}" for code, meaning in errors.EXIT_CODES.items())

app = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,  # rich would double the time of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog=f"{UNWRAPPED}\nExit codes:\n{_EXITS}",
)


_COMMANDS = Commands(app)


def main() -> None:
    """The command line, with the process's own arguments."""
    prepare_output()
    join_bash_words(os.environ)
    app(prog_name="kernelexp")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"kernelexp {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, option("--version", "Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Reproducible experiments on GPU kernel variants.

    A hypothesis, a baseline and candidate variants built by the real compiler, evidence, a verdict,
    a line in the log. Kernels and experiments are defined in experiments.yaml.
    """
