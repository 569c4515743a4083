"""Values read from memory that was never written: harmless until something depends on them.

A load marks its registers. From then on, until no register is marked any more, each instruction
hands the marks on: a copy stays a copy, what is computed from a mark is marked as computed. It is a
finding if a marked value decides a branch, is an address, goes where it can't be followed, or if a
computed one is stored to global memory, or by one store nothing but copies. Stores of other marked
values leave memory unwritten: of a record that is copied, the padding is.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.bitmarks import marks_of_bits
from warpsim.machine.core.marked_products import multiplied
from warpsim.machine.core.marks import COMPUTED, LOADED, NINTH, Marks, Origin
from warpsim.machine.core.registers import SlotTable
from warpsim.machine.core.site import Site
from warpsim.machine.core.warps import Warps
from warpsim.machine.memory.arena import UNWRITTEN
from warpsim.machine.memory.layout import OFFSET_MASK, RANK_SHIFT
from warpsim.machine.memory.residents import Residents

_GLOBAL = LOADED.index("global")
_OWN = ("shared", "local", "cluster shared")
"""Memories whose content comes from elsewhere."""
_NONE, _VALUE = np.uint16(0), np.uint16(0xFF)
_REMEMBERED, _HANDS = 256, 8
"""Stores of marked values to shared memory, and how many times a value is followed back."""
_LANE_BITS = np.uint32(1) << np.arange(32, dtype=np.uint32)


class SlotUses(NamedTuple):
    """Slots that an instruction uses."""

    reads: tuple[int, ...]
    decides: tuple[int, ...]
    """Addresses and guards."""
    writes: tuple[int, ...]
    copies: bool
    """Whether it moves bits as they are: mov, ld, st."""
    selects: bool = False
    """Whether its third operand picks one of the first two: selp."""
    stem: str = ""
    """What it does with bits, for operations that leave some of them as they are: "and", "shr"."""
    updates: bool = False
    """Whether it is an atomic that computes with what it reads."""
    multiplies: tuple[int, int, int] = (0, 0, 0)
    """Of mma.sync: how many of the registers that it reads hold A, B and C, which are the last."""
    guard: tuple[int, bool] | None = None
    """The slot of its guard, and whether that is negated."""
    lanes: Callable[[list[Array]], Array] | None = None
    """Of a shuffle: the lanes, [n, 32], whose first operand its first result is."""
    members: int | None = None
    """Of a reduction over a warp's first operands: the slot of its member mask."""
    absorbed: tuple[int, bool] | None = None
    """A predicate that it reads, and at which value of that nothing else matters."""


class Expected(NamedTuple):
    """A load whose registers nobody may read before its wait."""

    names: frozenset[str]
    """Of the registers."""
    site: Site
    early: Callable[[], None]
    """Called when one is read before."""


