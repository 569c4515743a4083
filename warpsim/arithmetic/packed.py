"""Two 16-bit values in one 32-bit register: the first element in the low half."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpsim.arithmetic.formats import Bits, Mask


def halves(a: Bits) -> tuple[Bits, Bits]:
    """(low, high) as uint16."""
    return (a & np.uint32(0xFFFF)).astype(np.uint16), (a >> np.uint32(16)).astype(np.uint16)


def join(low: Bits, high: Bits) -> Bits:
    return low.astype(np.uint32) | (high.astype(np.uint32) << np.uint32(16))


def packed(operation: Callable[..., Bits], *operands: Bits, **modifiers: Any) -> Bits:
    """Applies a 16-bit operation to both halves of uint32 operands."""
    lows, highs = zip(*map(halves, operands), strict=True)
    return join(operation(*lows, **modifiers), operation(*highs, **modifiers))


def packed_bool(
    operation: Callable[..., Mask], a: Bits, b: Bits, *arguments: Any, **modifiers: Any
) -> tuple[Mask, Mask]:
    """A 16-bit comparison of both halves: (low, high)."""
    (a_low, a_high), (b_low, b_high) = halves(a), halves(b)
    return (
        operation(a_low, b_low, *arguments, **modifiers),
        operation(a_high, b_high, *arguments, **modifiers),
    )
