"""Files in the cache: written whole or not at all, and checked against their hashes when read."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import shlex
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp import system
from kernelexp.model.arm import Arm
from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.record import Record
from kernelexp.system import disk, toolchain
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


# What a text may ask the preprocessor for besides files: the answer is not a dependency.
ASKS = re.compile(rb"__has_(?:include|embed)|__(?:DATE|TIME|TIMESTAMP)__")
_SEPARATOR = re.compile(r"(?<!\\)\s+")
_ESCAPED = re.compile(r"\\([ #])|\$(?=\$)")
_OPTION = re.compile(
    r"^-{1,2}(?:I|isystem|iquote|idirafter|include-path|system-include|isysroot)?[=,]?"
)
_SYSTEM = "/usr/"
LONGEST_NAME = 4
"""Folders of an #include's name that are looked for elsewhere."""


class CachedCompilation(msgspec.Struct, frozen=True, kw_only=True):
    """One compilation's inputs, and the build that came of it."""

    identity: str
    read: dict[str, str]
    """SHA-256 by path, from the project's root where it is below it, in the order of reading."""
    passed_over: tuple[str, ...]
    """Files of the same names in folders that are searched too, which were not taken."""
    preprocessed: str = ""
    """Hash of the preprocessed text, where the sources ask for what is not a dependency."""


class Files:
    """The content of files and folders, each looked at once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._hashes: dict[str, str] = {}
        self._names: dict[str, frozenset[str]] = {}

    def sha256(self, path: str) -> str:
        """The hash of a file; empty where it can't be read."""
        if path not in self._hashes:
            try:
                content = (self._root / path).read_bytes()
                self._hashes[path] = hashlib.sha256(content).hexdigest()
            except OSError:
                self._hashes[path] = ""
        return self._hashes[path]

    def names(self, folder: str) -> frozenset[str]:
        """Returns the names in a folder; nothing where there is none."""
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(self._root / folder))
            except OSError:
                self._names[folder] = frozenset()
        return self._names[folder]

    def is_file(self, path: str) -> bool:
        return (self._root / path).is_file()

    def ask(self, paths: Iterable[str]) -> bool:
        """Whether one of these texts asks for what is in no dependency."""
        return any(ASKS.search((self._root / path).read_bytes()) for path in paths)

    def changed_since(self, paths: Iterable[str], start_ns: int, toolkit: str) -> dict[str, int]:
        """Returns when each of these files changed that did so at `start_ns` or later; 0 if it is
        gone.

        By the time that nobody can set, but for the compiler's own: package managers link those.
        """
        result = {}
        for path in paths:
            try:
                status = (self._root / path).stat()
                changed = status.st_ctime_ns if is_own(path, toolkit) else status.st_mtime_ns
            except OSError:
                changed = 0
            if changed == 0 or changed >= start_ns:
                result[path] = changed
        return result


def parse(text: str) -> list[str] | None:
    """The prerequisites of the one rule in a dependency file of gcc, clang or nvcc; None if it is
    cut short.

    nvcc escapes spaces, and nothing else.
    """
    target, colon, rest = text.partition(": ")
    if not colon or not target or not rest.endswith("\n") or rest.endswith("\\\n"):
        return None
    words = _SEPARATOR.split(rest.replace("\\\n", "\n").strip())
    return [_ESCAPED.sub(r"\1", word) for word in words if word]


def tidy(root: str, path: str) -> str:
    """A path from the project's root where it is below it, else in full; `..` is worked out.

    Links are left as they are, so that a name keeps meaning the same when one is changed.
    """
    whole = os.path.normpath(os.path.join(root, path))
    return whole[len(root) + 1 :] if whole.startswith(f"{root}/") else whole


def belongs_to_project(path: str) -> bool:
    return not os.path.isabs(path)


def is_own(path: str, toolkit: str) -> bool:
    """Whether people edit this file: it is neither the compiler's nor the system's."""
    return not path.startswith((_SYSTEM, f"{toolkit}/"))


def searched(
    root: str,
    read: Iterable[str],
    toolkit: str,
    flags: Sequence[str],
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    """The folders in which another file of an included name would be taken or passed over."""
    folders = dict.fromkeys(os.path.dirname(path) for path in read if is_own(path, toolkit))
    words = list(flags)
    for name, value in environment.items():
        words += value.split(":") if name.endswith("PATH") else _words(value)
    for word in words:
        for part in re.split("[,=]", _OPTION.sub("", word)):
            if part and not part.startswith("-"):
                folders[tidy(root, _OPTION.sub("", part))] = None
    return tuple(folders)


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()


def passed_over(
    files: Files, read: Mapping[str, str], folders: Iterable[str], toolkit: str
) -> tuple[str, ...]:
    """The files in `folders` that an #include of a file in `read` could name too."""
    by_first: dict[str, set[str]] = {}
    for path in read:
        parts = path.split("/")
        for length in range(1, min(LONGEST_NAME, len(parts)) + 1):
            by_first.setdefault(parts[-length], set()).add("/".join(parts[-length:]))
    result = set()
    for folder in folders:
        for first in by_first.keys() & files.names(folder):
            for name in by_first[first]:
                path = os.path.join(folder, name)
                if path not in read and is_own(path, toolkit) and files.is_file(path):
                    result.add(path)
    return tuple(sorted(result))


def is_unchanged(
    files: Files, entry: CachedCompilation, folders: Sequence[str], toolkit: str
) -> bool:
    """Whether a compilation would read now what it read then."""
    if any(files.sha256(path) != sha256 for path, sha256 in entry.read.items()):
        return False
    return passed_over(files, entry.read, folders, toolkit) == entry.passed_over


def content_of_arguments(root: Path, files: Files, words: Iterable[str]) -> list[str]:
    """The hashes of the files that arguments name: option files, specs, host compilers."""
    result = []
    for word in words:
        for part in re.split("[,=]", word):
            path = part.removeprefix("@")
            if path and (root / path).is_file():
                result.append(files.sha256(path))
    return result


def note_alike(root: Path, arm: Arm, compiler: str) -> None:
    """Keeps where the build of an arm is, for records of other machines; `compiler` is the version.

    A build's identity covers every file of the compiler, so that the record of another machine
    names a build which is not here. One of the same sources, flags and defines, by the same version
    of the compiler, stands in for it on pages that show code.
    """
    folder, name, content = _alike_folder(root), _name(arm, compiler), arm.identity.encode()
    if arm.build and kept(folder, name) != content:
        folder.mkdir(exist_ok=True)
        keep(folder, name, content)


def with_builds_here(root: Path, record: Record) -> Record:
    """The record with the builds of this machine in the place of those that are not here."""
    baseline, *arms = (_here(root, arm, record.compiler) for arm in record.arms)
    candidates = tuple(
        msgspec.structs.replace(candidate, arm=arm)
        for candidate, arm in zip(record.candidates, arms, strict=True)
    )
    return msgspec.structs.replace(record, baseline=baseline, candidates=candidates)


def _here(root: Path, arm: Arm, compiler: str) -> Arm:
    if not arm.build or not arm.identity.isalnum() or folder_of(root, arm.identity).is_dir():
        return arm
    known = kept(_alike_folder(root), _name(arm, compiler))
    return msgspec.structs.replace(arm, identity=known.decode()) if known else arm


def _alike_folder(root: Path) -> Path:
    return root / CACHE / "alike"


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
        if not name.startswith(f"{toolchain.INCLUDE}/")
        or _header(name.rpartition("/")[2]) != digest
    }


@functools.cache
def _header(name: str) -> str:
    path = Path(system.__file__).parent / "include" / name
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
