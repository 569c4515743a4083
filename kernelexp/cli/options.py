"""The options that several commands have, each written once."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli.completion import assignments, complete, variant_names
from kernelexp.model.errors import UsageError

ProjectOption = Annotated[
    Path,
    typer.Option(
        "--project", "-C", metavar="PATH", help="Project folder, or its experiments.yaml."
    ),
]
NvccOption = Annotated[
    str | None,
    typer.Option(
        "--nvcc", metavar="PATH", help="The nvcc to use instead of $KERNELEXP_NVCC or the default."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="AXIS=VALUE",
        autocompletion=complete(assignments),
        help="Override an axis of each candidate or variant. Repeatable.",
    ),
]
VariantsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[VARIANT]...",
        autocompletion=complete(variant_names),
        help="KERNEL, KERNEL@ARCH, KERNEL@ARCH:axis=value,... or an experiment's id.",
    ),
]
ArmArgument = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        autocompletion=complete(variant_names),
        help="Its candidate (F3:2 of several, F3:baseline), or KERNEL@ARCH:axis=value,...",
    ),
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="GPU", help="Index or UUID of the GPU to use.")
]
DevicesOption = Annotated[
    str | None,
    typer.Option(
        "--devices",
        metavar="GPUS",
        help="Measure on several GPUs at once: all, or indices or UUIDs, as in 0,1.",
    ),
]


SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Use the workers of a Dask scheduler: tcp://HOST:8786.",
    ),
]


def require_number(percent: float | None) -> float | None:
    """Returns the value of --margin; UsageError where it is nan."""
    if percent is not None and math.isnan(percent):  # which no bound refuses
        raise UsageError("--margin should be a number from 0.01 to 100.")
    return percent


MarginOption = Annotated[
    float,
    typer.Option(
        "--margin",
        min=0.01,
        max=100.0,
        metavar="PERCENT",
        callback=require_number,
        help="Smallest change that matters.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print markdown.")]
EmulateOption = Annotated[
    bool, typer.Option("--emulate/--no-emulate", help="Execute variants on the CPU.")
]
GpuOption = Annotated[
    bool, typer.Option("--gpu/--no-gpu", help="Time variants if this machine's GPU can run them.")
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        help="Time limit for measuring one experiment, start-up excluded: 1m. Default: 30s, plus "
        "5s for each candidate after the first.",
    ),
]
ProcessesOption = Annotated[
    int,
    typer.Option(
        "--processes",
        metavar="N",
        min=2,
        help="Processes to time before the interval is first checked.",
    ),
]
ExperimentSizeOption = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="NAME",
        help="Sizes to time: small, or M=1024,2048. Default: those of the experiment, or full.",
    ),
]
SizeOption = Annotated[
    str, typer.Option("--size", metavar="NAME", help="Which size of problem.py to time.")
]
SizesOption = Annotated[
    str,
    typer.Option("--size", metavar="NAMES", help="Sizes to time: small, or M=1024,2048."),
]


class L2State(StrEnum):
    """State of the L2 cache when a timed launch starts."""

    cold = "cold"
    hot = "hot"


L2Option = Annotated[
    L2State, typer.Option("--l2", help="Flush L2 before each launch, or leave it warm.")
]
PeersOption = Annotated[
    bool,
    typer.Option("--peers/--no-peers", help="Also time the problem's peers, such as cuBLAS."),
]
SharedGpuOption = Annotated[
    bool, typer.Option("--shared-gpu", help="Measure even if another process uses the GPU.")
]
PedanticOption = Annotated[
    bool,
    typer.Option("--pedantic", help="Treat the emulator's warnings as mistakes."),
]
ISA_HELP = "What to execute: ptx (checked for faults), sass (counted as ncu does), or both."
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show every figure of every variant.")
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="WHAT=TIME",
        help="Time limit of one build, one emulation, one run of a program, one pass of ncu or one "
        "function of problem.py: build=20m, emulation=1h, run=20m, profile=20m, problem=2m. "
        "Repeatable.",
    ),
]
HERE = Path()
