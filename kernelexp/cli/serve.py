"""kernelexp serve: evaluations over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli.app import app
from kernelexp.cli.console import print_message
from kernelexp.cli.options import HERE, ProjectOption


@app.command()
def serve(
    queue: Annotated[
        Path, typer.Option("--queue", metavar="DIR", help="Where evaluations are kept.")
    ] = Path(".kernelexp/queue"),
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where it listens.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="Where it listens; 0 chooses a free port."
        ),
    ] = 8000,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=0, help="Processes that evaluate on CPUs.")
    ] = 1,
    devices: Annotated[
        str | None,
        typer.Option(
            "--devices", metavar="GPUS", help="GPUs to time on, with a worker each: all, or 0,1."
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="A client's name and its token in each line; then worker, if it is one.",
        ),
    ] = None,
    most: Annotated[
        int,
        typer.Option(
            "--most", metavar="N", min=1, help="Evaluations of a client that are not done yet."
        ),
    ] = 100,
    project: ProjectOption = HERE,
) -> None:
    """Serve evaluations over HTTP: POST /evaluations, and GET /evaluations/ID for the result.

    What was accepted is kept in a file, also when the service is killed. The project's pages are
    at /report/. Addresses other than this machine's own need --tokens. Needs the extra: pip install
    'kernelexp[serve]'.

    For example:
        kernelexp serve --workers 4
    """
    import ipaddress

    from kernelexp.api.service import options, server
    from kernelexp.model.errors import UsageError
    from kernelexp.system import device

    local = host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
    if not local and tokens is None:
        raise UsageError(f"--host {host} lets others in: name who may ask with --tokens FILE.")
    if tokens is not None and not tokens.is_file():
        raise UsageError(f"--tokens {tokens}: there is no such file.")
    server.serve(
        options.ServeOptions(
            folder=queue.resolve(),
            project=project,
            host=host,
            port=port,
            workers=workers,
            gpus=tuple(gpu.uuid for gpu in device.find_all(devices)) if devices else (),
            tokens=options.read_tokens(tokens) if tokens else {},
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
