"""kernelexp worker: evaluates what is in a queue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli.app import app
from kernelexp.cli.console import print_message
from kernelexp.cli.options import NvccOption


@app.command()
def worker(
    queue: Annotated[Path, typer.Option("--queue", metavar="DIR", help="As serve has it.")],
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when nothing is left to do.")
    ] = False,
    nvcc: NvccOption = None,
) -> None:
    """Take evaluations from a queue, one after the other, until it is interrupted.

    Any number of workers may share a queue, in a Slurm array or as jobs of Kubernetes, where its
    folder is on a file system with locks. One that is killed loses nothing: its job goes to the
    next one.

    For example:
        kernelexp worker --queue queue --until-empty
    """
    from kernelexp.services.serving.worker import QueueWorker
    from kernelexp.system import toolchain

    folder = queue.resolve()
    done = QueueWorker(folder, toolchain.find(nvcc, folder / ".kernelexp")).work(
        until_empty=until_empty
    )
    print_message(f"{done} evaluation{'s' * (done != 1)} done.")
