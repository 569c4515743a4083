"""What ncu counted of the launches on an H200, as it was recorded."""

from __future__ import annotations

import functools
import gzip
from pathlib import Path

import msgspec

FILE = Path(__file__).parent / "golden.json.gz"


class Counted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One launch's counts; what is not named is 0."""

    program: str
    entry: str
    code: str
    """Code.digest() of the entry."""
    figures: dict[str, int]
    """By ncu's metric, without .sum."""
    executed: dict[str, int]
    """Warp instructions by opcode with its modifiers."""
    threads: dict[str, int]
    """Thread instructions for which the guard holds, likewise."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What a public program is."""

    repository: str
    commit: str
    file: str
    sha256: str
    """Of the file."""


class Golden(msgspec.Struct, frozen=True, kw_only=True):
    """All launches, by group and name."""

    about: dict[str, str]
    """gpu, driver, ncu, compiler, date."""
    metrics: tuple[str, ...]
    """Those that were recorded."""
    sources: dict[str, Source]
    """By the program's name."""
    launches: dict[str, dict[str, Counted]]


@functools.cache
def recorded() -> Golden:
    return msgspec.json.decode(gzip.decompress(FILE.read_bytes()), type=Golden)


def write(golden: Golden, target: Path = FILE) -> None:
    text = msgspec.json.format(msgspec.json.encode(golden, order="sorted"), indent=1)
    target.write_bytes(gzip.compress(text, mtime=0))
