"""The files that a run was made from, kept so that its variants can be had again, and the machine
code that sources compile to, by which a record outlives a change of their text.

A commit has the files of a clean tree. Those of any other run are kept in logs/sources, each once,
compressed, under the SHA-256 of its content, which is checked when it is read.

`logs/compiled/KERNEL@ARCH-HASH.json` is one state of a kernel's sources: the content of every file
that the compiler read, and a digest of the machine code of each variant that was compiled from it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.logs import documents
from kernelexp.logs.documents import Unreadable, sealed
from kernelexp.model.arm import Arm
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.experiment import AxisValue
from kernelexp.model.record import Git, Record
from kernelexp.system import disk
from kernelexp.system.process import processes

GIT_LIMIT_S = 10.0
_STATUS = (
    *("git", "status", "--porcelain=v2", "--branch", "--untracked-files=normal"),
    *(".", ":(exclude)logs", ":(exclude).kernelexp"),
)


def read_git(root: Path) -> Git | None:
    """Commit and whether files differ from it; None where git does not say in a few seconds.

    Records, the log and the cache do not count: a run is not made from them, and writes them.
    """
    try:
        status = processes.run(
            _STATUS,
            cwd=root,
            timeout_s=GIT_LIMIT_S,
        )
    except EnvironmentFault:
        return None
    if status.returncode != 0:
        return None
    lines = status.stdout.splitlines()
    commit = next((x.split()[2] for x in lines if x.startswith("# branch.oid")), "")
    if commit in ("", "(initial)"):
        return None  # no commit yet
    return Git(commit=commit, dirty=any(not line.startswith("#") for line in lines))


def read_committed(root: Path, commit: str, name: str) -> bytes | None:
    """A file of the project as a commit has it; None where git does not have it."""
    argv = ["git", "show", f"{commit}:./{name}"]
    try:
        done = processes.run(argv, cwd=root, timeout_s=GIT_LIMIT_S)
    except EnvironmentFault:
        return None
    return done.output if done.returncode == 0 else None


FOLDER = "logs/sources"
STORED_MAX = 16 << 20
"""Bytes of the largest file that is stored: data of a problem.py may be of any size."""


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def of_record(record: Record) -> dict[str, str]:
    """SHA-256 of every file that a run was made from, by path from the root."""
    every = [record.host_files, *(arm.files for arm in record.arms)]
    known = {name: digest for digests in every for name, digest in digests.items() if digest}
    known = {name: digest for name, digest in known.items() if not name.endswith("/")}
    return dict(sorted(known.items()))


def keep(home: Path, root: Path, digests: Mapping[str, str]) -> bool:
    """Stores each file of `root` in `home` that is not stored yet, or damaged there, unless it is
    too large or has changed since; whether all are stored."""
    for name, digest in digests.items():
        if _stored(home, digest) is not None or (root / name).stat().st_size > STORED_MAX:
            continue
        content = (root / name).read_bytes()
        if sha256(content) == digest:
            disk.write(_place(home, digest), gzip.compress(content, mtime=0))
    return all(_place(home, digest).is_file() for digest in digests.values())


def are_unchanged(root: Path, digests: Mapping[str, str]) -> bool:
    """Whether the tree has all these files with this content."""
    return all(
        disk.is_own(root, name)
        and (root / name).is_file()
        and sha256((root / name).read_bytes()) == digest
        for name, digest in digests.items()
    )


def content(root: Path, record: Record, name: str) -> bytes:
    """A file as it was when the record was made: from logs/sources, the commit, or the tree.

    Raises UsageError if none of them has it.
    """
    digest = of_record(record)[name]
    for text in _candidates(root, record, name, digest):
        if sha256(text) == digest:
            return text
    stored = _place(root, digest)
    kept = f"{stored.relative_to(root)} is damaged" if stored.exists() else f"it is not in {FOLDER}"
    raise UsageError(
        f"{name} as it was in run {record.run} can't be recovered: {kept}, it is not in the run's "
        "commit, and the file has changed since."
    )


def _candidates(root: Path, record: Record, name: str, digest: str) -> Iterable[bytes]:
    stored = _stored(root, digest)
    if stored is not None:
        yield stored
    if disk.is_own(root, name) and (root / name).is_file():
        yield (root / name).read_bytes()
    if record.git:
        text = read_committed(root, record.git.commit, name)
        if text is not None:
            yield text


def _stored(root: Path, digest: str) -> bytes | None:
    """A stored file; None where it is not there, or not with this content."""
    try:
        with gzip.open(_place(root, digest)) as file:
            content = file.read(STORED_MAX + 1)  # a file of somebody else's may be a bomb
    except (OSError, EOFError, ValueError, zlib.error):
        return None
    return content if len(content) <= STORED_MAX and sha256(content) == digest else None


def _place(root: Path, digest: str) -> Path:
    return root / FOLDER / digest[:2] / f"{digest[2:]}.gz"


def restore(root: Path, record: Record) -> Path:
    """A folder with every file of a run as it was, at its path from the root."""
    names = list(of_record(record))
    above = max((name.split("/").count("..") for name in names), default=0)
    top = root / disk.RESTORED / record.run
    folder = top.joinpath(*root.parts[len(root.parts) - above :])
    for name in names:
        path = Path(os.path.normpath(folder / name))
        if not (disk.is_own(root, name) and path.resolve().is_relative_to(top.resolve())):
            raise UsageError(f"run {record.run} names {name}, which is outside of its project.")
        disk.write(path, content(root, record, name))
    return folder


COMPILED = "logs/compiled"
COMPILED_VERSION = 1


class CompiledVariant(msgspec.Struct, frozen=True, kw_only=True):
    """The machine code of one variant."""

    axes: dict[str, AxisValue]
    code: str
    """As `Arm.code`."""


class CompiledState(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a kernel's sources, compiled."""

    version: int
    kernel: str
    arch: str
    compiler: str
    source: str
    flags: tuple[str, ...]
    files: dict[str, str]
    """SHA-256 of each file of the project that the compiler read, by path from the root."""
    headers: dict[str, str]
    """SHA-256 of each of kernelexp's own headers that it read, by name."""
    variants: tuple[CompiledVariant, ...]
    edited: bool = False
    """Whether its file is not as it was written, as it is read; no file has it."""

    @property
    def arms(self) -> list[Arm]:
        """An arm for each variant, with what it was compiled from and to."""
        return [
            Arm(
                kernel=self.kernel,
                arch=self.arch,
                axes=one.axes,
                source=self.source,
                flags=self.flags,
                files=self.files,
                headers=self.headers,
                code=one.code,
            )
            for one in self.variants
        ]


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(CompiledState)


