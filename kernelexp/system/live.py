"""Progress of commands: steps as a service reports them, and a file that shows them to others.

Pages that are served show what runs. Nothing depends on the files: a command that can't write its
file runs as well without one, and the file of a command that was killed is one that nobody has
locked."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Literal, TypeAlias

import msgspec

from kernelexp.system.disk import decode

Phase: TypeAlias = Literal["building", "emulating", "modelling", "measuring", "profiling"]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One report; the first comes before any work is done, with `done` 0."""

    phase: Phase
    done: int
    total: int
    now: str = ""
    """What is worked on at this moment, such as a variant's label."""


OnProgress: TypeAlias = Callable[[Step], None]


class Joined:
    """Several pieces of work of the same kind at the same time, told as one."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._tell = on_progress
        self._lock = threading.Lock()
        self._latest: dict[object, Step] = {}

    def of(self, piece: object) -> OnProgress | None:
        """Takes the steps of one piece of work, from any thread."""
        if self._tell is None:
            return None
        tell = self._tell

        def note(step: Step) -> None:
            with self._lock:
                self._latest[piece] = step
                done = sum(item.done for item in self._latest.values())
                total = sum(item.total for item in self._latest.values())
                tell(Step(phase=step.phase, done=done, total=total, now=step.now))

        return note


FOLDER = ".kernelexp/live"
_SUFFIX = ".json"
_BYTES_MAX = 1 << 16


class RunningCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that runs."""

    command: str
    since: str
    """When it began, as ISO 8601 with the time zone."""
    steps: tuple[Step, ...] = ()
    """The latest of each phase, in the order in which they began."""


@contextlib.contextmanager
def published(root: Path, command: str) -> Iterator[OnProgress]:
    """Takes the command's steps, from any thread, and shows them to others until the block ends."""
    work = RunningCommand(command=command, since=datetime.now(UTC).isoformat(timespec="seconds"))
    _remove_left(root)
    try:
        path, file = _create(root)
    except OSError:  # a read-only or full disk
        yield lambda _: None
        return
    steps: dict[str, Step] = {}
    lock = threading.Lock()

    def note(step: Step) -> None:
        with lock:
            steps[step.phase] = step
            _write(file, msgspec.structs.replace(work, steps=tuple(steps.values())))

    try:
        _write(file, work)
        yield note
    finally:
        with lock, contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
            file.close()


def read(root: Path) -> list[RunningCommand]:
    """The commands that run on the project at this moment, oldest first."""
    works = []
    for path in _files(root):
        with contextlib.suppress(OSError, msgspec.DecodeError), path.open("rb") as file:
            if _is_running(file):
                text = file.read(_BYTES_MAX).partition(b"\n")[0]
                works.append(decode(text, RunningCommand))
    return sorted(works, key=lambda work: work.since)


def _files(root: Path) -> Iterator[Path]:
    """A clone may bring anything under these names: links and pipes are passed over."""
    for path in (root / FOLDER).glob(f"*{_SUFFIX}"):
        if path.is_file() and not path.is_symlink():
            yield path


def _create(root: Path) -> tuple[Path, IO[bytes]]:
    """A file that is locked before others can see it."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    name = f"{os.getpid()}-{secrets.token_hex(4)}"
    file = (folder / f".{name}.tmp").open("wb", buffering=0)
    fcntl.flock(file, fcntl.LOCK_EX)
    return Path(file.name).replace(folder / f"{name}{_SUFFIX}"), file


def _write(file: IO[bytes], work: RunningCommand) -> None:
    """Overwrites the former line: what is left of a longer one stands behind the newline."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: a step that comes after the end
        os.pwrite(file.fileno(), msgspec.json.encode(work) + b"\n", 0)


def _is_running(file: IO[bytes]) -> bool:
    """Whether the command that made the file still holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _remove_left(root: Path) -> None:
    """Removes the files of commands that were killed."""
    for path in _files(root):
        with contextlib.suppress(OSError), path.open("rb") as file:
            if not _is_running(file):
                path.unlink(missing_ok=True)
