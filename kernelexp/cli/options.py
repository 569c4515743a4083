"""The options that several commands have, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli.completion import assignments, complete, variant_names

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
        help="Override an axis of the candidates or the variants. Repeatable.",
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
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="GPU", help="Index or UUID of the GPU to use.")
]
MarginOption = Annotated[
    float,
    typer.Option(
        "--margin",
        min=0.01,
        max=100.0,
        metavar="PERCENT",
        help="Smallest change that matters.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show every figure of every variant.")
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="WHAT=TIME",
        help="Time limit of one build, one emulation or one function of problem.py: build=20m, "
        "emulation=1h, problem=2m. Repeatable.",
    ),
]
HERE = Path()
