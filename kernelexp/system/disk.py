"""Files on disk: written whole or not at all, a project's own, the cache of a user.

A record calls the files of a project, those below its root and those of the repository around it,
by their path from the root (`variants/k/k.cu`, `../common/tile.cuh`), which is the same on every
machine. Where other headers are is a matter of the machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, overload

import msgspec

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
    name outlive a power cut. A device or a pipe is written to: a rename would replace it.
    """
    if is_stream(path):
        path.write_bytes(data)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    return _write(path, data, durable)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Waits for other processes in such a block of the folder, and keeps them out of it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_stream(path: Path) -> bool:
    """Whether it is a device, a pipe or a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


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


RESTORED = ".kernelexp/restored"
"""Where the files of a run are put to repeat it, in a folder for each run."""
_INSTALLED = "site-packages"


@functools.cache
def _repository(root: Path) -> Path:
    """The folder of the repository that a project is in; its own where there is none.

    A run that is repeated has its repository's files in its own folder.
    """
    for parent in (root, *root.parents):
        if (parent / ".git").exists() or parent.parent.as_posix().endswith(f"/{RESTORED}"):
            return parent
    return root


@functools.lru_cache(maxsize=4096)
def is_own(root: Path, name: str) -> bool:
    """Whether a path from the root names a file of the project or of its repository.

    Not what is installed there, as the compiler's headers in a virtual environment, nor what is
    hidden beside the project.
    """
    if not name or os.path.isabs(name) or "\0" in name:
        return False
    whole = Path(os.path.normpath(root / name))
    if whole.is_relative_to(root):
        return _INSTALLED not in whole.relative_to(root).parts
    top = _repository(root)
    if not whole.is_relative_to(top):
        return False
    parts = whole.relative_to(top).parts
    return not any(part == _INSTALLED or part.startswith(".") for part in parts)


def own_name(root: Path, path: str) -> str:
    """Returns a file's name in records, by its path from the root or in full; empty for others'
    files."""
    relative = os.path.relpath(path, root) if os.path.isabs(path) else path
    return relative if is_own(root, relative) else ""


def inside(folder: Path, file: str) -> bool:
    """Whether a path from `folder` stays in it, symbolic links resolved."""
    return Path(os.path.realpath(folder / file)).is_relative_to(os.path.realpath(folder))


CACHE_VARIABLE = "KERNELEXP_CACHE"
"""Names a folder to use instead of ~/.cache/kernelexp."""


def user_cache() -> Path | None:
    """Returns the cache folder; None where nobody may trust it."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named)
    # As the XDG Base Directory Specification has it, which ignores paths that are relative.
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = base if base.is_absolute() else Path(os.path.expanduser("~/.cache"))
    return base / "kernelexp" if base.is_absolute() and _is_trusted(base) else None


def _is_trusted(folder: Path) -> bool:
    """Whether nobody else could put a file there: under sudo it may be another user's home."""
    while not folder.exists():
        folder = folder.parent
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o002


T = TypeVar("T")
# msgspec makes a type's description at its first use and, in the middle of that, runs Python:
# another thread that decodes the same type then reads half of it, and the process ends by a
# segmentation fault (msgspec 0.22; `emulate` on two busy cores). So these are made one at a time.
_lock = threading.Lock()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


@overload
def decode(content: bytes | str | msgspec.Raw, kind: type[T]) -> T: ...
@overload
def decode(content: bytes | str | msgspec.Raw, kind: object) -> Any: ...
def decode(content: bytes | str | msgspec.Raw, kind: Any) -> Any:
    """Decodes JSON in any thread; msgspec.DecodeError where it is invalid or too deep."""
    with _lock:
        decoder = _decoders.get(kind) or _decoders.setdefault(kind, msgspec.json.Decoder(kind))
    try:
        return decoder.decode(content)
    except RecursionError as error:
        raise msgspec.DecodeError(str(error)) from None
