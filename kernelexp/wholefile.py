"""Files that are written whole or not at all: the one place that does it."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

# No write takes an hour: what is older is of a writer that was killed.
STALE_S = 3600.0


def write(path: Path, data: bytes, *, durable: bool = True) -> Path:
    """Writes a file under a temporary name and renames it; makes its folder.

    A kill or a full disk leaves the file as it was, or not there. With `durable`, both content and
    name outlive a power cut.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)
    return path


def sync(*paths: Path) -> None:
    """Flushes files or folders to the disk."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(folder: Path) -> None:
    limit = time.time() - STALE_S
    for path in folder.glob(".*.tmp"):
        try:
            if path.stat().st_mtime < limit:
                path.unlink()
        except OSError:
            continue
