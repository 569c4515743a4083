"""kernelexp init: a new project with a kernel to try."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli.app import app
from kernelexp.cli.options import HERE, argument, option

DEFAULT_ARCH = "sm_90a"


@app.command()
def init(
    folder: Annotated[Path, argument("[FOLDER]", "Where to write the project.")] = HERE,
    arch: Annotated[
        str | None,
        option(
            "--arch SM",
            f"Architecture, as in sm_100a. Default: that of this machine's GPU, or {DEFAULT_ARCH}.",
        ),
    ] = None,
    empty: Annotated[bool, option("--empty", "Leave the example out.")] = False,
) -> None:
    """Start a project: a kernel in two variants, an experiment, a CI workflow.

    It runs at once, without a GPU too. No file is overwritten.
    """
    from kernelexp.project import scaffold

    started = scaffold.start(folder, arch or _arch_here(), empty)
    for path in started.files:
        typer.echo(f"wrote {os.path.relpath(path)}")
    where = os.path.relpath(started.root)
    change = "" if where == "." else f"cd {shlex.quote(where)} && "
    target = f" --arch {arch}" if arch else ""  # until the project has a kernel that says it
    following = f"run {started.experiment}" if started.experiment else f"adopt FILE.cu{target}"
    typer.echo(f"next: {change}kernelexp {following}")


def _arch_here() -> str:
    """Returns the architecture of this machine's first GPU, if supported, else the default."""
    from kernelexp.facts.chips import ARCHITECTURES
    from kernelexp.model.errors import EnvironmentFault
    from kernelexp.system import device

    try:
        gpus = device.list_gpus()
    except EnvironmentFault:
        return DEFAULT_ARCH
    return next((gpu.arch for gpu in gpus if gpu.arch in ARCHITECTURES), DEFAULT_ARCH)
