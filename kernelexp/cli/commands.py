"""All commands in a line each, and the one place that imports their files.

typer needs 4 ms to make a command of a function: 20 commands would double the time of --help.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, MutableMapping
from typing import Any

import typer

SUMMARIES = {
    "init": "Start a project with a kernel and an experiment.",
    "new": "Add an experiment, or a kernel from a CUDA source.",
    "import": "Import a hand-kept log: history, experiments, results.",
    "run": "Run experiments: build, emulate, time, judge, record.",
    "time": "Time variants against each other, now.",
    "sweep": "Race all combinations of axes for the fastest.",
    "build": "Build variants and print registers, spills, memory.",
    "emulate": "Execute variants on the CPU: result, barriers, counters.",
    "exec": "Run any CUDA program without a GPU, and check it.",
    "recount": "Count recorded runs again; their times stay.",
    "evaluate": "Evaluate a source instead of a variant's own.",
    "list": "List kernels, axes, experiments and verdicts.",
    "show": "Show an experiment and its records, or one run.",
    "log": "Print the log: history and experiments with verdicts.",
    "accept": "Accept a candidate: it becomes the current best.",
    "reject": "Reject a candidate, or all of an experiment.",
    "replace": "Replace an accepted variant by another experiment's.",
    "plot": "Draw the history, a sweep, a run, stalls, a roofline.",
    "report": "Render the project as web pages, or serve them.",
    "diff": "Compare two records: axes, compiler, sources, figures.",
    "compare": "Rank what changed between two variants, runs, profiles.",
    "audit": "Write a performance audit of a variant from the records.",
    "explain": "Explain an experiment: expectations, changes, limits.",
    "profile": "Profile variants with ncu, or import what ncu printed.",
    "sections": "Show a profile as tables with what each figure means.",
    "opportunities": "Rank what could be gained in a variant.",
    "lines": "Show what each source line and each warp role costs.",
    "inspect": "Show what the compiler made: accesses, barriers, loops.",
    "verdict": "Judge a record again from its samples; needs no GPU.",
    "check": "Compare all builds with the committed baseline, for CI.",
    "bisect": "Find the commit that made a variant slower or wrong.",
    "history": "Show a variant at each commit of a range.",
    "calibrate": "Measure this machine's rate of false verdicts.",
    "selftest": "Measure the smallest slowdown that a run detects here.",
    "doctor": "Check tools, versions and capabilities.",
    "schema": "Print the JSON Schema of experiments.yaml or of --json.",
    "mcp": "Serve commands to other programs as MCP tools.",
}
"""In the order of --help."""
UNWRAPPED = "\b"
"""A line before a paragraph of a command's help that typer is to leave as it is."""
_FILES = {
    "import": "import_",
    "selftest": "calibrate",
    **dict.fromkeys(("accept", "reject", "replace"), "decide"),
}
"""Commands in a file of another name."""


def _keep_examples(text: str) -> str:
    """Marks the paragraphs of examples, whose lines are to be copied, as not to be wrapped."""
    return re.sub(
        r"^For example:$", f"{UNWRAPPED}\nFor example:", inspect.cleandoc(text), flags=re.M
    )


class Commands(MutableMapping[str, Any]):
    """Commands by name, each imported and made when it is asked for."""

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
        importlib.import_module(f"kernelexp.cli.{_FILES.get(name, name)}")
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
