"""The program: its commands' common options, and the one place where errors become exit codes."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kernelexp import __version__, errors
from kernelexp.cli.commands import SUMMARIES, Commands
from kernelexp.cli.completion import join_bash_words
from kernelexp.cli.console import give_up_output, prepare_output
from kernelexp.errors import KernelexpError
from kernelexp.text import printable


class _Commands(TyperGroup):
    """Ends a user's mistake with its sentence and exit code; makes a command when it is named."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": {}})
        self.commands = Commands(app)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(SUMMARIES)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KernelexpError as error:
            typer.echo(f"error: {printable(str(error))}", err=True)
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:  # what reads our output has enough of it
            give_up_output()
            raise typer.Exit(errors.BROKEN_PIPE) from None
        except OSError as error:
            give_up_output()
            typer.echo(f"error: {errors.explain(error)}.", err=True)
            raise typer.Exit(errors.ENVIRONMENT) from None
        except KeyboardInterrupt as interrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(getattr(interrupt, "exit_code", errors.INTERRUPTED)) from None


_EXITS = "\n\n".join(f"{code}  {meaning}" for code, meaning in errors.EXIT_CODES.items())

app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # rich would double the time of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog=f"Exit codes:\n\n{_EXITS}",
)


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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Reproducible experiments on GPU kernel variants.

    A hypothesis, a baseline and candidate variants built by the real compiler, evidence, a verdict,
    a line in the log. Kernels and experiments are defined in experiments.yaml.
    """
