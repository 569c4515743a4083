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


@app.command()
def schema(
    of: Annotated[
        File,
        typer.Option("--of", help="experiments.yaml, or a file with one experiment or step."),
    ] = File.project,
) -> None:
    """Print the JSON Schema of experiments.yaml, for editors.

    With the YAML language server: # yaml-language-server: $schema=schema.json
    """
    from kernelexp.project import shape

    print_json(shape.schema(of.value))
