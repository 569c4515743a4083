"""Fat binaries as nvcc puts them into programs: images of PTX and of machine code."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence

import msgspec

MAGIC, ENTRY_BYTES = 0xBA55ED50, 64
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHI8xQQQ")
_PTX, _ELF = 1, 2
_LZ4, _ZSTD = 0x2000, 0x8000
_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d+)([af]?)", re.M)


class FatImage(msgspec.Struct, frozen=True, kw_only=True):
    """One image of a fat binary."""

    is_ptx: bool
    arch: int
    """90 for sm_90 and sm_90a."""
    content: bytes
    suffix: str = ""
    """Of the architecture: "a" or "f"."""


class Compressed(Exception):
    """An image that takes a tool to read."""


def images(data: bytes) -> Iterator[FatImage]:
    """Those of one container, or of several that follow each other; Compressed."""
    at = 0
    while at + _CONTAINER.size <= len(data):
        magic, _, header, size = _CONTAINER.unpack_from(data, at)
        if magic != MAGIC:
            return
        yield from _entries(data[at + header : at + header + size])
        at += header + size


def _entries(data: bytes) -> Iterator[FatImage]:
    at = 0
    while at + ENTRY_BYTES <= len(data):
        kind, _, header, padded, _, _, _, _, arch, flags, _, _ = _ENTRY.unpack_from(data, at)
        content = data[at + header : at + header + padded]
        at += header + padded
        if kind not in (_PTX, _ELF):
            continue
        if flags & (_LZ4 | _ZSTD):
            if kind == _PTX:
                raise Compressed
            continue  # what it says of registers is known from others, or not at all
        yield (
            ptx_image(content)
            if kind == _PTX
            else FatImage(is_ptx=False, arch=arch, content=content)
        )


def ptx_image(content: bytes) -> FatImage:
    """PTX with its target."""
    text = content.rstrip(b"\0")
    result = _TARGET.search(text)
    arch, suffix = (int(result[1]), result[2].decode()) if result else (0, "")
    return FatImage(is_ptx=True, arch=arch, suffix=suffix, content=text)


def choose(candidates: Sequence[FatImage], arch: int) -> list[FatImage]:
    """The PTX that a device of this architecture would compile: of a linked program, of each file.

    The images of a file come in a row, from the first architecture to the last.
    """
    fitting = [candidate for candidate in candidates if candidate.is_ptx and _fits(candidate, arch)]
    best = max(((fat_image.arch, fat_image.suffix) for fat_image in fitting), default=None)
    return [fat_image for fat_image in fitting if (fat_image.arch, fat_image.suffix) == best]


def _fits(image: FatImage, arch: int) -> bool:
    if image.suffix == "a":
        return image.arch == arch
    if image.suffix == "f":
        return image.arch <= arch and image.arch // 10 == arch // 10
    return image.arch <= arch
