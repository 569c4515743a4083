"""The files of a problem.py: what it says may depend on each file in its folder and below."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from kernelexp.errors import ConfigurationError

# The compiler says which sources it read; prose is for people.
_OTHERS = (".cu", ".cuh", ".h", ".hpp", ".inl", ".md", ".rst", "~")


def find(root: Path, kernel: str) -> list[Path]:
    """Modules and data in a kernel's folder, in the order of their paths; hidden ones left out."""
    folder = root / "variants" / kernel
    return [
        path
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(_OTHERS)
        and not any(
            part.startswith((".", "__pycache__")) for part in path.parts[len(folder.parts) :]
        )
        and path.is_file()
    ]


def digests(root: Path, kernel: str) -> dict[str, str]:
    """SHA-256 of each of them, by path from the root."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in find(root, kernel)
    }


def refuse_changes(root: Path, kernel: str, before: Mapping[str, str], during: str) -> None:
    """ConfigurationError where a file is not what it was: who knows what was read of it?

    `during` is what it changed during, as in "while E1 ran". A file that is new does not count:
    problem.py itself may have made it.
    """
    now = digests(root, kernel)
    for name, digest in before.items():
        if now.get(name) != digest:
            what = "changed" if name in now else "went away"
            raise ConfigurationError(
                f"{name} {what} {during}, so that nothing was recorded: run it again."
            )
