"""Builds of this machine by what they are made from, for records of other machines.

A build's identity covers every file of the compiler, so that the record of another machine names a
build which is not here. One of the same sources, flags and defines, by the same version of the
compiler, stands in for it on pages that show code.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import msgspec

from kernelexp import system
from kernelexp.evidence.build import store
from kernelexp.evidence.build.planning import INCLUDE
from kernelexp.model.arm import Arm
from kernelexp.model.record import Record


def note(root: Path, arm: Arm, compiler: str) -> None:
    """Keeps where the build of an arm is; `compiler` is the version."""
    folder, name, content = _folder(root), _name(arm, compiler), arm.identity.encode()
    if arm.build and store.kept(folder, name) != content:
        folder.mkdir(exist_ok=True)
        store.keep(folder, name, content)


def here(root: Path, record: Record) -> Record:
    """The record with the builds of this machine in the place of those that are not here."""
    baseline, *arms = (_here(root, arm, record.compiler) for arm in record.arms)
    candidates = tuple(
        msgspec.structs.replace(candidate, arm=arm)
        for candidate, arm in zip(record.candidates, arms, strict=True)
    )
    return msgspec.structs.replace(record, baseline=baseline, candidates=candidates)


def _here(root: Path, arm: Arm, compiler: str) -> Arm:
    if not arm.build or not arm.identity.isalnum() or store.folder_of(root, arm.identity).is_dir():
        return arm
    kept = store.kept(_folder(root), _name(arm, compiler))
    return msgspec.structs.replace(arm, identity=kept.decode()) if kept else arm


def _folder(root: Path) -> Path:
    return root / store.CACHE / "alike"


def _name(arm: Arm, compiler: str) -> str:
    files = own_files(arm)
    made_from = (arm.kernel, arm.arch, arm.axes, arm.source, files, arm.flags, compiler)
    return hashlib.sha256(msgspec.json.encode(made_from, order="sorted")).hexdigest()[:24]


def own_files(arm: Arm) -> dict[str, str]:
    """Its files without the package's headers, of which a record has those that its project has, as
    this repository does, but not those that it takes from the package."""
    return {
        name: digest
        for name, digest in arm.files.items()
        if not name.startswith(f"{INCLUDE}/") or _header(name.rpartition("/")[2]) != digest
    }


@functools.cache
def _header(name: str) -> str:
    path = Path(system.__file__).parent / "include" / name
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
