"""Shared-memory addresses whose wavefronts ncu counts, and the rule that gives its counts.

Lanes are served in phases of 32, 16 or 8 lanes for 4, 8 or 16 bytes each. A load whose lanes n and
n^1 all agree, or whose lanes n and n^2 all agree, needs half as many phases. A phase takes as many
wavefronts as the most distinct words that fall into one bank, none without an active lane. ldmatrix
and stmatrix serve one 8x8 matrix a phase.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from .case import Case, case, output, u32
from .values import random_bits

SMEM_BYTES = 32 * 512
_LANES = np.arange(32)
_ALL = 0xFFFFFFFF


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """One launch: an entry of kernels/wavefronts.cu, byte addresses by lane, and active lanes."""

    entry: str
    name: str
    where: npt.NDArray[np.int64]
    active: int = _ALL


def patterns() -> list[Pattern]:
    return list(_all())


def _all() -> Iterator[Pattern]:
    for verb in ("load", "store"):
        for width in (4, 8, 16):
            for name, where, active in _scattered(width):
                yield Pattern(entry=f"{verb}_{width}", name=name, where=where, active=active)
    for entry in (
        "ldmatrix_x1", "ldmatrix_x2", "ldmatrix_x4", "ldmatrix_x4_trans",
        "stmatrix_x1", "stmatrix_x2", "stmatrix_x4", "stmatrix_x4_trans",
    ):  # fmt: skip
        for name, where in _rows():
            yield Pattern(entry=entry, name=name, where=where)


def _scattered(width: int) -> Iterator[tuple[str, npt.NDArray[np.int64], int]]:
    lane = _LANES
    yield "linear", width * lane, _ALL
    yield "one address", 0 * lane, _ALL
    yield "pairs n, n^1 alike", width * (lane // 2), _ALL
    yield "pairs n, n^2 alike", width * ((lane & 1) + (lane >> 2) * 2), _ALL
    yield "quads alike", width * (lane // 4), _ALL
    yield "eights alike", width * (lane // 8), _ALL
    yield "halves alike", width * (lane % 16), _ALL
    yield "pitch 256", 256 * lane, _ALL
    yield "pitch 512 + width", 512 * lane % SMEM_BYTES + 0 * lane, _ALL
    yield "pitch 128 + width", (128 + width) * lane, _ALL
    yield "pairs alike, pitch 256", 256 * (lane // 2), _ALL
    yield "pairs n^2 alike, pitch 256", 256 * ((lane & 1) + (lane >> 2) * 2), _ALL
    yield "stride 2", 2 * width * lane, _ALL
    yield "stride 3", 3 * width * lane, _ALL
    yield "reversed", width * (31 - lane), _ALL
    yield "lanes 0-7", width * lane, 0xFF
    yield "lanes 0-15", width * lane, 0xFFFF
    yield "lanes 0, 8, 16, 24", width * lane, 0x01010101
    yield "lane 5", width * lane, 1 << 5
    yield "even lanes", width * lane, 0x55555555
    yield "lanes 0-7, pitch 256", 256 * lane, 0xFF
    for i in range(4):
        where = (random_bits(f"wavefronts/{width}/{i}", 32) % (4096 // width)).astype(np.int64)
        yield f"random {i}", where * width, _ALL
        some = int(random_bits(f"wavefronts/active/{i}", 1)[0] & np.uint64(_ALL))
        yield f"random {i}, some lanes", where * width, some


def _rows() -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    yield "linear", 16 * _LANES
    yield "pitch 144", 144 * _LANES
    yield "pitch 128", 128 * _LANES
    yield "pitch 256", 256 * _LANES
    yield "one row", 0 * _LANES
    yield "pairs alike", 16 * (_LANES // 2)
    where = (random_bits("wavefronts/rows", 32) % 256).astype(np.int64)
    yield "random", where * 16


def cases() -> Iterator[Case]:
    for pattern in patterns():
        arrays = {"where": pattern.where.astype(np.uint32), "out": output(128)}
        result = case(
            f"{pattern.entry}: {pattern.name}", pattern.entry, 1, 32, arrays, "out",
            smem=SMEM_BYTES,
        )  # fmt: skip
        where, out = result.launch.arguments
        arguments = (where, u32(pattern.active), out)
        yield msgspec.structs.replace(
            result, launch=msgspec.structs.replace(result.launch, arguments=arguments)
        )


def by_rule(pattern: Pattern) -> int:
    """Wavefronts by the rule of the module's docstring."""
    if "matrix" in pattern.entry:
        phases = int(pattern.entry.split("_x")[1][0])
        rows = [pattern.where[8 * k : 8 * k + 8] for k in range(phases)]
        return sum(_deepest(_words(row, 16)) for row in rows)
    width = int(pattern.entry.split("_")[1])
    size = min(32, 128 // width)
    alike = (np.array_equal(pattern.where, pattern.where[_LANES ^ bit]) for bit in (1, 2))
    if "load" in pattern.entry and width > 4 and any(alike):
        size *= 2
    total = 0
    for first in range(0, 32, size):
        lanes = [i for i in range(first, first + size) if pattern.active >> i & 1]
        if lanes:
            total += _deepest(_words(pattern.where[lanes], width))
    return total


def ideal(pattern: Pattern) -> int:
    """What ncu calls ideal: the bytes of the active lanes at 128 a wavefront, if not fewer do."""
    if "matrix" in pattern.entry:
        return int(pattern.entry.split("_x")[1][0])
    width = int(pattern.entry.split("_")[1])
    return min(by_rule(pattern), -(-pattern.active.bit_count() * width // 128))


def _words(where: npt.NDArray[np.int64], width: int) -> set[int]:
    return {int(at) // 4 + k for at in where for k in range(width // 4)}


def _deepest(words: set[int]) -> int:
    banks = [word % 32 for word in words]
    return max(banks.count(bank) for bank in set(banks))
