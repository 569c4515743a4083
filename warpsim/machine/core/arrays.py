"""What everything is computed on: NumPy arrays of [warps, 32], and the lanes that take part."""

from __future__ import annotations

import contextlib
import math
import mmap
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = Array | Literal[True]
"""Active lanes: True for all of them, or bool [n, 32]."""

DTYPES: dict[int, type[np.generic]] = {
    1: np.bool_,
    8: np.uint8,
    16: np.uint16,
    32: np.uint32,
    64: np.uint64,
}

# What a register holds before anything is written to it: a NaN in every floating-point type.
POISON: dict[int, int] = {1: 1, 8: 0xFF, 16: 0xFFF7, 32: 0xFFF7_FFF7, 64: 0xFFF7_FFF7_FFF7_FFF7}


def first_true(mask: Array) -> tuple[int, ...]:
    """The index of the first element that is true; there must be one."""
    return tuple(map(int, np.unravel_index(int(mask.argmax()), mask.shape)))


NORESERVE = 0x4000
"""MAPNORESERVE of Linux, which the mmap module of Python 3.11 does not have."""
_LARGE = 1 << 20


def sparse_zeros(shape: tuple[int, ...], dtype: DTypeLike, *, dense: bool = False) -> Array:
    """Zeros that take no memory and no time before they are touched, however many they are.

    calloc() clears up to 32 MiB of what was in use before. dense: most of them will be: in huge
    pages, where the system has any, as small ones take longer to come than to fill.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _LARGE:
        return np.zeros(shape, dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    memory = mmap.mmap(-1, size, flags=flags)
    if dense:
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, dtype).reshape(shape)


def touched_pages(array: Array) -> Array:
    """Which pages of the memory of an array of sparse_zeros() were touched, as far as it is known:
    the others hold zeros."""
    first, end = array.ctypes.data // mmap.PAGESIZE, array.ctypes.data + array.nbytes
    count = -(-end // mmap.PAGESIZE) - first
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as file:
            file.seek(8 * first)
            entries = np.frombuffer(file.read(8 * count), np.uint64)
    except OSError:
        entries = np.zeros(0, np.uint64)
    # In memory or swapped out: Linux, Documentation/admin-guide/mm/pagemap.rst.
    return entries >> np.uint64(62) != 0 if len(entries) == count else np.ones(count, bool)
