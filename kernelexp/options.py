"""The options that several commands have, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelexp.completion import assignments, complete, variant_names

ProjectOption = Annotated[
    Path,
    typer.Option("--project", "-C", metavar="PATH", help="A folder in the project, or its file."),
]
NvccOption = Annotated[
    str | None,
    typer.Option(
        "--nvcc", metavar="PATH", help="Another compiler; also KERNELEXP_NVCC in the environment."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="AXIS=VALUE",
        autocompletion=complete(assignments),
        help="Change the candidate, or the variant; may be given several times.",
    ),
]
VariantsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="VARIANT...",
        autocompletion=complete(variant_names),
        help="KERNEL, KERNEL@ARCH, KERNEL@ARCH:axis=value,... or an experiment's id.",
    ),
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="GPU", help="Index or UUID of the GPU.")
]
MarginOption = Annotated[
    float, typer.Option("--margin", min=0.01, metavar="PERCENT", help="What is no difference.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
HERE = Path()
