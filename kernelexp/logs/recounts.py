"""Emulated evidence that was taken again for a run: files of their own, as records are not edited.

`logs/recounts/RUN/MOMENT.json`: the latest of a run's is what is read with its record.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kernelexp.logs.documents import Unreadable, decode, sealed
from kernelexp.model.arm import EmulatedEvidence
from kernelexp.system import disk

FOLDER = "logs/recounts"
VERSION = 1


class RecountedArm(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The evidence of executing an arm of a run once more."""

    identity: str
    """Of the build in the record."""
    emulated: EmulatedEvidence
    emulated_sass: EmulatedEvidence | None = None


class Recount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Emulated evidence of the arms of one run."""

    version: int
    run: str
    experiment: str
    created: str
    """ISO 8601, in UTC."""
    tool: str
    """kernelexp's version."""
    compiler: str
    host_files: dict[str, str]
    """SHA-256 of problem.py and the Python files next to it, by path from the root."""
    arms: dict[str, RecountedArm]
    """By the name that the record has for them."""
    edited: bool = False
    """Whether its file is not as it was written, as it is read; no file has it."""


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Recount)


def write(root: Path, recount: Recount) -> Path:
    """Adds a recount to those of its run; a kill leaves none or a whole one."""
    name = f"{disk.name_at(datetime.now(UTC))}.json"
    named = msgspec.to_builtins(recount, str_keys=True)  # the encoder orders no other keys
    text = sealed(msgspec.json.format(_encoder.encode(named), indent=1).decode())
    return disk.write(root / FOLDER / recount.run / name, text.encode())


def latest(root: str, run: str) -> Recount | Unreadable | None:
    """The latest recount of a run; None where there is none."""
    folder = os.path.join(root, FOLDER, run)
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return None
    if not names:
        return None
    path = os.path.join(folder, max(names))
    recount = decode(path, _decoder, VERSION, "recount")
    if isinstance(recount, Recount) and recount.run != run:
        return Unreadable(path=Path(path), why=f"is of run {recount.run}")
    return recount
