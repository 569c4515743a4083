"""Warps as fragments: lanes that stand at the same instruction, and where they meet again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelexp.emulator.slots import Array

ALL = 0xFFFF_FFFF
_BITS = np.arange(32, dtype=np.uint32)


class Meeting:
    """A place where the lanes of a divergent branch come together again (BSSY and BSYNC)."""

    __slots__ = ("arrived", "expected", "pc")

    def __init__(self, pc: int, expected: int) -> None:
        self.pc = pc
        self.expected = expected
        self.arrived = 0


@dataclass(slots=True, eq=False)
class Fragment:
    """Lanes of one warp with a common program counter."""

    warp: int
    mask: int
    pc: int
    meetings: tuple[Meeting, ...] = ()
    waiting: Any = None
    """What a blocking instruction left for itself while the fragment waits."""
    polls: dict[int, int] = field(default_factory=dict)
    """Phase last seen by a try_wait that returned false, by its PC."""

    def same_place(self, other: Fragment) -> bool:
        return self.meetings == other.meetings


class WarpSet:
    """Warps at consecutive places of the register file, with what instructions need of them."""

    def __init__(self, rows: list[Array], warps: Array, ctas: Array) -> None:
        self.count = len(warps)
        self.R = rows
        self.warps = warps
        """Places in the register file, [n]."""
        self.warps_column = warps[:, None]
        self.threads = (warps[:, None] * 32 + np.arange(32)).astype(np.int32)
        self.ctas = ctas
        """Resident CTA of each warp, [n]."""
        self.machine: Any = None
        self.shared: Array
        """What turns a shared-memory address into an arena offset, int64 [n, 1]."""
        self.shared_base: Array
        """Arena offset of the CTA's shared memory, int64 [n, 1]."""
        self.local: Array
        """Arena offset of each thread's local memory, int64 [n, 32]."""
        self.predicated: dict[int, tuple[int, int]] = {}
        """(warps with an active lane, active lanes) of guarded instructions, by their number."""

    def note(self, number: int, warps: int, lanes: int) -> None:
        """Counts an execution of a guarded instruction."""
        old = self.predicated.get(number, (0, 0))
        self.predicated[number] = (old[0] + warps, old[1] + lanes)


class Batch:
    """Fragments at one instruction whose warps form a WarpSet."""

    __slots__ = ("fragments", "lanes", "mask", "meets", "set")

    def __init__(self, warps: WarpSet, fragments: list[Fragment]) -> None:
        self.set = warps
        self.fragments = fragments
        masks = [fragment.mask for fragment in fragments]
        self.meets = any(fragment.meetings for fragment in fragments)
        if all(mask == ALL for mask in masks):
            self.mask: Array | bool = True
            self.lanes = 32 * len(masks)
        else:
            self.mask = expand(masks)
            self.lanes = sum(mask.bit_count() for mask in masks)


def expand(masks: list[int]) -> Array:
    """Lane masks to bool [n, 32]."""
    result: Array = (np.array(masks, np.uint32)[:, None] >> _BITS & 1).astype(bool)
    return result


def pack(rows: Array) -> list[int]:
    """bool [n, 32] to lane masks."""
    packed: list[int] = np.packbits(rows, axis=1, bitorder="little").view(np.uint32)[:, 0].tolist()
    return packed
