"""The file of the log, logs/EXPERIMENTS.md: how it is written, and whether it is current."""

from __future__ import annotations

from pathlib import Path

from kernelexp.model.errors import UsageError
from kernelexp.report.document import markdown
from kernelexp.report.document.document import Document
from kernelexp.system import disk

NAME = "logs/EXPERIMENTS.md"
_BEGINNING = "# Experiment log\n\nRendered by `kernelexp log --write` from"
_ATTRIBUTES = "logs/.gitattributes"
# Two branches that both ran would conflict in a rendered file; git's own union driver takes both
# sides, and the next rendering puts it right.
_ATTRIBUTES_TEXT = "EXPERIMENTS.md merge=union linguist-generated\n"


def write(root: Path, document: Document, force: bool = False) -> bool:
    """Writes the log, and returns whether it was another one; UsageError if the file there does
    not begin as a rendered one, unless `force`."""
    path = root / NAME
    if not force and not _is_rendered(path):
        raise UsageError(
            f"{NAME} was not written by kernelexp, and is left as it is: move it, or overwrite it "
            "with `kernelexp log --write --force`."
        )
    text = markdown.render(document)
    with disk.FilesTogether() as files:
        if not (root / _ATTRIBUTES).exists():
            files.write(root / _ATTRIBUTES, _ATTRIBUTES_TEXT.encode())
        if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == text:
            return False
        files.write(path, text.encode())
    return True


def is_current(root: Path, document: Document) -> bool:
    """Whether the file is what would be written now."""
    path = root / NAME
    return path.is_file() and path.read_bytes() == markdown.render(document).encode()


def _is_rendered(path: Path) -> bool:
    if not path.is_file():  # a link to a device has no end
        return not path.exists()
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING
