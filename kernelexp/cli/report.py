"""kernelexp report: the project as web pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.options import HERE, ProjectOption
from kernelexp.model.errors import UsageError

FOLDER = "report"


WITH_SERVE = "With --serve"


@app.command()
def report(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Where to write the pages; report/ by default."
        ),
    ] = None,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Show the pages on this machine's loopback address; write nothing."
        ),
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            metavar="PORT",
            min=0,
            max=65535,
            rich_help_panel=WITH_SERVE,
            help="Port to listen on; 0 chooses a free one.",
        ),
    ] = 8000,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder with other files.")
    ] = False,
    project: ProjectOption = HERE,
) -> None:
    """Render the whole project as web pages, which need no server and no network.

    For example:
        kernelexp report --out /tmp/pages
        kernelexp report --serve
    """
    from kernelexp.report.site import folder, server, site

    if serve and (out or force):
        raise UsageError("--serve writes nothing: leave out --out and --force.")
    if serve:
        common.load(project, sources=False)  # its faults are said before a port is taken
        server.serve(project, port, lambda address: typer.echo(f"serving on {address}"))
        return
    loaded = common.load(project, sources=False)
    place = out or loaded.root / FOLDER
    folder.former(place, force)  # refuses another's folder before all records are read
    project_site = site.ProjectSite(loaded)
    common.warn(loaded.root, project_site.unreadable)
    count = folder.write(project_site, place, force)
    typer.echo(f"wrote {count} files; open {place / site.INDEX}")