class Undefined:
    """What becomes of marked registers, and the registers of loads that have yet to arrive."""

    def __init__(self, residents: Residents, table: SlotTable, warps: int) -> None:
        self._residents = residents
        self._table = table
        self._names = table.names
        self.marks = Marks(table, warps)
        self._stored: list[tuple[Array, Origin]] = []
        """Arena offsets of marked bytes that were stored to global memory."""
        self._handed_on: deque[tuple[Array, Origin]] = deque(maxlen=_REMEMBERED)
        """The same of the last stores to a CTA's memory."""
        self.uses: list[SlotUses] = []
        """By instruction."""
        self.sites: list[Site] = []
        """Those of the instructions."""
        self._expected: dict[int, list[Expected]] = {}
        """By place."""
        self._loading: Counter[frozenset[str]] = Counter()
        """How many of these are of the same registers."""
        self._loaded: dict[int, frozenset[str]] = {}
        """The registers that a load fills, by its number."""
        self._slots: dict[frozenset[str], Array] = {}
        """Of the registers of a load."""
        self._storing: list[tuple[Array, Origin]] = []

    @property
    def live(self) -> bool:
        """Whether any register is marked or expected."""
        return bool(self.marks.layout.total or self._expected)

    @property
    def storing(self) -> list[tuple[Array, Origin]]:
        """Marks of the elements that the store at hand stores, [n, 32] each."""
        return self._storing if self._storing and self.marks.any() else []

    def load(self, site: Site, warps: Warps, unwritten: Array, origin: Origin) -> bool:
        """Marks what a load has read, [n, 32, elements, bytes]; False if it can't be followed."""
        writes = self._written_by(site)
        if not writes:
            return False
        marks = np.packbits(unwritten, axis=-1, bitorder="little")[..., 0].astype(np.uint16)
        for index, slot in enumerate(writes):
            exact = len(writes) == unwritten.shape[2]
            lanes = marks[..., index] if exact else np.where(marks.any(axis=-1), COMPUTED, 0)
            self.marks.put(slot, warps, lanes != 0, lanes.astype(np.uint16), origin)
        return True

    def shuffled(self, site: Site, warps: Warps, absent: Array, origin: Origin) -> None:
        """Marks what a shuffle has taken from lanes that give nothing, [n, 32]."""
        for slot in self._written_by(site)[:1]:
            self.marks.put(slot, warps, absent, _VALUE, origin)

    def _written_by(self, site: Site) -> tuple[int, ...]:
        """The slots that an instruction writes; none if it can't be followed."""
        return self.uses[site.number].writes if site.number < len(self.uses) else ()

    def before(self, number: int, R: list[Array], warps: Warps, m: Mask) -> None:
        """An instruction is about to be executed: hands marks on, reports what depends on them."""
        uses, known = self.uses[number], self.marks
        self._storing = []
        if self._expected:
            self._early(uses, warps)
        if not known.any():  # as a rule, while a load of tensor memory is waited for
            return
        active = self._guarded(uses, R, warps, m)
        marks = [known.read(slot, warps) for slot in uses.reads]
        if uses.lanes is not None and marks[0] is not None:
            marks[0] = np.take_along_axis(marks[0], uses.lanes(R), axis=1)
        if uses.members is not None and marks[0] is not None:
            marks[0] = _of_any(marks[0], active, R[uses.members])
        pairs = zip(uses.reads, marks, strict=True)
        answer = next((s for s, x in pairs if x is not None and (x[active] != 0).any()), None)
        if not uses.writes:
            self._sink(uses, marks, answer)
            return
        if uses.updates and answer is not None:
            self._report(known.origin(answer), "is combined with memory by an atomic")
            marks, answer = [None] * len(marks), None
        if answer is None and not any(known.known(slot) for slot in uses.writes):
            return
        mixed = self._results(uses, marks, R, warps.count)
        for slot, result in zip(uses.writes, mixed, strict=True):
            if answer is not None or known.known(slot):
                origin = known.origin(slot if answer is None else answer)
                known.put(slot, warps, active, result, origin)

    def _guarded(self, uses: SlotUses, R: list[Array], warps: Warps, m: Mask) -> Array:
        """The active lanes for which a guard holds; neither that nor an address may be marked."""
        how, active = "is an address or a guard", warps.active(m)
        guard, negated = uses.guard or (-1, False)
        if guard >= 0:
            self.decides(guard, warps, m, how)
            active = active & (R[guard] != negated)
        for slot in uses.decides:
            if slot != guard:
                self.decides(slot, warps, active, how)
        return active

    def _results(
        self, uses: SlotUses, marks: list[Array | None], R: list[Array], count: int
    ) -> list[Array]:
        """The marks of each register that an instruction writes."""
        if uses.lanes is not None:
            mixed = self._mixed(uses, marks, R, (count, 32))
            return [mixed, self._mixed(uses, marks[1:], R, (count, 32))][: len(uses.writes)]
        if not any(uses.multiplies):
            mixed = self._mixed(uses, marks, R, (count, 32))
            if uses.absorbed is not None:
                slot, value = uses.absorbed
                mixed[R[slot] == value] = 0
            return [mixed] * len(uses.writes)
        every = [np.zeros((count, 32), np.uint16) if x is None else x for x in marks]
        products = multiplied(every, *uses.multiplies, len(uses.writes))
        return [np.where(marked, COMPUTED, np.uint16(0)) for marked in products]

    def _mixed(
        self, uses: SlotUses, marks: list[Array | None], R: list[Array], shape: tuple[int, int]
    ) -> Array:
        """The marks of a result."""
        none = np.zeros(shape, np.uint16)
        every = [none if x is None else x for x in marks]
        if uses.selects:
            first, second, picks = every
            return np.where(picks != 0, COMPUTED, np.where(R[uses.reads[2]], first, second))
        if uses.copies:
            return np.bitwise_or.reduce(every, axis=0) if every else none
        moved = marks_of_bits(uses.stem, every, [R[slot] for slot in uses.reads])
        if moved is None:
            moved = np.where(np.any(every, axis=0), 0xFF, 0).astype(np.uint16) if every else none
        return np.where(moved != 0, moved | NINTH, 0).astype(np.uint16)

    def _sink(self, uses: SlotUses, marks: list[Array | None], found: int | None) -> None:
        """Of an instruction that writes no register."""
        if found is None:
            return
        origin = self.marks.origin(found)
        if uses.copies:
            none = np.zeros(1, np.uint16)
            self._storing = [(none if x is None else x, origin) for x in marks]
        else:
            self._report(origin, "is used")

    def decides(self, slot: int, warps: Warps, m: Mask, how: str) -> None:
        """A finding if a value on which something depends is marked."""
        marks = self.marks.of(slot, warps)
        if marks is None:
            return
        active = warps.active(m)
        if marks[active].any():
            origin = self.marks.origin(slot)
            self._report(origin, how)
            self.marks.put(slot, warps, active, _NONE, origin)

    def store(self, offsets: Array, element: int, m: Mask, state: Array, into_global: bool) -> None:
        """After a store of marked values: what it leaves unwritten, or makes of them."""
        storing, self._storing = self._storing, []
        whole = _whole(storing, element) if into_global else None
        for index, (marks, origin) in enumerate(storing):
            every = np.broadcast_to(marks, offsets.shape)
            marked = (every != 0) if m is True else (every != 0) & m
            if not marked.any():
                continue
            if into_global and (every[marked] & NINTH).any():
                self._report(origin, "is computed with, and the result stored to global memory")
                continue
            at = offsets[marked][:, None] + index * element + np.arange(element)
            chosen = (every[marked][:, None] >> np.arange(element) & 1).astype(bool)
            state[at[chosen]] = UNWRITTEN
            if whole is None:
                self._handed_on.append((at[chosen], origin))
            else:
                chosen &= np.broadcast_to(whole, marked.shape)[marked][:, None]
                self._stored.append((at[chosen], origin))

    def expect(self, site: Site, slots: list[int], place: int, early: Callable[[], None]) -> None:
        """A warp has issued a load of these registers, for which it has to wait; `early` is called
        when it reads one of them before."""
        names = self._loaded.get(site.number)
        if names is None:
            names = frozenset(self._names[slot] for slot in slots if self._names[slot])
            self._loaded[site.number] = names
            known = self._table.slots_of
            self._slots[names] = np.array([slot for name in names for slot in known[name]], int)
        self._expected.setdefault(place, []).append(Expected(names, site, early))
        if not self._loading[names]:
            self.marks.expect(self._slots[names], 1)
        self._loading[names] += 1

    def arrived(self, place: int) -> None:
        """The warp has waited for all of its loads."""
        for load in self._expected.pop(place, ()):
            self._loading[load.names] -= 1
            if not self._loading[load.names]:
                self.marks.expect(self._slots[load.names], -1)
                del self._loading[load.names]

    def _early(self, uses: SlotUses, warps: Warps) -> None:
        for slot in (*uses.reads, *uses.decides):
            name = self._names[slot]
            if not any(name in names for names in self._loading):
                continue
            for place in warps.warps.tolist():
                loads = self._expected.get(place, ())
                load = next((load for load in reversed(loads) if name in load.names), None)
                if load is not None:
                    sentence = "a register of this load is read before tcgen05.wait::ld."
                    self._residents.report("early-tmem-read", sentence, load.site, place)
                    load.early()

    def finish(self, state: Array) -> None:
        """At the end: what global memory has got and kept."""
        for offsets, origin in self._stored:
            if (state[offsets] == UNWRITTEN).any():
                self._report(origin, "is stored to global memory")

    def _report(self, origin: Origin, how: str) -> None:
        first = self._first(origin)
        read, site = self.sentence(first), self.sites[first.site]
        if first != origin:
            byte = self._residents.byte_at(LOADED[origin.loaded], origin.address)
            where = self.sites[origin.site].where()
            read += f"; it was stored to {byte or f'{origin.address:#x}'}, read at {where}"
        self._residents.report(first.finding(), f"{read}, and the value {how}.", site, first.place)

    def _first(self, origin: Origin) -> Origin:
        """The load of what nobody wrote, where shared memory was only handed what came from it."""
        for _ in range(_HANDS):
            if not LOADED[origin.loaded].endswith("shared"):
                break
            residents = self._residents
            cta = residents.cta_of(origin.place).place
            cta += (origin.address >> RANK_SHIFT) - cta % residents.cluster_size
            at = residents.arena_offset(cta, origin.address & OFFSET_MASK)
            earlier = (known for offsets, known in reversed(self._handed_on) if at in offsets)
            before = next(earlier, None)
            if before is None or before == origin:
                break
            origin = before
        return origin

    def sentence(self, origin: Origin) -> str:
        """What was read. Memory of a CTA, or of a thread, may have been written with a copy of what
        nobody wrote: it stays unwritten then."""
        residents, element = self._residents, self.sites[origin.site].element
        place = residents.byte_at(LOADED[origin.loaded], origin.address, element)
        who = residents.thread_name(32 * origin.place + origin.lane)
        read = origin.sentence(who, place)
        copied = self.marks.first_of(_GLOBAL)
        if LOADED[origin.loaded] not in _OWN or copied is None:
            return read
        byte = self._residents.byte_at(LOADED[_GLOBAL], copied.address)
        what = byte or f"global address {copied.address:#x}"
        where = self.sites[copied.site].where()
        return f"{read} or only with a copy of what nobody wrote: {what}, read at {where}"


def _whole(storing: list[tuple[Array, Origin]], element: int) -> Array:
    """For which lanes nothing of what they store was ever written. Where a part was, the rest may
    be padding: nvcc copies records word by word, and several words at once."""
    full = (1 << min(element, 8)) - 1
    return np.bitwise_and.reduce(
        np.broadcast_arrays(*((marks & full) == full for marks, _ in storing)), axis=0
    )


def _of_any(marks: Array, active: Array, members: Array) -> Array:
    """What each lane gets from the lanes that its member mask names, if any of them is marked."""
    words = (((marks != 0) & active) * _LANE_BITS).sum(axis=1, dtype=np.uint32)
    return np.where(words[:, None] & members, COMPUTED, np.uint16(0))
