"""kernelexp schema: the JSON Schema of the files that people write."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kernelexp.cli.app import app
from kernelexp.cli.console import print_json


class File(StrEnum):
    """The files that have a schema."""

    project = "project"
    experiment = "experiment"
    section = "section"


@app.command()
def schema(
    of: Annotated[
        File,
        typer.Option(
            "--of",
            help="experiments.yaml, a file with one experiment or step, or a section file.",
        ),
    ] = File.project,
) -> None:
    """Print the JSON Schema of experiments.yaml, for editors.

    With the YAML language server: # yaml-language-server: $schema=schema.json
    """
    from kernelexp.project import shape

    if of is File.section:
        from kernelexp.sections.shape import Section

        print_json(shape.schema_of(Section))
    else:
        print_json(shape.schema(of.value))
