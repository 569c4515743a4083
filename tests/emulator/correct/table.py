"""Kernels that are correct though few are written so: sources, launches, what each gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernelexp.launch import Element, Swizzle

Words = np.ndarray
"""uint32 [n]."""
WORDS = 4096
"""Of the array that every kernel reads, and of its scratch."""


class Box(NamedTuple):
    """A tensor map over the first words of `in` or `out`: the kernel's fourth argument and on."""

    array: str
    shape: tuple[int, ...]
    box: tuple[int, ...]
    element: Element = "u32"
    swizzle: Swizzle = "none"


class Kernel(NamedTuple):
    """A kernel `name(out, in, scratch)` of one of the sources; `in` is random, the rest zeros."""

    name: str
    sentence: str
    want: Callable[[Words], Words]
    """What `out` must hold, of what `in` holds."""
    threads: int = 64
    ctas: int = 1
    cluster: int = 1
    dynamic: int = 0
    boxes: tuple[Box, ...] = ()
