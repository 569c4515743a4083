"""kernelexp report: the project as web pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.options import HERE, option
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.project import Project

FOLDER = "report"


WITH_SERVE = "With --serve"


@app.command()
def report(
    out: Annotated[
        Path | None,
        option(
            "--out -o PATH", "Where to write: report/ by default, or report.html with --single."
        ),
    ] = None,
    single: Annotated[
        bool, option("--single", "Write all pages into one file, to be sent.")
    ] = False,
    serve: Annotated[
        bool, option("--serve", "Show the pages on this machine's loopback address; write nothing.")
    ] = False,
    port: Annotated[
        int,
        option(
            "--port PORT", "Port to listen on; 0 chooses a free one.", WITH_SERVE, min=0, max=65535
        ),
    ] = 8000,
    force: Annotated[bool, option("--force", "Write into a folder with other files.")] = False,
    every: Annotated[
        bool, option("--all", "Render every page, also those that have not changed.")
    ] = False,
    project: options.Project = HERE,
) -> None:
    """Render the whole project as web pages, which need no server and no network.

    For example:
        kernelexp report --out /tmp/pages
        kernelexp report --single --out gemm.html
        kernelexp report --serve
    """
    from kernelexp.report.site import folder, server, site

    if serve and (out or force or single or every):
        raise UsageError("--serve writes nothing: leave out --out, --single, --force and --all.")
    if serve:
        common.load(project, sources=False)  # its faults are said before a port is taken
        server.serve(project, port, lambda address: typer.echo(f"serving on {address}"))
        return
    loaded = common.load(project, sources=False)
    if single:
        _write_single(loaded, out or loaded.root / f"{FOLDER}.html", force)
        return
    place = out or loaded.root / FOLDER
    folder.former(place, force)  # refuses another's folder before all records are read
    project_site = site.ProjectSite(loaded)
    common.warn(loaded.root, project_site.unreadable)
    written = folder.write(project_site, place, force, every)
    kept = f", {written.kept} as they were" if written.kept else ""
    typer.echo(f"wrote {written.files} files{kept}; open {place / site.INDEX}")


def _write_single(loaded: Project, path: Path, force: bool) -> None:
    """Replaces a report's own file only."""
    from kernelexp.report.site import single, site

    common.require_folder(path)
    if path.is_file() and not force and single.MARK not in path.read_bytes():
        raise UsageError(
            f"{path} was not written by kernelexp: name another file with --out, or overwrite it "
            "with --force."
        )
    project_site = site.ProjectSite(loaded, listings=False)
    common.warn(loaded.root, project_site.unreadable)
    content = single.render(project_site)
    common.write_report(path, content)
    typer.echo(f"wrote {path}, {len(content) / 1e6:.1f} MB")
