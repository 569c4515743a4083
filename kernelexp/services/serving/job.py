"""An evaluation as somebody asks for it: self-contained, and the same one by its content."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import msgspec

from kernelexp.model.errors import UsageError
from kernelexp.services.tasks.cascade import LARGEST
from kernelexp.system import disk

LONGEST = 8 << 20
"""Bytes of a job."""
_FOLDERS = ("task.yml", "challenge.py", "definition.json")
"""Files by which a problem is a folder."""
_DEEPEST = 100
_BY_NAME = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
"""A name is at fault then, not the machine: another worker can't write the file either."""


class QueuedJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A problem and a solution as text."""

    problem: dict[str, str]
    """Its files, by their paths."""
    solution: dict[str, str]
    """One file by its name."""
    largest: int = LARGEST
    schedules: int = 2
    limit_s: float = 600.0
    timed: bool = False
    """Whether it has to be timed on a GPU, too: a worker without one passes it on."""

    @property
    def key(self) -> str:
        """A digest of the content: what is asked for twice is evaluated once."""
        ordered = msgspec.json.encode(self, order="deterministic")
        return hashlib.sha256(ordered).hexdigest()[:32]


def decode(content: bytes) -> QueuedJob:
    """UsageError for what is no job, in a sentence."""
    if len(content) > LONGEST:
        raise UsageError(f"an evaluation has at most {LONGEST:,} bytes; this one {len(content):,}.")
    try:
        job = disk.decode(content, QueuedJob)
    except msgspec.ValidationError as error:
        raise UsageError(f"the evaluation is not as its schema says: {error}.") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"the evaluation is not JSON: {error}.") from None
    if not job.problem or len(job.solution) != 1:
        raise UsageError("an evaluation has the files of a problem, and one of a solution.")
    if not 0 <= job.schedules <= 16 or job.largest < 0 or not 1 <= job.limit_s <= 3600:
        raise UsageError("schedules are 0 to 16, largest is at least 0, limit_s is 1 to 3600.")
    return job


def unpack(job: QueuedJob, folder: Path) -> tuple[Path, Path]:
    """Writes the files; where the problem and the solution lie."""
    problem, solution = folder / "problem", folder / "solution"
    for place, files in ((problem, job.problem), (solution, job.solution)):
        for name, text in files.items():
            if "\0" in name:
                raise UsageError(f"the file name {name[:80]!r} can't be used: it has a null byte.")
            try:
                if name.count("/") > _DEEPEST:
                    raise UsageError(
                        f"the file name {name[:80]!r} can't be used: it has too many folders."
                    )
                path = (place / name).resolve()
                if not path.is_relative_to(place.resolve()) or path == place.resolve():
                    raise UsageError(f"the file name {name[:80]!r} leads out of its folder.")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            except OSError as error:
                if error.errno not in _BY_NAME:
                    raise
                why = os.strerror(error.errno).lower()
                raise UsageError(f"the file name {name[:80]!r} can't be used: {why}.") from None
    whole = any(name in job.problem for name in _FOLDERS) or len(job.problem) > 1
    return (problem if whole else problem / next(iter(job.problem))), solution / next(
        iter(job.solution)
    )
