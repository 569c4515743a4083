"""A mistake in a file that people write, with its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from kernelexp.model.text import printable, shorten

KeyPath: TypeAlias = tuple[str | int, ...]
Place: TypeAlias = tuple[int, int]
"""Line and column, from 1."""


class Fault(msgspec.Struct, frozen=True, order=True):
    """A mistake in a file."""

    file: str
    place: Place
    key: str
    """The key's path, such as experiments.F3.candidate; empty for the whole file."""
    message: str

    def sentence(self) -> str:
        key = f"{self.key}: " if self.key else ""
        return printable(f"{self.file}:{self.place[0]}:{self.place[1]}: {key}{self.message}")


def spell_path(path: Sequence[str | int]) -> str:
    """experiments.F3.candidate[1].width"""
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        else:
            name = shorten(part) if part and part.isprintable() else repr(shorten(part))
            spelled += f".{name}" if spelled else name
    return spelled
