"""mbarriers: phase, pending arrivals, transaction count, and what their arrivals released."""

from __future__ import annotations

import ctypes

import numpy as np

from warpsim.machine.checks.neighbours import Neighbours
from warpsim.machine.core import mbarrier_words
from warpsim.machine.core.arrays import Array, Mask, sparse_zeros
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.clocks import Clocks
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.native_layout import MbarrierLayout
from warpsim.machine.core.site import Site
from warpsim.machine.core.warps import ALL, Warps, lanes_of, pack
from warpsim.machine.memory.arena import BARRIER, WRITTEN, Arena
from warpsim.machine.memory.layout import WINDOW, SharedLayout
from warpsim.machine.memory.residents import Cta, Residents

# PTX ISA, "mbarrier": the ranges of a count and of a transaction count.
MAX_COUNT = (1 << 20) - 1
MBARRIER_BYTES = 8
STATE_SHIFT = 20
"""A state is the phase above the pending count, as the arrival found them."""


class Mbarrier(MbarrierLayout):
    """One mbarrier object, which compiled code may change: it counts arrivals and bytes, and hands
    what those who arrive have seen to those who wait."""

    number: int
    """Of those that have been made."""
    place: int
    """Of the resident CTA that it lies in."""
    expected: int
    pending: int
    phase: int
    transactions: int
    made: int
    """The time of its init."""
    maker: int
    """The place of the warp that made it."""
    lost: bool
    """Whether it was overwritten."""
    flipped: int
    """Which of its rows is that of the current phase."""
    is_releasing: bool
    has_released: bool

    def __init__(
        self,
        number: int,
        cta: Cta,
        address: int,
        count: int,
        made: tuple[int, int],
        offset: int,
        clocks: Clocks,
        layout: SharedLayout,
    ) -> None:
        rows = np.zeros((2, 2 * clocks.agents), np.int64)
        super().__init__(number=number, place=cta.place, expected=count, pending=count)
        self.made, self.maker = made
        self.rows[0], self.rows[1] = rows.ctypes.data, rows[1:].ctypes.data
        self.cta = cta.number
        """CTA that it lies in."""
        self.address = address
        """Byte offset in that CTA's shared memory."""
        self.offset = offset
        """In the shared-memory arena."""
        self.agent = clocks.copy_agent(offset)
        """Of the clocks: that of the copies which signal it."""
        self.layout = layout
        """Of that CTA's shared memory."""
        self.fenced = False
        """Whether a fence after its init was seen: engines and other CTAs may use it."""
        self.overwritten = ""
        """Where a store or a copy has destroyed it."""
        self._rows = rows

    __hash__ = object.__hash__

    @property
    def released(self) -> Array | None:
        """What the arrivals of completed phases have seen: see Clocks."""
        row: Array = self._rows[1 - self.flipped]
        return row if self.has_released else None

    @property
    def name(self) -> str:
        """Where it lies, as findings name it."""
        return self.layout.spell(self.address)

    def state(self) -> int:
        return self.phase << STATE_SHIFT | self.pending

    def word(self) -> int:
        """The 64 bits that it is in shared memory."""
        return mbarrier_words.word(self.phase, self.pending, self.transactions, self.expected)

    def passed(self, parity: int) -> bool:
        """Whether the phase of this parity has completed, as try_wait.parity asks."""
        return (self.phase & 1) != parity

    def release(self, seen: Array) -> None:
        """An arrival, or an engine, hands over a row."""
        row = self._rows[self.flipped]
        if self.is_releasing:
            np.maximum(row, seen, out=row)
        else:
            row[:] = seen
        self.is_releasing = True

    def advance(self) -> bool:
        """Begins the next phase if nothing of this one is pending; whether it has."""
        if self.pending or self.transactions:
            return False
        self.phase += 1
        self.pending = self.expected
        if self.is_releasing and self.has_released:
            first, second = self._rows
            np.maximum(first, second, out=self._rows[1 - self.flipped])
        elif self.is_releasing:
            self.flipped, self.has_released = 1 - self.flipped, True
        self.is_releasing = False
        return True

    def busy(self) -> bool:
        """Whether its phase has begun."""
        return self.pending != self.expected or self.transactions != 0

    def describe(self) -> str:
        bytes_left = f"{self.transactions:,} bytes expected and not yet arrived"
        if self.transactions < 0:
            bytes_left = f"{-self.transactions:,} bytes more have arrived than were expected"
        return (
            f"mbarrier at {self.name} of CTA {self.cta}: phase {self.phase}, "
            f"{self.expected - self.pending} of {self.expected} arrived, {bytes_left}"
        )


