"""Files in the cache: written whole or not at all, and checked against their hashes when read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from kernelexp.model.errors import EnvironmentFault
from kernelexp.system import disk
from kernelexp.system.disk import decode

CACHE = ".kernelexp"
CHECKSUMS, IDENTITY = "checksums.json", "identity"
PTX, CUBIN, SASS = "kernel.ptx", "kernel.cubin", "kernel.sass"
PTXAS_LOG, NVCC_LOG = "ptxas.log", "nvcc.log"
PROGRAM = "program"
FILES = (PTX, CUBIN, SASS, PTXAS_LOG, NVCC_LOG)
"""What the build of a kernel leaves."""
CUBIN_FILES = (CUBIN, SASS, PTXAS_LOG, NVCC_LOG)
"""What is left of a kernel that came as a cubin."""
PROGRAM_FILES = (PROGRAM, SASS, PTXAS_LOG, NVCC_LOG)
"""What the build of a program leaves."""

_TEMPORARY = re.compile(r"tmp-(?P<host>.*)-(?P<pid>\d+)-(?P<begun>\d+)-\w+")


class Artefacts(msgspec.Struct, frozen=True, kw_only=True):
    """The artefacts of a build, as they were checked."""

    cubin: Path
    ptx: Path | None
    """None of a kernel that came as a cubin."""
    listing: Path
    """Of `sass`."""
    sass: str
    """Resource usage and SASS, as cuobjdump prints them."""
    ptxas_report: str


def builds(root: Path) -> Path:
    """The folder of all builds of a project."""
    return root / CACHE / "build"


def folder_of(root: Path, identity: str) -> Path:
    """Returns the folder of a build's artefacts and of what is kept beside them; checks nothing."""
    return builds(root) / identity


class ProgramArtefacts(msgspec.Struct, frozen=True, kw_only=True):
    """The artefacts of a program."""

    executable: Path
    sass: str
    """Resource usage and SASS of all its kernels, as cuobjdump prints them."""
    ptxas_report: str


def artefacts(root: Path, identity: str) -> Artefacts:
    """The artefacts of a kernel's build. EnvironmentFault where they are not what was written."""
    folder = _whole(root, identity)
    return Artefacts(
        cubin=folder / CUBIN,
        ptx=folder / PTX if (folder / PTX).is_file() else None,
        listing=folder / SASS,
        sass=(folder / SASS).read_text("utf-8", "replace"),
        ptxas_report=(folder / PTXAS_LOG).read_text("utf-8", "replace"),
    )


def program(root: Path, identity: str) -> ProgramArtefacts:
    """The artefacts of a program's build. EnvironmentFault where they are not what was written."""
    folder = _whole(root, identity)
    return ProgramArtefacts(
        executable=folder / PROGRAM,
        sass=(folder / SASS).read_text("utf-8", "replace"),
        ptxas_report=(folder / PTXAS_LOG).read_text("utf-8", "replace"),
    )


def _whole(root: Path, identity: str) -> Path:
    folder = folder_of(root, identity)
    if not is_whole(folder):
        raise EnvironmentFault(
            f"{folder.relative_to(root)} is not what the compiler left there: run the command "
            "again, and it is built anew."
        )
    return folder


def is_whole(folder: Path) -> bool:
    """Whether all artefacts are there with the content that they were written with."""
    try:
        sums = decode((folder / CHECKSUMS).read_bytes(), dict[str, str])
        if sums.pop(IDENTITY, folder.name) != folder.name:  # early versions did not write it
            return False
        return set(sums) in map(set, (FILES, CUBIN_FILES, PROGRAM_FILES)) and all(
            (folder / name).is_file()  # what is no file may never end
            and hashlib.sha256((folder / name).read_bytes()).hexdigest() == sums[name]
            for name in sums
        )
    except (OSError, msgspec.DecodeError):
        return False


def commit(temporary: Path, folder: Path, files: Sequence[str] = FILES) -> bool:
    """Makes a finished temporary folder the build `folder`, in one step and safe from power cuts.

    What is there already and whole stays: evidence is kept next to it. Whether something damaged
    was there.
    """
    sums = {name: hashlib.sha256((temporary / name).read_bytes()).hexdigest() for name in files}
    (temporary / CHECKSUMS).write_bytes(msgspec.json.encode({**sums, IDENTITY: folder.name}))
    for other in temporary.iterdir():
        if other.name not in (*files, CHECKSUMS):
            _remove(other)
    disk.sync(*temporary.iterdir(), temporary)
    if is_whole(folder):
        return False
    damaged = folder.exists()
    if damaged:
        _remove(folder.rename(temporary_in(folder.parent, create=False)))
    temporary.rename(folder)
    disk.sync(folder.parent)
    return damaged


def temporary_in(folder: Path, *, create: bool = True) -> Path:
    """A new folder, or the name for one, that says which process it belongs to."""
    begun = _begun(os.getpid())
    name = f"tmp-{platform.node()}-{os.getpid()}-{begun}-{uuid.uuid4().hex[:8]}"
    if create:
        (folder / name).mkdir()
    return folder / name


def remove_stale(folder: Path) -> None:
    """Removes what processes that are gone left unfinished."""
    for entry in _entries(folder):
        match = _TEMPORARY.match(entry.name)
        if (
            match
            and match["host"] == platform.node()
            and _begun(int(match["pid"])) != match["begun"]
        ):
            _remove(entry)


def _entries(folder: Path) -> Iterable[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _begun(pid: int) -> str:
    """Returns when a process began, in ticks since boot; "0" where there is none.

    With the number it names a process: numbers are used again.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return "0"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


# ---- what is kept next to a build ----------------------------------------------------------------


def keep(folder: Path, name: str, content: bytes) -> None:
    """Writes folder/name whole or not at all: a line with the hash of its place and content, then
    the content.

    On a disk that is full or read-only nothing is kept: it is worked out again when it is needed.
    """
    with contextlib.suppress(OSError):
        disk.write(folder / name, _hash(content, folder, name) + b"\n" + content)


def kept(folder: Path, name: str) -> bytes | None:
    """Returns what keep() wrote there; None where there is nothing or something else."""
    try:
        sha256, _, content = (folder / name).read_bytes().partition(b"\n")
    except OSError:
        return None
    hashes = _hash(content, folder, name), _hash(content)  # early versions left out the place
    return content if sha256 in hashes else None


def _hash(content: bytes, folder: Path | None = None, name: str = "") -> bytes:
    place = f"{folder.name}/{name}\n".encode() if folder else b""
    return hashlib.sha256(place + content).hexdigest().encode()
