"""All commands with a line each, old names, and the one place that imports their files.

typer needs 4 ms to make a command of a function: 20 commands would double the time of --help.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, MutableMapping
from typing import Any

import typer
from typer.core import TyperCommand

from kernelexp.cli.modes import ModalCommand

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
