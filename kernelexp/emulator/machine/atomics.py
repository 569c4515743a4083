"""Atomic updates of memory: lanes one after the other, in lane order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelexp.emulator.machine.access import Access
from kernelexp.emulator.machine.arena import Arena
from kernelexp.emulator.machine.arrays import Array, Mask
from kernelexp.emulator.machine.machine import WarpSet
from kernelexp.emulator.machine.spaces import Memory


def update(
    warps: WarpSet,
    memory: Memory,
    addresses: Array,
    operands: list[Array],
    function: Callable[[Array, Array], Array] | None,
    access: Access,
    m: Mask,
    *,
    relaxed: bool,
) -> Array:
    """The old values; `function` None swaps in the second operand where the first is the old value.

    relaxed: it hands over only what fences have made visible before it.
    """
    flags = warps.machine.flags
    flags.release(warps, addresses, m, relaxed=relaxed)
    old = np.zeros((warps.count, 32), operands[0].dtype)
    for space, within, lanes in memory.parts(addresses, m):
        offsets = space.offsets(warps, within, access, lanes)
        space.update_check(warps, offsets, access, lanes)
        _sequence(space.arena, offsets, lanes, operands, function, old)
    flags.acquire(warps, addresses, m)
    return old


def _sequence(
    arena: Arena,
    offsets: Array,
    lanes: Mask,
    operands: list[Array],
    function: Callable[[Array, Array], Array] | None,
    old: Array,
) -> None:
    """Lanes with different addresses at once, lanes with the same one after the other."""
    view = arena.view(old.itemsize, 1)
    index = (offsets // old.itemsize).ravel()
    rest = np.arange(index.size) if lanes is True else np.flatnonzero(lanes)
    flat, out = [operand.ravel() for operand in operands], old.reshape(-1)
    while len(rest):
        _, first = np.unique(index[rest], return_index=True)
        now = rest[np.sort(first)]
        before = view[index[now]]
        out[now] = before
        if function is None:
            after = np.where(before == flat[0][now], flat[1][now], before)
        else:
            after = function(before, flat[0][now])
        view[index[now]] = after
        rest = np.setdiff1d(rest, now, assume_unique=True)
