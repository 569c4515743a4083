"""The files of a problem.py: what it says may depend on each file in its folder and below."""

from __future__ import annotations

from pathlib import Path

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
