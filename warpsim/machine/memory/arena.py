"""Bytes with a state each: outside every object, never written, written, constant."""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.site import UnsupportedInstruction

OUTSIDE, UNWRITTEN, WRITTEN, CONSTANT, BARRIER = 0, 1, 2, 6, 10
"""States of a byte. WRITTEN's bit is set in CONSTANT and in BARRIER (an mbarrier lies there) too:
they may be read."""

# Unwritten memory reads as NaN in FP8 (E4M3 and E5M2), f16, bf16 and f32.
POISON_BYTE = 0xFF
SCRATCH_BYTES = 64
"""The first bytes belong to nobody: inactive lanes are pointed at them."""

_UINT = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Arena:
    """One array of bytes for all memories of a kind, so that one gather serves many CTAs."""

    def __init__(self, size: int) -> None:
        size = SCRATCH_BYTES + -(-size // 64) * 64
        try:
            self.data = np.full(size, POISON_BYTE, np.uint8)
            self.state = np.zeros(size, np.uint8)
        except (MemoryError, ValueError):  # a ValueError from 2^63 bytes on
            words = f"needs a memory of {size:,} bytes, more than this machine has to give."
            raise UnsupportedInstruction(f"the program {words}") from None
        self.state[:SCRATCH_BYTES] = WRITTEN
        self._views: dict[tuple[int, int], Array] = {}
        self._states: dict[int, Array] = {}

    def view(self, element: int, count: int) -> Array:
        """The data as [size / (element * count), count] of unsigned elements."""
        key = (element, count)
        if key not in self._views:
            view = self.data.view(_UINT[element])
            self._views[key] = view if count == 1 else view.reshape(-1, count)
        return self._views[key]

    def states(self, size: int) -> Array:
        """The states as elements of `size` bytes (an extra axis of 8-byte words beyond 8)."""
        if size not in self._states:
            view = self.state.view(_UINT[min(size, 8)])
            self._states[size] = view.reshape(-1, size // 8) if size > 8 else view
        return self._states[size]

    def allocate(self, offset: int, size: int, state: int) -> None:
        """Bytes [offset, offset + size) get `state`; unwritten ones read as poison."""
        self.state[offset : offset + size] = state
        if state == UNWRITTEN:
            self.data[offset : offset + size] = POISON_BYTE

    def readable(self, offsets: Array, size: int) -> bool:
        """Whether every byte of every access has been written."""
        want = self.states(size).dtype.type(_pattern(WRITTEN, size))
        return bool(((self.states(size)[offsets // size] & want) == want).all())

    def gather(self, offsets: Array, element: int, count: int) -> Array:
        return self.view(element, count)[offsets // (element * count)]

    def scatter(self, offsets: Array, values: Array, element: int, count: int) -> None:
        size = element * count
        index = offsets // size
        self.view(element, count)[index] = values
        self.states(size)[index] = _pattern(WRITTEN, size)


def _pattern(state: int, size: int) -> np.uint64:
    return np.uint64(int.from_bytes(bytes([state]) * min(size, 8), "little"))