class Mbarriers:
    """All mbarriers of the resident CTAs, by their offset in the shared-memory arena."""

    def __init__(
        self, residents: Residents, clocks: Clocks, shared: Arena, neighbours: Neighbours
    ) -> None:
        self.residents = residents
        self.neighbours = neighbours
        self.clocks = clocks
        self.shared = shared
        self.at: dict[int, Mbarrier] = {}
        self.every: list[Mbarrier] = []
        """All that have been made, by number."""
        self.table: Array | None = None
        """For compiled code: their addresses by offset / MBARRIER_BYTES; None while there is none.
        """
        self._known: dict[tuple[int, int], Mbarrier] = {}
        """By the place of a warp and an address: those of its own CTA that it may use."""

    def named(
        self, warps: Warps, m: Mask, addresses: Array, site: Site
    ) -> list[tuple[int, int, int, list[int]]]:
        """(row, place, address, lanes) for each mbarrier that lanes of each warp name."""
        named = []
        masks = [ALL] * warps.count if m is True else pack(m)
        for row, (place, mask) in enumerate(zip(warps.warps.tolist(), masks, strict=True)):
            if mask & mask - 1:
                groups: dict[int, list[int]] = {}
                every = addresses[row].tolist()
                for lane in lanes_of(mask):
                    groups.setdefault(every[lane] & WINDOW, []).append(lane)
                named += [(row, place, at, group) for at, group in groups.items()]
            elif mask:
                lane = mask.bit_length() - 1
                named.append((row, place, int(addresses[row, lane]) & WINDOW, [lane]))
        for _, place, at, _ in named:
            if at % MBARRIER_BYTES:
                self.residents.report(
                    "misaligned",
                    f"the mbarrier at shared {at:#x} is not aligned to {MBARRIER_BYTES} bytes.",
                    site,
                    place,
                )
        return named

    def init(self, place: int, address: int, count: int, site: Site, phase: int = 0) -> None:
        """`count` arrivals pending."""
        offset, cta, low = self.residents.shared_offset(place, address, site)
        if not self.shared.state[offset : offset + MBARRIER_BYTES].all():
            sentence = f"mbarrier.init at shared {address:#x}, outside the CTA's memory."
            self.residents.report("out-of-bounds", sentence, site, place)
            raise Fatal
        if not 1 <= count <= MAX_COUNT:
            self._misused(f"mbarrier.init with count {count}: it must be 1 to {MAX_COUNT}.", site)
        old = self.at.get(offset)
        if old is not None and not old.overwritten:
            if old.busy():
                self._misused(f"mbarrier.init of a barrier in use: {old.describe()}.", site)
            else:
                sentence = f"initialised again without mbarrier.inval: {old.describe()}."
                self.residents.report("missing-inval", sentence, site, place)
        self.provide(cta, low, count, (self.clocks.now, place))
        self.at[offset].phase = phase

    def provide(self, cta: int, low: int, count: int, made: tuple[int, int] = (0, 0)) -> None:
        """A new mbarrier at an offset in a resident CTA; made: the time, and the warp's place."""
        offset, home = self.residents.arena_offset(cta, low), self.residents.ctas[cta]
        self._known.clear()
        number, layout = len(self.every), self.residents.layout
        barrier = Mbarrier(number, home, low, count, made, offset, self.clocks, layout)
        self.at[offset] = barrier
        self.every.append(barrier)
        if self.table is None:
            self.table = sparse_zeros((len(self.shared.data) // MBARRIER_BYTES,), np.int64)
        self.table[offset // MBARRIER_BYTES] = ctypes.addressof(barrier)
        self.shared.state[offset : offset + MBARRIER_BYTES] = BARRIER

    def invalidate(self, place: int, address: int, site: Site) -> None:
        offset = self.residents.shared_offset(place, address, site)[0]
        self._known.clear()
        if self.at.pop(offset, None) is not None:
            assert self.table is not None
            self.table[offset // MBARRIER_BYTES] = 0
            self.shared.state[offset : offset + MBARRIER_BYTES] = WRITTEN

    def find(self, place: int, address: int, site: Site) -> Mbarrier | None:
        """The mbarrier at a shared address of a warp; a finding if there is none."""
        known = self._known.get((place, address))
        if known is not None:
            return known
        _, cta, low = self.residents.shared_offset(place, address, site)
        barrier = self.find_in(cta, low, site)
        if barrier is None:
            return None
        ordered = self._after_init(barrier, place, site)
        self.neighbours.use(place, cta, site)
        own = cta == self.residents.cta_of(place).place
        if own and ordered and not barrier.overwritten:
            self._known[place, address] = barrier
        return barrier

    def aim(self, place: int, cta: int, low: int, site: Site) -> None:
        """A warp has an engine signal the mbarrier at an offset in a resident CTA."""
        barrier = self.find_in(cta, low, site)
        if barrier is not None:
            self._after_init(barrier, place, site)
            self.neighbours.reach(place, cta, site)

    def _after_init(self, barrier: Mbarrier, place: int, site: Site) -> bool:
        """Whether a warp uses a barrier after its init; a finding if nothing orders that."""
        time, warp, clocks = barrier.made, barrier.maker, self.clocks
        seen = clocks.seen
        if place == warp or seen[place, warp] >= time:
            return True
        # fence.mbarrier_init lets relaxed operations carry the init.
        carried = seen[place, clocks.tensor_memory + warp] >= time
        if carried and clocks.fenced_init[warp] < time:
            # As CUTLASS has it for the barrier at which tensor memory is freed.
            self._unfenced(barrier, site)
        elif not carried:
            self._misused(
                f"the mbarrier at {barrier.name} is used by "
                f"{self.residents.warp_name(place)}, and nothing orders that after its init by "
                f"{self.residents.warp_name(warp)}.",
                site,
                barrier.cta,
            )
        return False

    def signalled(self, barrier: Mbarrier, site: Site) -> None:
        """A warning if an engine uses a barrier whose init was not fenced."""
        if barrier.fenced:
            return
        time, warp, clocks = barrier.made, barrier.maker, self.clocks
        fenced = max(clocks.fenced_init[warp], clocks.proxy["shared"].times[warp].max())
        barrier.fenced = bool(fenced >= time)
        if not barrier.fenced:
            self._unfenced(barrier, site)

    def _unfenced(self, barrier: Mbarrier, site: Site) -> None:
        self.residents.execution.findings.add(
            "missing-init-fence",
            f"the mbarrier at {barrier.name} is signalled by an engine or another CTA, and no "
            "fence.mbarrier_init follows its init.",
            site,
            cta=barrier.cta,
        )

    def overwrite(self, offsets: Array, site: Site) -> None:
        """A store or a copy writes to these bytes of the arena, on mbarriers."""
        for offset in np.unique(offsets & ~(MBARRIER_BYTES - 1)).tolist():
            barrier = self.at.get(offset)
            if barrier is not None and not barrier.overwritten:
                self._known.clear()
                barrier.overwritten, barrier.lost = site.where(), True
                if barrier.busy():
                    self._misused(f"overwritten in use: {barrier.describe()}.", site, barrier.cta)
                else:
                    sentence = f"overwritten without mbarrier.inval: {barrier.describe()}."
                    self._report("missing-inval", sentence, barrier, site)

    def find_in(self, cta: int, low: int, site: Site) -> Mbarrier | None:
        """The mbarrier at an offset in a resident CTA; a finding if there is none."""
        barrier = self.at.get(self.residents.arena_offset(cta, low))
        if (barrier is None or barrier.overwritten) and not self.residents.execution.image.strict:
            barrier = self._stored(cta, low) or barrier
        if barrier is None:
            number, place = self.residents.ctas[cta].number, self.residents.layout.spell(low)
            self._misused(f"no mbarrier was initialised at {place} of CTA {number}.", site, number)
        elif barrier.overwritten:
            sentence = f"the mbarrier at {barrier.name} was overwritten at {barrier.overwritten}."
            self._misused(sentence, site, self.residents.ctas[cta].number)
        return barrier

    def _stored(self, cta: int, low: int) -> Mbarrier | None:
        """The mbarrier that an ordinary store has made there, as ptxas initialises some."""
        offset = self.residents.arena_offset(cta, low)
        (count,) = mbarrier_words.counts(
            self.shared.data[offset : offset + MBARRIER_BYTES].view(np.uint64)
        )
        if not 1 <= count <= MAX_COUNT:
            return None
        self.provide(cta, low, int(count))
        return self.at[offset]

    def end(self, cta: int) -> None:
        """A finding for what has arrived in a CTA that ends, and no phase was to wait for."""
        first = self.residents.arena_offset(cta, 0)
        for offset, barrier in self.at.items():
            own = first <= offset < first + self.residents.shared_stride
            if own and barrier.transactions < 0 and not barrier.overwritten:
                self.residents.execution.findings.add(
                    "transaction-bytes",
                    f"bytes have arrived that no phase expected: {barrier.describe()}.",
                    cta=barrier.cta,
                )

    def _misused(self, sentence: str, site: Site, cta: int = -1) -> None:
        self.residents.execution.findings.add("mbarrier-misuse", sentence, site, cta=cta)

    def arrive(
        self,
        barrier: Mbarrier,
        count: int,
        seen: Array,
        site: Site,
        *,
        drop: int = 0,
        completes: bool = True,
    ) -> None:
        """`count` arrivals that release what `seen` says; `drop` of them leave the barrier.

        completes: whether they may be the last of the phase (they may not with .noComplete).
        """
        if not completes and barrier.pending <= count:
            self._misused(f".noComplete completes a phase: {barrier.describe()}.", site)
        barrier.release(seen)
        barrier.pending -= count
        barrier.expected -= drop
        if barrier.pending < 0:
            self._report(
                "over-arrival",
                f"arrivals beyond the count: {-barrier.pending}; {barrier.describe()}.",
                barrier,
                site,
            )
            barrier.pending = 0
        self._advance(barrier)

    def _advance(self, barrier: Mbarrier) -> None:
        if barrier.advance():
            self.residents.changed.append(barrier)

    def expect(self, barrier: Mbarrier, size: int, site: Site) -> None:
        """`size` bytes more are to arrive."""
        self._move(barrier, size, site)

    def complete(self, barrier: Mbarrier, size: int, seen: Array | None, site: Site) -> None:
        """`size` bytes have arrived."""
        if seen is not None:
            barrier.release(seen)
        self._move(barrier, -size, site)

    def landed(self, barrier: Mbarrier | None, size: int, issuer: Issuer) -> None:
        """A copy's bytes have arrived: who waits for the barrier has seen them."""
        if barrier is not None:
            self.signalled(barrier, issuer.site)
            fills = self.residents.execution.fills.setdefault(issuer.site.number, set())
            fills.add((barrier.address, barrier.phase > 0))
            self.stored(barrier, size, issuer)

    def stored(self, barrier: Mbarrier | None, size: int, issuer: Issuer) -> None:
        """The same of what a thread of another CTA stores, which is no engine."""
        if barrier is not None:
            row = self.clocks.landed(barrier.agent, issuer.seen)
            self.complete(barrier, size, row, issuer.site)

    def _move(self, barrier: Mbarrier, size: int, site: Site) -> None:
        barrier.transactions += size
        if abs(barrier.transactions) > MAX_COUNT:
            self._report(
                "transaction-bytes",
                f"the transaction count leaves its range of 20 bits: {barrier.describe()}.",
                barrier,
                site,
            )
        self._advance(barrier)

    def _report(self, name: str, sentence: str, barrier: Mbarrier, site: Site) -> None:
        self.residents.execution.findings.add(name, sentence, site, cta=barrier.cta)
