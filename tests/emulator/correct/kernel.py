"""A correct kernel: its sentence, its launch, what it must give."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from warpsim.launch import TensorMap

Words = np.ndarray
"""uint32 [n]."""
WORDS = 4096
"""Of each of the arrays `out`, `in` and `scratch`; the first and the last are zeros at first."""
MASK = 0xFFFF_FFFF


class Kernel(NamedTuple):
    """A kernel `name(out, in, scratch)` of the source beside its table."""

    name: str
    sentence: str
    want: Callable[[list[int]], Iterable[int]]
    """The first words of `out`, of the words of `in`; the others stay zeros."""
    threads: int = 64
    ctas: int = 1
    cluster: int = 1
    dynamic: int = 0
    maps: tuple[TensorMap, ...] = ()
    """Arguments after the arrays."""
    slow: bool = False


def each(function: Callable[[int, list[int]], int], count: int = 64) -> Callable[..., list[int]]:
    """`function` of every thread and `in`."""
    return lambda x: [function(t, x) for t in range(count)]


def always(value: int, count: int = 64) -> Callable[..., list[int]]:
    return lambda x: [value] * count


def signed(word: int) -> int:
    return (word & MASK) - (1 << 32 if word & 1 << 31 else 0)


def bits(lanes: Iterable[bool]) -> int:
    """A mask of the lanes that are true."""
    return sum(1 << lane for lane, on in enumerate(lanes) if on)


def warp_of(t: int) -> range:
    """The threads of the warp of thread t."""
    return range(t // 32 * 32, t // 32 * 32 + 32)
