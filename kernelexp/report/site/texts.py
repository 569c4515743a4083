"""The files that records were made from, as texts."""

from __future__ import annotations

from pathlib import Path

from kernelexp.logs import sources
from kernelexp.model.errors import KernelexpError
from kernelexp.model.record import Record


class Texts:
    """Files as records were made from them; each is read and checked once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, str | None] = {}

    def of(self, record: Record, file: str) -> str | None:
        """The file's text when the record was made; None if it is lost."""
        wanted = sources.of_record(record).get(file)
        if wanted is None:
            return None
        if wanted not in self._known:
            try:
                content = sources.content(self._root, record, file)
                self._known[wanted] = content.decode("utf-8", "replace")
            except (KernelexpError, OSError):
                self._known[wanted] = None
        return self._known[wanted]

    def numbered(self, record: Record) -> dict[str, dict[int, str]]:
        """The lines of each of its files that can be had, by path and number."""
        texts = {file: self.of(record, file) for file in sources.of_record(record)}
        return {
            file: dict(enumerate(split(text), 1))
            for file, text in texts.items()
            if text is not None
        }

    def now(self, file: str) -> str:
        """The file's text in the tree; empty where there is none.

        A record may name any file: pages show none from outside of the project.
        """
        path = self._root / file
        try:
            inside = path.resolve().is_relative_to(self._root.resolve())
            return path.read_text("utf-8", "replace") if inside and path.is_file() else ""
        except OSError:
            return ""


def page_of(digest: str) -> str:
    """Returns the name of the page of a file with this SHA-256."""
    return digest[:16]


def split(text: str) -> list[str]:
    """The lines of a text, as editors number them."""
    return text.removesuffix("\n").split("\n")
