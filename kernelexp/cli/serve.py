"""kernelexp serve: evaluations over HTTP, the workers that do them, and MCP tools."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli import options
from kernelexp.cli.app import app
from kernelexp.cli.console import print_message
from kernelexp.cli.modes import refuse_all_but, refuse_other_modes
from kernelexp.cli.options import HERE, option

TOKEN = "KERNELEXP_TOKEN"
WITH_WORKER = "With --worker"
WITHOUT_OTHERS = "Without --worker and --mcp"


@app.command()
def serve(
    ctx: typer.Context,
    queue: Annotated[
        str | None,
        option(
            "--queue DIR|URL",
            "Where evaluations are kept, .kernelexp/queue by default; of a worker, that folder "
            "or the service's address.",
        ),
    ] = None,
    host: Annotated[
        str, option("--host ADDRESS", "Where it listens.", WITHOUT_OTHERS)
    ] = "127.0.0.1",
    port: Annotated[
        int,
        option(
            "--port N", "Where it listens; 0 chooses a free port.", WITHOUT_OTHERS, min=0, max=65535
        ),
    ] = 8000,
    workers: Annotated[
        int, option("--workers N", "Processes that evaluate on CPUs.", WITHOUT_OTHERS, min=0)
    ] = 1,
    devices: Annotated[
        str | None,
        option(
            "--devices GPUS", "GPUs to time on, with a worker each: all, or 0,1.", WITHOUT_OTHERS
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        option(
            "--tokens FILE",
            "A client's name and its token in each line; then worker, if it is one.",
            WITHOUT_OTHERS,
        ),
    ] = None,
    most: Annotated[
        int,
        option("--most N", "Evaluations of a client that are not done yet.", WITHOUT_OTHERS, min=1),
    ] = 100,
    mcp: Annotated[
        bool,
        option(
            "--mcp",
            "Serve list, show, run, emulate, explain and evaluate as MCP tools instead, over "
            "standard input and output.",
        ),
    ] = False,
    worker: Annotated[
        bool, option("--worker", "Take evaluations from a queue instead, until it is interrupted.")
    ] = False,
    until_empty: Annotated[
        bool, option("--until-empty", "End when every job has ended.", WITH_WORKER)
    ] = False,
    device: Annotated[
        str | None,
        option("--device GPU", "Index or UUID of the GPU to time on, or none.", WITH_WORKER),
    ] = None,
    cache: Annotated[
        Path | None, option("--cache DIR", "Where builds are kept; in DIR by default.", WITH_WORKER)
    ] = None,
    slurm: Annotated[
        str | None,
        option(
            "--slurm OPTIONS",
            "Have Slurm run workers: options of sbatch, as in partition=gpu,time=60.",
            WITH_WORKER,
        ),
    ] = None,
    count: Annotated[
        int, option("--count N", "With --slurm: how many workers.", WITH_WORKER, min=1)
    ] = 1,
    name: Annotated[
        str, option("--name", "By which serve knows its own workers.", WITH_WORKER, hidden=True)
    ] = "",
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Serve evaluations over HTTP, work on a queue of them, or serve MCP tools.

    POST /evaluations takes one, and GET /evaluations/ID gives the result; the project's pages are
    at /report/. What was accepted is kept in a file, also when the service is killed. Addresses
    other than this machine's own need --tokens. Needs the extra: pip install 'kernelexp[serve]'.

    With --worker, one evaluation after the other is taken from a queue that any number of workers
    share: on machines that have its folder, on a file system with locks, or elsewhere by the
    address of kernelexp serve, with a token in $KERNELEXP_TOKEN. One that is killed loses nothing:
    its job goes to the next one. A worker with a GPU times on it, once the GPU has proved itself.

    With --mcp, commands are tools of the Model Context Protocol: pip install 'kernelexp[mcp]'.

    For example:
        kernelexp serve --workers 4
        kernelexp serve --worker --queue http://head:8000 --device 0
        kernelexp serve --worker --queue queue --slurm partition=gpu --count 8
    """
    import ipaddress

    from kernelexp.api.service import answers, server
    from kernelexp.model.errors import UsageError
    from kernelexp.system import device as devices_

    if mcp:
        refuse_all_but(ctx, "--mcp", "mcp", "project")
        from kernelexp.api import mcp_server

        mcp_server.serve(project)
        return
    if worker:
        refuse_other_modes(ctx, WITH_WORKER)
        if queue is None:
            raise UsageError("--worker: name the queue with --queue DIR|URL.")
        if slurm is not None:
            print_message(_submit(queue, slurm, count, device, nvcc))
            return
        done = _work(queue, cache, device, nvcc, name, until_empty=until_empty)
        print_message(f"{done} evaluation{'s' * (done != 1)} done.")
        return
    refuse_other_modes(ctx, WITHOUT_OTHERS)
    if nvcc is not None:
        raise UsageError("--nvcc goes with --worker; see kernelexp serve --help.")
    local = host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
    if not local and tokens is None:
        raise UsageError(f"--host {host} lets others in: name who may ask with --tokens FILE.")
    if tokens is not None and not tokens.is_file():
        raise UsageError(f"--tokens {tokens}: there is no such file.")
    server.serve(
        answers.ServeOptions(
            folder=Path(queue or ".kernelexp/queue").resolve(),
            project=project,
            host=host,
            port=port,
            workers=workers,
            gpus=tuple(gpu.uuid for gpu in devices_.find_all(devices)) if devices else (),
            tokens=answers.read_tokens(tokens) if tokens else {},
            most=most,
        ),
        print_message,
    )


def _is_address(host: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _work(
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


def _submit(queue: str, text: str, count: int, device: str | None, nvcc: str | None) -> str:
    """A sentence with the ids of Slurm's jobs, each a worker that ends with the queue."""
    from kernelexp.services.serving import slurm

    wanted = slurm.parse(text)
    place = queue if "://" in queue else str(Path(queue).resolve())
    argv = [sys.executable, "-m", "kernelexp", "serve", "--worker", "--queue", place]
    argv.append("--until-empty")
    for name, value in (("--device", device), ("--nvcc", nvcc)):
        argv += [name, value] if value else []
    jobs = slurm.submit(argv, Path("slurm").resolve(), wanted, count)
    return f"Slurm has {', '.join(jobs)}; what they print is in slurm/."
