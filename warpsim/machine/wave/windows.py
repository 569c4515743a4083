"""Which memory a generic address leads to."""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.memory.layout import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RANK_SHIFT,
    SHARED_WINDOW,
    WINDOW_BITS,
)
from warpsim.machine.wave.machine import WarpSet

WINDOWS = {
    "shared": SHARED_WINDOW,
    "shared::cta": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "param": PARAM_WINDOW,
    "param::entry": PARAM_WINDOW,
    "global": 0,
    "const": 0,
}
"""Where the window of a memory begins, by PTX's name for it."""


def lies_in(warps: WarpSet, addresses: Array, space: str) -> Array:
    """Whether generic addresses, uint64 [warps, 32], lead to a memory; "shared": the CTA's own."""
    if space == "global":
        return addresses >= GLOBAL_BASE
    inside = addresses >> np.uint64(WINDOW_BITS) == WINDOWS[space] >> WINDOW_BITS
    if space in ("shared", "shared::cta"):
        rank = (addresses & np.uint64(0xFFFF_FFFF)) >> np.uint64(RANK_SHIFT)
        inside &= rank == (warps.ctas % warps.machine.cluster_size)[:, None]
    return inside
