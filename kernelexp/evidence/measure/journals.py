"""The samples of a measurement under way, in a file: one that was killed goes on from there."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import msgspec

from kernelexp.model.measurement import Measurement, Options, TimedArm
from kernelexp.system import disk
from kernelexp.system.disk import decode

# A journal that is older is of another day's machine: begin again.
FRESH_S = 24 * 3600.0


def resume(path: Path, start: Measurement) -> Measurement:
    """The journal's measurement if it is of the same arms, device and options; else `start`.

    A journal of another process's company on the GPU leads nowhere: begin again.
    """
    past = _read(path)
    return past if past and _subject(past) == _subject(start) else start


def find(path: Path, arms: tuple[TimedArm, ...], options: Options) -> Measurement | None:
    """A measurement that another machine finished, of the same arms and options."""
    past = _read(path)
    return past if past and (past.arms, past.options) == (arms, options) else None


def _read(path: Path) -> Measurement | None:
    try:
        _remove_old(path.parent)
        past = decode(path.read_bytes(), Measurement)
    except (OSError, msgspec.DecodeError):
        return None
    return None if past.invalid else past


def _remove_old(folder: Path) -> None:
    limit = time.time() - FRESH_S
    for path in folder.glob("*.json"):
        if path.stat().st_mtime < limit:
            path.unlink(missing_ok=True)


def _subject(measurement: Measurement) -> object:
    """Returns what samples that belong together share; a seed that was drawn may differ."""
    return measurement.device, measurement.options, measurement.arms


def save(path: Path, so_far: Measurement) -> None:
    """Replaces the journal; a kill leaves the one before or this one.

    A disk that is full or read-only has none: an interrupted sweep begins again there.
    """
    with contextlib.suppress(OSError):
        disk.write(path, msgspec.json.encode(so_far), durable=False)
