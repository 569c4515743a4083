"""Loads and stores of one memory in compiled code (compiled/access.cpp), where nothing is amiss."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from warpsim import compiled
from warpsim.machine.checks.races import Races
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.forms import MEMORIES
from warpsim.machine.core.native_layout import MemoryLayout, WarpsLayout
from warpsim.machine.core.warps import Warps
from warpsim.machine.counts.access import AccessCost, AccessKind
from warpsim.machine.counts.tally import Tally
from warpsim.machine.memory.arena import SCRATCH_BYTES, Arena
from warpsim.machine.memory.tma import CHUNK_BYTES

_OBJECT, _INT, _LONG, _POINTER = ctypes.py_object, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
_MATRICES = (_POINTER, _POINTER, _OBJECT, _INT, _LONG, _INT, _INT, _OBJECT, _INT)
_READ_CHUNKS = (_POINTER, _OBJECT, _LONG, _OBJECT, _LONG, _OBJECT, _OBJECT, _LONG, _OBJECT)
_READ_PIECES = (*_READ_CHUNKS[:3], _LONG, *_READ_CHUNKS[3:])
_WRITE_CHUNKS = (_POINTER, _OBJECT, _LONG, _LONG, _OBJECT, _LONG, _LONG, _OBJECT)
_COMMON = (_POINTER, _POINTER, _OBJECT, _INT, _OBJECT, _INT, _LONG, _INT)


LOADS, STORES, RACES = 1, 8, 64
"""Bits of what Python has to look at, of the first memory: kx::Call has them of all."""

Bounds: TypeAlias = Callable[[Warps], tuple[Array, Array, int]]
"""Of a set of warps: what makes its addresses arena offsets, the first offset that is allowed, both
int64 [n]; the bytes from there that are."""


class FastAccess:
    """One memory. A load or a store that Python has to look at is declined and changes nothing."""

    def __init__(
        self,
        races: Races,
        bounds: Bounds,
        tally: Callable[[int], Tally],
        *,
        counts: bool,
        follows: bool,
    ) -> None:
        """counts: whether the costs of accesses are counted; follows: whether reads of what nobody
        wrote are looked for."""
        self.races = races
        self._counts = counts
        self._bounds = bounds
        self._tally = tally
        self._which = MEMORIES[races.space]
        history, arena, seen = races.history, races.arena, races.clocks.seen
        arrays = (arena.data, arena.state, history.written, history.read, history.pages, seen)
        self._memory = MemoryLayout(
            *(array.ctypes.data for array in (*arrays, history.uses)),
            *(len(arena.data), len(history.written), history.unit),
            *(history.peers, history.others, history.engines, history.earlier),
            *(seen.strides[0] // seen.itemsize, history.warps, history.ctas),
            *(history.first, history.before, races.space == "global"),
            *(not races.checks, not follows, not counts),
        )
        self.address = ctypes.addressof(self._memory)
        self._sets: dict[int, tuple[int, Any]] = {}
        """By the identity of a set: the address of its layout, and what that needs to live."""
        self._load = compiled.function("kx_load", *_COMMON, _INT, _INT, _OBJECT)
        self._store = compiled.function("kx_store", *_COMMON, _OBJECT, _INT)
        self._follows = compiled.function("kx_follows", *_COMMON, _INT)
        self._unused_since = compiled.function("kx_unused_since", *_COMMON)
        self._cost = compiled.function("kx_cost", _POINTER, *[_OBJECT] * 2, *[_INT] * 3)
        self._move_matrices = compiled.function("kx_move_matrices", *_MATRICES)
        self._read_chunks = compiled.function("kx_read_chunks", *_READ_CHUNKS)
        self._read_pieces = compiled.function("kx_read_pieces", *_READ_PIECES)
        self._write_chunks = compiled.function("kx_write_chunks", *_WRITE_CHUNKS)

    def is_plain(self) -> bool:
        """Whether no access so far has stood for another one."""
        return not (self.races.repeats.epochs or self.races.observed.epochs)

    def withheld(self) -> int:
        """What Python has to look at: LOADS, STORES, and RACES, those of both that race."""
        races = self.races
        if races.clocks.partial is not None:
            return LOADS | STORES
        loads = LOADS if races.is_formal else 0
        stores = STORES if races.looks_at_stores else 0
        return loads | stores | (RACES if races.looks_at_races else 0)

    def prepare(self, warps: Warps) -> int:
        """Lets a set of warps access the memory; the address of its layout. Sets live as the
        machine does."""
        prepared = self._sets.get(id(warps))
        if prepared is None:
            base, lower, extent = self._bounds(warps)
            columns = self.races.columns(warps)
            arrays = [
                np.ascontiguousarray(a, np.int64) for a in (base, lower, warps.warps, columns)
            ]
            warps_layout = WarpsLayout(
                *(array.ctypes.data for array in arrays), warps.count, extent, 0
            )
            prepared = self._sets[id(warps)] = (
                ctypes.addressof(warps_layout),
                (warps_layout, arrays),
            )
            warps.native.warps[self._which] = prepared[0]
        return prepared[0]

    def cost(self, offsets: Array, access: AccessKind, m: Mask) -> AccessCost:
        """Of an access that Python has done."""
        lanes = m if m is True else np.ascontiguousarray(m)
        pairs = access.pairs and not access.store
        offsets = np.ascontiguousarray(offsets)
        self._cost(self.address, offsets, lanes, m is not True, access.size, pairs)
        return AccessCost(*self._memory.cost)

    def _count(self, access: AccessKind) -> None:
        """Counts the access just done."""
        if access.counted and self._counts:
            self._tally(access.site.number).add(AccessCost(*self._memory.cost))

    def load(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> Array | None:
        """As Space.load; None if declined."""
        if access.relaxed or access.polls or self.withheld() & LOADS:
            return None
        shape = address.shape if access.elements == 1 else (*address.shape, access.elements)
        out = np.empty(shape, f"u{access.element}")
        declined = self._load(
            *(self.address, self.prepare(warps), address, address.itemsize, m, m is not True),
            *(self._stamp(access), access.size, access.pairs, access.coherent, out),
        )
        if declined:
            return None
        self._count(access)
        return out

    def store(
        self, warps: Warps, address: Array, values: Array, access: AccessKind, m: Mask
    ) -> bool:
        """As Space.store; False if declined."""
        if access.relaxed or self.withheld() & STORES or values.itemsize != access.element:
            return False
        declined = self._store(
            *(self.address, self.prepare(warps), address, address.itemsize, m, m is not True),
            *(self._stamp(access), access.size, values, access.element),
        )
        if not declined:
            self._count(access)
        return not declined

    def follows(self, warps: Warps, address: Array, access: AccessKind, m: Mask) -> bool:
        """Whether all writes of what an access would read, or all uses of what it would overwrite,
        are ordered before it; False also if declined."""
        if self.races.clocks.partial is not None:
            return False
        return not self._follows(
            *(self.address, self.prepare(warps), address, address.itemsize, m, m is not True),
            *(self._stamp(access), access.size, access.store),
        )

    def unused_since(
        self, warps: Warps, address: Array, access: AccessKind, m: Mask, begun: int
    ) -> bool:
        """Whether no thread has used what an access overwrites since a time, as far as the first
        word of each lane tells; False also if declined."""
        return not self._unused_since(
            *(self.address, self.prepare(warps), address, address.itemsize, m, m is not True),
            *(begun, access.size),
        )

    def load_matrices(
        self, warps: Warps, address: Array, count: int, transposed: bool, access: AccessKind
    ) -> Array | None:
        """As MatrixAccess.load; None if declined."""
        out = np.empty((len(address), count, 32), np.uint32)
        declined = self._move_matrices(
            *(self.address, self.prepare(warps), address, address.itemsize),
            *(self._stamp(access), count, transposed, out, False),
        )
        if declined:
            return None
        self._count(access)
        return out

    def store_matrices(
        self,
        warps: Warps,
        address: Array,
        count: int,
        transposed: bool,
        values: Array,
        access: AccessKind,
    ) -> bool:
        """As MatrixAccess.store; False if declined."""
        values = np.ascontiguousarray(values, np.uint32)
        declined = self._move_matrices(
            *(self.address, self.prepare(warps), address, address.itemsize),
            *(self._stamp(access), count, transposed, values, True),
        )
        if not declined:
            self._count(access)
        return not declined

    # The copy engine: chunks of 16 bytes at `base` + each of `chunks` (int64 [n]), zeros or nothing
    # where that is negative

    def read_chunks(
        self, chunks: Array, base: int, issuer: Issuer, agent: int | None
    ) -> Array | None:
        """Their bytes, read as `agent`, or from memory that nobody writes to; None if declined."""
        races, out = self.races, np.empty(len(chunks) * CHUNK_BYTES, np.uint8)
        declined = self._read_chunks(
            *(self.address, chunks, base, issuer.seen, issuer.thread),
            *(issuer.fences[races.space], races.clocks.proxy[races.space].times),
            *(0 if agent is None else self._epoch(agent, issuer), out),
        )
        return None if declined else out

    def read_pieces(
        self, offsets: Array, base: int, width: int, issuer: Issuer, agent: int
    ) -> Array | None:
        """Pieces of `width` bytes at `base` + each of `offsets` [rows, n], as bytes [rows, n *
        width], read by the tensor core; None if declined.

        The first byte of a piece stands for all of it: what is stored in smaller parts by different
        threads is told apart by that one only.
        """
        races, out = self.races, np.empty((len(offsets), offsets.shape[1] * width), np.uint8)
        declined = self._read_pieces(
            *(self.address, offsets, base, width, issuer.seen, issuer.thread),
            *(issuer.fences[races.space], races.clocks.proxy[races.space].times),
            *(self._epoch(agent, issuer), out),
        )
        return None if declined else out

    def write_chunks(
        self, chunks: Array, base: int, extent: int, data: Array, issuer: Issuer, agent: int
    ) -> bool:
        """Writes uint8 `data` as `agent`, with no mbarrier in `extent` bytes from `base` on; False
        if declined."""
        declined = self._write_chunks(
            *(self.address, chunks, base, extent),
            *(issuer.seen, issuer.thread, self._epoch(agent, issuer), data),
        )
        return not declined

    def _stamp(self, access: AccessKind) -> int:
        return self.races.clocks.stamp(access.site.number)

    def _epoch(self, agent: int, issuer: Issuer) -> int:
        return self.races.clocks.stamp(issuer.site.number) | agent << 5


class LocalAccess:
    """Local memory, which nobody else reads or writes, for the interpreter."""

    def __init__(self, arena: Arena, size: int, *, follows: bool) -> None:
        """size: bytes of a thread, one after the other from the end of the scratch bytes on."""
        data, state = arena.data.ctypes.data, arena.state.ctypes.data
        self._size = size
        self._memory = MemoryLayout(data=data, state=state, size=len(arena.data), unit=1)
        self._uses = np.zeros(1, np.int64)
        self._memory.uses = self._uses.ctypes.data
        self.address = ctypes.addressof(self._memory)
        self._memory.unordered, self._memory.unread, self._memory.uncounted = 1, not follows, 1
        self._sets: dict[int, tuple[WarpsLayout, list[Array]]] = {}

    def is_plain(self) -> bool:
        return True

    def withheld(self) -> int:
        return 0

    def prepare(self, warps: Warps) -> None:
        """Lets a set of warps access the memory. Sets live as the machine does."""
        if id(warps) in self._sets:
            return
        first = SCRATCH_BYTES + warps.warps.astype(np.int64) * 32 * self._size
        arrays = [first, np.ascontiguousarray(warps.warps, np.int64)]
        base, places = (array.ctypes.data for array in arrays)
        layout = WarpsLayout(base, base, places, places, warps.count, self._size, self._size)
        self._sets[id(warps)] = layout, arrays
        warps.native.warps[MEMORIES["local"]] = ctypes.addressof(layout)
