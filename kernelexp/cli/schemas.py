"""`kernelexp show --schema`: JSON Schemas of files, and of what commands print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelexp.model.errors import UsageError


def find(name: str) -> Mapping[str, Any]:
    """The schema of a file or of a command's JSON; UsageError for a name that has none."""
    from kernelexp.project import shape

    if name == "project" or name == "experiment":
        return shape.schema(name)
    if name == "section":
        from kernelexp.project.sections.shape import Section

        return shape.schema_of(Section)
    from kernelexp.model.errors import suggest
    from kernelexp.model.text import quote
    from kernelexp.report import outputs

    known = ("project", "experiment", "section", *outputs.VERSIONS)
    if name not in known:
        raise UsageError(f"--schema {quote(name)}: there is no such schema{suggest(name, known)}.")
    return outputs.schema(name)
