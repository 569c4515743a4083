"""Bits taken for integers, and integers for bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.arithmetic.formats import Bits

SIGNED = {16: np.int16, 32: np.int32, 64: np.int64}
UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def typed(a: Bits, t: str) -> npt.NDArray[Any]:
    """The bits as the integers that type `t` takes them for."""
    return a.view(SIGNED[a.itemsize * 8]) if t[0] == "s" else a


def bits(a: npt.NDArray[Any]) -> Bits:
    """Integers back to bits of the same width."""
    return a.view(UNSIGNED[a.itemsize * 8])
