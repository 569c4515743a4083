"""A right kernel and its faulty twin, and results that several kernels give."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import NamedTuple

from correct.kernel import each


class FaultyPair(NamedTuple):
    """A kernel that is right, and has the fault if it is compiled with WRONG."""

    name: str
    fault: str
    want: Callable[[list[int]], Iterable[int]]
    """The first words of `out`, of the words of `in`, if it is right; the others stay zeros."""
    threads: int = 64
    ctas: int = 1
    dynamic: int = 0
    takes_map: bool = False
    in_cluster: bool = False
    """Whether its CTAs are one cluster."""


def total(count: int) -> Callable[[list[int]], list[int]]:
    return lambda x: [sum(x[:count])]


def counted(count: int, bins: int) -> Callable[[list[int]], list[int]]:
    return lambda x: [sum(word % bins == b for word in x[:count]) for b in range(bins)]


def mirrored(count: int = 64) -> Callable[[list[int]], list[int]]:
    return lambda x: x[:count][::-1]


def crossed(x: list[int]) -> list[int]:
    """Two blocks of 64 that read each other's words from the end."""
    return [*x[64:128][::-1], *x[:64][::-1]]


def weighed(count: int, value: Callable[[int, int, list[int]], int]) -> Callable[..., list[int]]:
    """Horner's sum over `count` stages."""
    return each(lambda t, x: reduce(lambda sum_, i: sum_ * 3 + value(t, i, x), range(count), 0))


def horner(words: list[int]) -> int:
    """The words as digits to the base 3."""
    return reduce(lambda sum_, word: sum_ * 3 + word, words, 0)
