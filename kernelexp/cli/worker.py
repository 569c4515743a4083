"""kernelexp worker: evaluates what is in a queue."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli.app import app
from kernelexp.cli.console import print_message
from kernelexp.cli.options import NvccOption

TOKEN = "KERNELEXP_TOKEN"


@app.command()
def worker(
    queue: Annotated[
        str, typer.Option("--queue", metavar="DIR|URL", help="As serve has it, or its address.")
    ],
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when every job has ended.")
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", metavar="GPU", help="Index or UUID of the GPU to time on, or none."
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache", metavar="DIR", help="Where builds are kept; in DIR by default."),
    ] = None,
    nvcc: NvccOption = None,
) -> None:
    """Take evaluations from a queue, one after the other, until it is interrupted.

    Any number of workers may share a queue: on machines that have its folder, on a file system with
    locks, or elsewhere by the address of kernelexp serve, with a token in $KERNELEXP_TOKEN. One
    that is killed loses nothing: its job goes to the next one. A worker with a GPU times on it,
    once the GPU has proved itself.

    For example:
        kernelexp worker --queue queue --until-empty
        kernelexp worker --queue http://head:8000 --device 0
    """
    from kernelexp.services.serving import card
    from kernelexp.services.serving.queue import Queue
    from kernelexp.services.serving.remote import RemoteQueue
    from kernelexp.services.serving.worker import JobSource, QueueWorker
    from kernelexp.system import toolchain

    source: JobSource
    if "://" in queue:
        source, root = RemoteQueue(queue, os.environ.get(TOKEN, "")), Path()
    else:
        source, root = Queue(Path(queue).resolve()), Path(queue)
    root = (cache or root).resolve()
    with card.proved(device, nvcc, print_message) as gpu:
        tools = toolchain.find(nvcc, root / ".kernelexp")
        done = QueueWorker(source, root, tools, gpu).work(until_empty=until_empty)
    print_message(f"{done} evaluation{'s' * (done != 1)} done.")
