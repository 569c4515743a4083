"""kernelexp mcp: commands as tools of the Model Context Protocol."""

from __future__ import annotations

from kernelexp.cli.app import app
from kernelexp.cli.options import HERE, ProjectOption


@app.command()
def mcp(project: ProjectOption = HERE) -> None:
    """Serve list, show, run, emulate, explain and evaluate as MCP tools.

    Over standard input and output, until that is closed. Needs the extra: pip install
    'kernelexp[mcp]'.
    """
    from kernelexp.api import mcp_server

    mcp_server.serve(project)
