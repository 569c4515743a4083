"""`kernelexp serve --worker`: evaluates what is in a queue."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kernelexp.cli.console import print_message

TOKEN = "KERNELEXP_TOKEN"


def work(
    queue: str,
    cache: Path | None,
    device: str | None,
    nvcc: str | None,
    name: str,
    *,
    until_empty: bool,
) -> int:
    """Evaluates jobs of the queue, a folder or a service's address; returns how many."""
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
        return QueueWorker(source, root, tools, gpu, name).work(until_empty=until_empty)


def submit(queue: str, options: str, count: int, device: str | None, nvcc: str | None) -> str:
    """A sentence with the ids of Slurm's jobs, each a worker that ends with the queue."""
    from kernelexp.services.serving import slurm

    wanted = slurm.parse(options)
    place = queue if "://" in queue else str(Path(queue).resolve())
    argv = [sys.executable, "-m", "kernelexp", "serve", "--worker", "--queue", place]
    argv.append("--until-empty")
    for name, value in (("--device", device), ("--nvcc", nvcc)):
        argv += [name, value] if value else []
    jobs = slurm.submit(argv, Path("slurm").resolve(), wanted, count)
    return f"Slurm has {', '.join(jobs)}; what they print is in slurm/."
