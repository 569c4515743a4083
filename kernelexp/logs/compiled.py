"""The machine code that sources compile to, by which a record outlives a change of their text.

`logs/compiled/KERNEL@ARCH-HASH.json` is one state of a kernel's sources: the content of every file
that the compiler read, and a digest of the machine code of each variant that was compiled from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kernelexp.logs import documents
from kernelexp.logs.documents import Unreadable, sealed
from kernelexp.model.arm import Arm
from kernelexp.model.spelling import AxisValue
from kernelexp.system import disk

FOLDER = "logs/compiled"
VERSION = 1


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


def state(arm: Arm, compiler: str) -> str:
    """Names what an arm was compiled from, but for its axes; `compiler` is the version."""
    made_from = (arm.kernel, arm.arch, compiler, arm.source, arm.flags, arm.files)
    content = msgspec.json.encode((*made_from, arm.headers or {}), order="sorted")
    return hashlib.sha256(content).hexdigest()


def add(root: Path, arm: Arm, compiler: str) -> Path:
    """Keeps the machine code of an arm with that of the others of its state."""
    path = root / FOLDER / f"{arm.kernel}@{arm.arch}-{state(arm, compiler)[:12]}.json"
    before = _read(path) if path.exists() else None
    others = before.variants if isinstance(before, CompiledState) else ()
    own = CompiledVariant(axes=arm.axes, code=arm.code)
    variants = {spelled(one.axes): one for one in (*others, own)}
    compiled = CompiledState(
        version=VERSION,
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


def spelled(axes: dict[str, AxisValue]) -> str:
    """The axes as a key: values of different types differ."""
    return msgspec.json.encode(axes, order="sorted").decode()


def read_all(root: Path) -> tuple[Sequence[CompiledState], Sequence[Unreadable]]:
    """All states that are kept, and the files that are none."""
    return documents.apart(_read(path) for path in sorted((root / FOLDER).glob("*.json")))


def _read(path: Path) -> CompiledState | Unreadable:
    return documents.decode(str(path), _decoder, VERSION, "compiled state")
