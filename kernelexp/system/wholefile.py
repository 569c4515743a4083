"""Files that are written whole or not at all: the one place that does it."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import TracebackType

# No write takes an hour: what is older is of a writer that was killed.
STALE_S = 3600.0

FORMER = ".former"
"""Suffix of what undoing needs: a link to a file as it was, which may be of any age."""


def name_at(moment: datetime) -> str:
    """A name that no other file has, so that branches which both write merge.

    Names sort by time to the microsecond: the second, as it reads, then 5 hexadecimal digits of
    microseconds and 3 random ones.
    """
    return f"{moment:%Y%m%dT%H%M%SZ}-{moment.microsecond:05x}{secrets.randbits(12):03x}"


def write(path: Path, data: bytes, *, durable: bool = True) -> Path:
    """Writes a file under a temporary name and renames it; makes its folder.

    A kill or a full disk leaves the file as it was, or not there. With `durable`, both content and
    name outlive a power cut.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    return _write(path, data, durable)


def _write(path: Path, data: bytes, durable: bool) -> Path:
    temporary = _temporary(path)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        _undo(temporary.unlink)
        if isinstance(error, OSError):
            error.filename = os.fspath(path)  # what was to be written, and not under which name
        raise
    if durable:
        sync(path.parent)
    return path


class FilesTogether:
    """Several files that are all written, or none where the block ends with an exception.

    Undoing takes no space on the disk. A kill within the block leaves those written so far.
    """

    def __init__(self) -> None:
        self._undo = contextlib.ExitStack()
        self._backups: list[Path] = []
        self._swept: set[Path] = set()
        """Folders that were looked through once, which takes long where there are many files."""

    def __enter__(self) -> FilesTogether:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._undo.close()
        for backup in self._backups:
            _undo(backup.unlink)

    def write(self, path: Path, data: bytes, *, durable: bool = True) -> Path:
        """Writes a file whole, as write() does."""
        missing = itertools.takewhile(lambda file: not file.exists(), path.parents)
        for folder in reversed(list(missing)):
            self._undo.callback(_undo, folder.rmdir)
        self._keep(path)
        if path.parent not in self._swept:
            self._swept.add(path.parent)
            return write(path, data, durable=durable)
        return _write(path, data, durable)

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there."""
        self._keep(path)
        path.unlink(missing_ok=True)

    def _keep(self, path: Path) -> None:
        """Sees to it that undoing gives the path what it has now."""
        if not os.path.lexists(path):
            self._undo.callback(_undo, path.unlink)
            return
        backup = _temporary(path).with_suffix(FORMER)
        self._backups.append(backup)
        try:
            os.link(path, backup)
        except OSError:  # a file system without links
            shutil.copy2(path, backup)
        self._undo.callback(_undo, lambda: backup.replace(path))


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.stem}.{secrets.token_hex(4)}.tmp")


def _undo(step: Callable[[], object]) -> None:
    """A step that may not be needed, or not possible: what went wrong first is what counts."""
    with contextlib.suppress(OSError):
        step()


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
