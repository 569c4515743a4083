"""kernelexp doctor: tools, their versions, and what this machine can do."""

from __future__ import annotations

import typer

from kernelexp.cli import options
from kernelexp.cli.app import app
from kernelexp.cli.console import output
from kernelexp.cli.options import HERE


@app.command()
def doctor(
    json: options.Json = False, nvcc: options.Nvcc = None, project: options.Project = HERE
) -> None:
    """Check tools, versions and capabilities."""
    from kernelexp.report import calibrated
    from kernelexp.services import doctor as checks

    facts = checks.examine(nvcc, project)
    output("doctor", facts, calibrated.machine(facts), json)
    raise typer.Exit(checks.exit_code(facts))
