"""The program: all commands with a line each, old names, and errors that become exit codes.

A command's file is imported when it is called: typer needs 4 ms to make a command of a function,
and 20 commands would double the time of --help.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import time
from collections.abc import Iterator, MutableMapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from kernelexp import __version__
from kernelexp.cli.completion import join_bash_words
from kernelexp.cli.console import give_up_output, prepare_output, print_message
from kernelexp.cli.mistakes import Refusal, as_error, no_command
from kernelexp.cli.modes import ModalCommand
from kernelexp.cli.options import option
from kernelexp.model import errors
from kernelexp.model.errors import EnvironmentFault, KernelexpError

GROUPS = {
    "Everyday": {
        "init": "Start a project with a kernel and an experiment.",
        "new": "Add an experiment to experiments.yaml.",
        "adopt": "Add a kernel from a source, PTX, a cubin, or a kept log.",
        "run": "Run experiments: build, emulate, time, judge, record.",
        "time": "Time variants against each other, or your own source.",
        "sweep": "Race all combinations of axes for the fastest.",
        "log": "Print the log: history and experiments with verdicts.",
        "show": "Show the project, an experiment, a run, a profile.",
        "decide": "Accept, reject or replace a candidate.",
        "check": "Compare all builds with the committed baseline, for CI.",
    },
    "Understand": {
        "explain": "Explain an experiment, or rank what a variant could gain.",
        "compare": "Rank what changed between two variants, runs, profiles.",
        "inspect": "Show what the compiler made: builds, SASS, cost by line.",
        "emulate": "Execute variants on the CPU: result, barriers, counters.",
        "exec": "Run any CUDA program without a GPU, and check it.",
        "capture": "Keep launches of any program on the GPU; replay them.",
        "profile": "Profile variants with ncu, or import what ncu printed.",
        "history": "Follow a variant through commits; find the bad one.",
    },
    "Share": {
        "report": "Render the project as web pages, or serve them.",
        "plot": "Draw the history, a sweep, a run, stalls, a roofline.",
    },
    "This machine": {
        "doctor": "Check tools, versions and capabilities.",
        "calibrate": "Measure this machine's false verdicts and detection limit.",
    },
    "For programs": {
        "evaluate": "Judge a solution of KernelBench, GPU MODE and others.",
        "serve": "Serve evaluations over HTTP, work on them, or serve MCP.",
    },
}
"""Every command in the order of --help."""
SUMMARIES = {name: line for commands in GROUPS.values() for name, line in commands.items()}
ALIASES = {
    "accept": ("decide", "accept"),
    "reject": ("decide", "reject"),
    "replace": ("decide", "replace"),
    "build": ("inspect", "--build"),
    "lines": ("inspect", "--lines"),
    "bisect": ("history",),
    "recount": ("emulate", "--recount"),
    "audit": ("compare", "--audit"),
    "diff": ("compare", "--records"),
    "list": ("show",),
    "sections": ("show", "--sections", "all"),
    "opportunities": ("explain",),
    "verdict": ("show", "--judge"),
    "selftest": ("calibrate", "--inject", "0.5,1,2,5"),
    "replay": ("capture", "--replay"),
    "import": ("adopt", "--log"),
    "worker": ("serve", "--worker"),
    "mcp": ("serve", "--mcp"),
    "schema": ("show", "--schema", "project"),
}
"""Names of earlier versions, which --help leaves out, as the words that stand for them."""
UNWRAPPED = "\b"
"""A line before a paragraph of a command's help that typer is to leave as it is."""
_KERNEL_SOURCES = (".cu", ".cuh", ".h", ".hpp", ".ptx", ".cubin")


def project_last(words: list[str]) -> list[str]:
    """The command line with a -C PATH that comes before the command, as git has it, behind it;
    empty where no command follows."""
    first = words[0] if words else ""
    size = 1 if first.startswith("--project=") else 2 if first in PROJECT else 0
    return [*words[size : size + 1], *words[:size], *words[size + 1 :]] if words[size:] else []


PROJECT = ("-C", "--project")
"""An option of every command that reads a project."""


def translate(words: list[str]) -> list[str]:
    """The command line with today's name of its command."""
    name, *rest = words
    if name == "new" and (source := _kernel_source(rest)) is not None:
        first, after, path = source
        return ["adopt", path, *rest[:first], *rest[after:]]
    if name == "evaluate" and any(word.partition("=")[0] == "--source" for word in rest):
        return ["time", "--peers", *rest]
    if name == "schema" and rest:
        return ["show", *(word.replace("--of", "--schema", 1) for word in rest)]
    return [*ALIASES.get(name, (name,)), *rest]


def _kernel_source(words: list[str]) -> tuple[int, int, str] | None:
    """Returns the span of `--from FILE` and the file, if it is a kernel's source and not a run."""
    for number, word in enumerate(words):
        option, equals, path = word.partition("=")
        if option == "--from":
            after = number + 1 + (not equals)
            path = path or "".join(words[number + 1 : after])
            return (number, after, path) if path.endswith(_KERNEL_SOURCES) else None
    return None


def _keep_examples(text: str) -> str:
    """Marks the paragraphs of examples, whose lines are to be copied, as not to be wrapped."""
    return re.sub(
        r"^For example:$", f"{UNWRAPPED}\nFor example:", inspect.cleandoc(text), flags=re.M
    )


class Commands(MutableMapping[str, Any]):
    """Commands by name, each imported and made when it is looked up."""

    def __init__(self, app: typer.Typer) -> None:
        self._app = app
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in SUMMARIES:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Any:
        importlib.import_module(f"kernelexp.cli.{name}")
        alone = typer.Typer(rich_markup_mode=None, add_completion=False)
        alone.registered_commands = [
            registered_command
            for registered_command in self._app.registered_commands
            if name
            in (
                registered_command.name,
                registered_command.callback and registered_command.callback.__name__,
            )
        ]
        for registered_command in alone.registered_commands:
            # typer makes all that an app still has each time that it is asked for the app's group.
            self._app.registered_commands.remove(registered_command)
            if registered_command.cls is TyperCommand:
                registered_command.cls = ModalCommand
        command = typer.main.get_command(alone)
        command.name = name
        command.help = _keep_examples(command.help or "")
        return command

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


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
    if os.environ.get("_KERNELEXP_COMPLETE") == "complete_bash":
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
