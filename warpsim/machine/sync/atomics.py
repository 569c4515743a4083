"""Atomic updates of memory: lanes one after the other, in lane order."""

from __future__ import annotations

import ctypes

import numpy as np

from warpsim import compiled
from warpsim.arithmetic.reductions import Combine
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.memory.arena import Arena
from warpsim.machine.wave.machine import WarpSet
from warpsim.machine.wave.spaces import Memory, Space


def update(
    warps: WarpSet,
    memory: Memory,
    addresses: Array,
    operands: list[Array],
    function: Combine | None,
    access: AccessKind,
    m: Mask,
    *,
    relaxed: bool,
    narrow: bool = False,
    sure: bool = True,
    acquires: bool = True,
) -> Array:
    """The old values; `function` None swaps in the second operand where the first is the old value.

    relaxed: it hands over only what fences have made visible before it. narrow: its scope is the
        CTA. acquires: somebody learns from the old value what others did. sure: it says so.
    """
    flags = warps.machine.flags
    flags.release(warps, addresses, m, relaxed=relaxed, narrow=narrow)
    old = np.zeros((warps.count, 32), operands[0].dtype)
    for space, within, lanes in memory.parts(addresses, m):
        placed = _checked(warps, space, within, access, lanes)
        if placed is not None:
            _sequence(space.arena, *placed, operands, function, old)
            if space.polled and (len(operands) == 2 or "exch" in access.site.opcode.lower()):
                lanes = warps.active(placed[1]) & _swaps(operands, old)
                warps.machine.polls.swapped(space.polled, warps, placed[0], access.site, lanes)
    if acquires or sure:
        flags.acquire(warps, addresses, m, narrow=narrow, sure=sure)
    return old


def _swaps(operands: list[Array], old: Array) -> Array:
    """Which lanes have changed a word by a swap, or by a compare and swap."""
    if len(operands) == 1:
        return old != operands[0]
    return (old == operands[0]) & (operands[1] != old)


def _checked(
    warps: WarpSet, space: Space, address: Array, access: AccessKind, m: Mask
) -> tuple[Array, Mask] | None:
    """Arena offsets and lanes of an update, as Space.within() gives them."""

    def check(offsets: Array, m: Mask) -> None:
        space.update_check(warps, offsets, access, m)

    return space.within(warps, address, access, m, check)


def reduce(
    warps: WarpSet,
    memory: Memory,
    addresses: Array,
    values: Array,
    function: Combine,
    access: AccessKind,
    m: Mask,
) -> None:
    """An update that lands later than it was issued: it releases and acquires nothing."""
    old = np.zeros((warps.count, 32), values.dtype)
    for space, within, lanes in memory.parts(addresses, m):
        placed = _checked(warps, space, within, access, lanes)
        if placed is not None:
            _sequence(space.arena, *placed, [values], function, old)


def _sequence(
    arena: Arena,
    offsets: Array,
    lanes: Mask,
    operands: list[Array],
    function: Combine | None,
    old: Array,
) -> None:
    """Lanes with different addresses at once, lanes with the same one after the other."""
    if compiled.is_loaded() and _compiled_sequence(arena, offsets, lanes, operands, function, old):
        return
    view = arena.view(old.itemsize, 1)
    index = (offsets // old.itemsize).ravel()
    rest = np.arange(index.size) if lanes is True else np.flatnonzero(lanes)
    flat, out = [operand.ravel() for operand in operands], old.reshape(-1)
    if function is None:
        _swap(view, index, rest, flat, out)
        return
    while len(rest):
        _, first = np.unique(index[rest], return_index=True)
        now = rest[np.sort(first)]
        before = view[index[now]]
        out[now] = before
        view[index[now]] = function(before, flat[0][now])
        rest = np.setdiff1d(rest, now, assume_unique=True)


_UPDATE = (ctypes.c_char_p, *[ctypes.py_object] * 3, ctypes.c_int, ctypes.c_int64)


def _compiled_sequence(
    arena: Arena,
    offsets: Array,
    lanes: Mask,
    operands: list[Array],
    function: Combine | None,
    old: Array,
) -> bool:
    """The same in compiled code; False if that does not have the function."""
    name = f"cas.b{8 * old.itemsize}" if function is None else function.name
    first, last = (np.ascontiguousarray(operand) for operand in (operands[0], operands[-1]))
    lanes = lanes if lanes is True else np.ascontiguousarray(lanes)
    declined = compiled.function("kx_update", *_UPDATE, *[ctypes.py_object] * 3)(
        *(name.encode(), arena.data, np.ascontiguousarray(offsets), lanes, lanes is not True),
        *(old.size, first, last, old),
    )
    return not declined


def _swap(view: Array, index: Array, lanes: Array, operands: list[Array], out: Array) -> None:
    """Compare and swap: lanes that spin on one lock come one by one, and plain numbers are fast."""
    wanted, new = operands
    for lane in lanes.tolist():
        at = index[lane]
        out[lane] = before = view[at]
        if before == wanted[lane]:
            view[at] = new[lane]


def update_pair(
    warps: WarpSet,
    memory: Memory,
    addresses: Array,
    operands: list[Array],
    access: AccessKind,
    m: Mask,
    *,
    relaxed: bool,
) -> Array:
    """16 bytes at once, [n, 32, 2]: swaps in the last operand, if there are two only where the
    first is the old value. The old values."""
    flags = warps.machine.flags
    flags.release(warps, addresses, m, relaxed=relaxed)
    old = np.zeros((warps.count, 32, 2), np.uint64)
    for space, within, lanes in memory.parts(addresses, m):
        placed = _checked(warps, space, within, access, lanes)
        if placed is None:
            continue
        offsets, lanes = placed
        view = space.arena.view(8, 2)
        for row, lane in np.argwhere(warps.active(lanes)):
            at = offsets[row, lane] // access.size
            old[row, lane] = view[at]
            if len(operands) == 1 or (old[row, lane] == operands[0][row, lane]).all():
                view[at] = operands[-1][row, lane]
    flags.acquire(warps, addresses, m)
    return old
