"""kernelexp serve: evaluations over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli.app import app


@app.command()
def serve(
    queue: Annotated[
        Path, typer.Option("--queue", metavar="DIR", help="Where evaluations are kept.")
    ] = Path(".kernelexp/queue"),
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where it listens.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=1, max=65535, help="Where it listens.")
    ] = 8000,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=0, help="Processes that evaluate.")
    ] = 1,
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens", metavar="FILE", help="A client's name and its token in each line."
        ),
    ] = None,
    most: Annotated[
        int,
        typer.Option(
            "--most", metavar="N", min=1, help="Evaluations of a client that are not done yet."
        ),
    ] = 100,
) -> None:
    """Serve evaluations over HTTP: POST /evaluations, and GET /evaluations/ID for the result.

    What was accepted is kept in a file, also when the service is killed. Addresses other than this
    machine's own need --tokens. Needs the extra: pip install 'kernelexp[serve]'.

    For example:
        kernelexp serve --workers 4
    """
    import ipaddress

    from kernelexp.api import http_server
    from kernelexp.model.errors import UsageError

    local = host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
    if not local and tokens is None:
        raise UsageError(f"--host {host} lets others in: name who may ask with --tokens FILE.")
    if tokens is not None and not tokens.is_file():
        raise UsageError(f"--tokens {tokens}: there is no such file.")
    http_server.serve(
        http_server.ServeOptions(
            folder=queue.resolve(),
            host=host,
            port=port,
            workers=workers,
            tokens=http_server.read_tokens(tokens) if tokens else {},
            most=most,
        )
    )


def _is_address(host: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