def compiled_state(arm: Arm, compiler: str) -> str:
    """Names what an arm was compiled from, but for its axes; `compiler` is the version."""
    made_from = (arm.kernel, arm.arch, compiler, arm.source, arm.flags, arm.files)
    content = msgspec.json.encode((*made_from, arm.headers or {}), order="sorted")
    return hashlib.sha256(content).hexdigest()


def add_compiled(root: Path, arm: Arm, compiler: str) -> Path:
    """Keeps the machine code of an arm with that of the others of its state."""
    path = root / COMPILED / f"{arm.kernel}@{arm.arch}-{compiled_state(arm, compiler)[:12]}.json"
    before = _read_compiled(path) if path.exists() else None
    others = before.variants if isinstance(before, CompiledState) else ()
    own = CompiledVariant(axes=arm.axes, code=arm.code)
    variants = {spell_axes(one.axes): one for one in (*others, own)}
    compiled = CompiledState(
        version=COMPILED_VERSION,
        kernel=arm.kernel,
        arch=arm.arch,
        compiler=compiler,
        source=arm.source,
        flags=arm.flags,
        files=arm.files,
        headers=arm.headers or {},
        variants=tuple(variants[name] for name in sorted(variants)),
    )
    values = msgspec.to_builtins(compiled, str_keys=True)
    del values["edited"]
    text = msgspec.json.format(_encoder.encode(values), indent=1).decode()
    return disk.write(path, sealed(text).encode())


def spell_axes(axes: dict[str, AxisValue]) -> str:
    """The axes as a key: values of different types differ."""
    return msgspec.json.encode(axes, order="sorted").decode()


def read_compiled(root: Path) -> tuple[Sequence[CompiledState], Sequence[Unreadable]]:
    """All states that are kept, and the files that are none."""
    return documents.apart(
        _read_compiled(path) for path in sorted((root / COMPILED).glob("*.json"))
    )


def _read_compiled(path: Path) -> CompiledState | Unreadable:
    return documents.decode(str(path), _decoder, COMPILED_VERSION, "compiled state")
