"""SIMD video: the bytes or halves of words, each for itself."""

from __future__ import annotations

import numpy as np

from warpsim.front.ptx.registry import alu
from warpsim.machine.core.arrays import Array


def _elements(a: Array, signed: bool, count: int) -> Array:
    """The parts of words, lowest first, as int64 [..., count]."""
    kind = np.dtype(f"{'i' if signed else 'u'}{4 // count}")
    return np.ascontiguousarray(a)[..., None].view(kind).astype(np.int64)


@alu(
    "v{o:add|sub|avrg|absdiff|min|max}{n:2|4}.{d:u32|s32}.{x:u32|s32}.{y:u32|s32}{k:|.sat|.add}",
    "b32 b32 b32 b32",
)
def simd(a: Array, b: Array, c: Array, o: str, n: str, d: str, x: str, y: str, k: str) -> Array:
    """Without masks and selectors. `.sat` clamps each part to its type, `.add` adds up all parts
    and c; otherwise c is not used (PTX ISA, "SIMD Video Instructions")."""
    count = int(n)
    left, right = _elements(a, x[0] == "s", count), _elements(b, y[0] == "s", count)
    total = left + right
    parts = {
        "add": total,
        "sub": left - right,
        "avrg": (total + (total >= 0)) >> 1,
        "absdiff": np.abs(left - right),
        "min": np.minimum(left, right),
        "max": np.maximum(left, right),
    }[o]
    if k == ".add":
        return (parts.sum(axis=-1) + c.astype(np.int64)).astype(np.uint32)
    if k == ".sat":
        limits = np.iinfo(np.dtype(f"{'i' if d[0] == 's' else 'u'}{4 // count}"))
        parts = np.clip(parts, limits.min, limits.max)
    narrow = parts.astype(np.dtype(f"u{4 // count}"))
    return np.ascontiguousarray(narrow).view(np.uint32)[..., 0]
