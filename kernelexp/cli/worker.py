"""kernelexp worker: evaluates what is in a queue."""

from __future__ import annotations

import os
import sys
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
    slurm: Annotated[
        str | None,
        typer.Option(
            "--slurm",
            metavar="OPTIONS",
            help="Have Slurm run workers: options of sbatch, as in partition=gpu,time=60.",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", metavar="N", min=1, help="With --slurm: how many workers.")
    ] = 1,
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
        kernelexp worker --queue queue --slurm partition=gpu,time=60 --count 8
    """
    from kernelexp.services.serving import card
    from kernelexp.services.serving.queue import Queue
    from kernelexp.services.serving.remote import RemoteQueue
    from kernelexp.services.serving.worker import JobSource, QueueWorker
    from kernelexp.system import toolchain

    if slurm is not None:
        print_message(_submitted(queue, slurm, count, device, nvcc))
        return
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


def _submitted(queue: str, options: str, count: int, device: str | None, nvcc: str | None) -> str:
    """A sentence with the ids of Slurm's jobs, each a worker that ends with the queue."""
    from kernelexp.services.serving import slurm

    wanted = slurm.parse(options)
    place = queue if "://" in queue else str(Path(queue).resolve())
    argv = [sys.executable, "-m", "kernelexp", "worker", "--queue", place, "--until-empty"]
    for name, value in (("--device", device), ("--nvcc", nvcc)):
        argv += [name, value] if value else []
    jobs = slurm.submit(argv, Path("slurm").resolve(), wanted, count)
    return f"Slurm has {', '.join(jobs)}; what they print is in slurm/."
