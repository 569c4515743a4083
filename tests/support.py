"""What tests import of each other: the repository, the command line's type, edits of a project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

ROOT = Path(__file__).parent.parent

Kx = Callable[..., Result]


def edit(root: Path, text: str, instead: str) -> None:
    """Replaces the first `text` in a project's file."""
    path = root / "experiments.yaml"
    before = path.read_text()
    assert before.count(text) >= 1, text
    path.write_text(before.replace(text, instead, 1))
