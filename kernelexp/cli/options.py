"""The options that several commands have, each written once."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelexp.cli.completion import Completion, answer, assignments, variant_names
from kernelexp.model.errors import UsageError


def option(
    spec: str,
    about: str | None = None,
    mode: str | None = None,
    *,
    completion: Completion | None = None,
    **more: Any,
) -> Any:
    """An option of a command, as --help prints it: `--top N`, `--verbose -v`, `--gpu/--no-gpu`.

    mode: the paragraph of --help that it stands in (see cli/modes.py); completion: what the shell
    offers for its value; more: as typer has it.
    """
    words = spec.split()
    names = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(names) :]) or None
    more["autocompletion"] = _autocompletion(completion)
    return typer.Option(*names, metavar=metavar, help=about, rich_help_panel=mode, **more)


def argument(metavar: str, about: str, *, completion: Completion | None = None, **more: Any) -> Any:
    """An argument of a command under its name in --help; the others as option() has them."""
    more["autocompletion"] = _autocompletion(completion)
    return typer.Argument(metavar=metavar, help=about, **more)


def _autocompletion(
    completion: Completion | None,
) -> Callable[[typer.Context, str], list[tuple[str, str]]] | None:
    """What typer calls with the command line so far and the incomplete word."""
    if completion is None:
        return None

    def answered(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        return answer(completion, ctx, incomplete)

    return answered


Project = Annotated[Path, option("--project -C PATH", "Project folder, or its experiments.yaml.")]
Nvcc = Annotated[
    str | None, option("--nvcc PATH", "The nvcc to use instead of $KERNELEXP_NVCC or the default.")
]
Set = Annotated[
    list[str] | None,
    option(
        "--set AXIS=VALUE",
        "Override an axis of each candidate or variant. Repeatable.",
        completion=assignments,
    ),
]
Variants = Annotated[
    list[str] | None,
    argument(
        "[VARIANT]...",
        "KERNEL, KERNEL@ARCH, KERNEL@ARCH:axis=value,... or an experiment's id.",
        completion=variant_names,
    ),
]
Arm = Annotated[
    str,
    argument(
        "EXPERIMENT",
        "Its candidate (F3:2 of several, F3:baseline), or KERNEL@ARCH:axis=value,...",
        completion=variant_names,
    ),
]
Device = Annotated[str | None, option("--device GPU", "Index or UUID of the GPU to use.")]
Devices = Annotated[
    str | None,
    option(
        "--devices GPUS", "Measure on several GPUs at once: all, or indices or UUIDs, as in 0,1."
    ),
]


Scheduler = Annotated[
    str | None,
    option("--scheduler ADDRESS", "Use the workers of a Dask scheduler: tcp://HOST:8786."),
]


def require_number(percent: float | None) -> float | None:
    """Returns the value of --margin; UsageError where it is nan."""
    if percent is not None and math.isnan(percent):  # which no bound refuses
        raise UsageError("--margin should be a number from 0.01 to 100.")
    return percent


Margin = Annotated[
    float,
    option(
        "--margin PERCENT",
        "Smallest change that matters.",
        min=0.01,
        max=100.0,
        callback=require_number,
    ),
]
Json = Annotated[bool, option("--json", "Print JSON.")]
Csv = Annotated[bool, option("--csv", "Print CSV.")]
Junit = Annotated[Path | None, option("--junit FILE", "Write JUnit XML too.")]
Markdown = Annotated[bool, option("--markdown", "Print markdown.")]
Emulate = Annotated[bool, option("--emulate/--no-emulate", "Execute variants on the CPU.")]
Gpu = Annotated[bool, option("--gpu/--no-gpu", "Time variants if this machine's GPU can run them.")]
Budget = Annotated[
    str | None,
    option(
        "--budget TIME",
        "Time limit for measuring one experiment, start-up excluded: 1m. Default: 30s, plus "
        "5s for each candidate after the first.",
    ),
]
Processes = Annotated[
    int, option("--processes N", "Processes to time before the interval is first checked.", min=2)
]
ExperimentSize = Annotated[
    str | None,
    option(
        "--size NAME",
        "Sizes to time: small, or M=1024,2048. Default: those of the experiment, or full.",
    ),
]
Size = Annotated[str, option("--size NAME", "Which size of problem.py to time.")]
Sizes = Annotated[str, option("--size NAMES", "Sizes to time: small, or M=1024,2048.")]


class L2State(StrEnum):
    """State of the L2 cache when a timed launch starts."""

    cold = "cold"
    hot = "hot"


L2 = Annotated[L2State, option("--l2", "Flush L2 before each launch, or leave it warm.")]
Peers = Annotated[
    bool, option("--peers/--no-peers", "Also time the problem's peers, such as cuBLAS.")
]
SharedGpu = Annotated[bool, option("--shared-gpu", "Measure even if another process uses the GPU.")]
Pedantic = Annotated[bool, option("--pedantic", "Treat the emulator's warnings as mistakes.")]
ISA_HELP = "What to execute: ptx (checked for faults), sass (counted as ncu does), or both."
Verbose = Annotated[bool, option("--verbose -v", "Show every figure of every variant.")]
Limit = Annotated[
    list[str] | None,
    option(
        "--limit WHAT=TIME",
        "Time limit of one build, one emulation, one run of a program, one pass of ncu or "
        "one function of problem.py: build=20m, emulation=1h, run=20m, profile=20m, "
        "problem=2m. Repeatable.",
    ),
]
HERE = Path()
