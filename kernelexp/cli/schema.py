"""kernelexp schema: the JSON Schema of the files that people write, and of what commands print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from kernelexp.cli.app import app
from kernelexp.cli.console import print_schema
from kernelexp.model.errors import UsageError


@app.command()
def schema(
    of: Annotated[
        str,
        typer.Option(
            "--of",
            metavar="WHAT",
            help="A file: project (experiments.yaml), experiment (a file with one experiment or "
            "step), section. Or what a command prints with --json: run, log, show, ...",
        ),
    ] = "project",
) -> None:
    """Print the JSON Schema of experiments.yaml, or of a command's --json.

    With the YAML language server: # yaml-language-server: $schema=schema.json

    For example:
        kernelexp schema --of run
    """
    print_schema(_schema(of))


def _schema(of: str) -> Mapping[str, Any]:
    from kernelexp.project import shape

    if of == "project" or of == "experiment":
        return shape.schema(of)
    if of == "section":
        from kernelexp.project.sections.shape import Section

        return shape.schema_of(Section)
    from kernelexp.model.errors import suggest
    from kernelexp.model.text import quote
    from kernelexp.report import outputs

    known = ("project", "experiment", "section", *outputs.VERSIONS)
    if of not in known:
        raise UsageError(f"--of {quote(of)}: there is no such schema{suggest(of, known)}.")
    return outputs.schema(of)
