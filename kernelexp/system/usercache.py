"""The folder for what all projects of a user share."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "KERNELEXP_CACHE"
"""Names a folder to use instead of ~/.cache/kernelexp."""


def folder() -> Path | None:
    """Returns the cache folder; None where nobody may trust it."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    # As the XDG Base Directory Specification has it, which ignores paths that are relative.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = base if base.is_absolute() else Path(os.path.expanduser("~/.cache"))
    return base / "kernelexp" if base.is_absolute() and _is_own(base) else None


def _is_own(folder: Path) -> bool:
    """Whether nobody else could put a file there: under sudo it may be another user's home."""
    while not folder.exists():
        folder = folder.parent
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o002
