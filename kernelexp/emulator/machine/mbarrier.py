"""mbarriers: phase, pending arrivals, transaction count, and what their arrivals released."""

from __future__ import annotations

from dataclasses import dataclass

from kernelexp.emulator.findings import Findings
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

# PTX ISA, "mbarrier": the ranges of a count and of a transaction count.
MAX_COUNT = (1 << 20) - 1
STATE_SHIFT = 20
"""A state is the phase above the pending count, as the arrival found them."""


@dataclass(slots=True)
class Mbarrier:
    """One mbarrier object."""

    cta: int
    """Resident CTA that it lies in."""
    address: int
    """Byte offset in that CTA's shared memory."""
    expected: int
    pending: int
    phase: int = 0
    transactions: int = 0
    releasing: Array | None = None
    """What the arrivals of the current phase have seen: see Clocks."""
    released: Array | None = None
    """The same, of completed phases."""

    def state(self) -> int:
        return self.phase << STATE_SHIFT | self.pending

    def passed(self, parity: int) -> bool:
        """Whether the phase of this parity has completed, as try_wait.parity asks."""
        return (self.phase & 1) != parity

    def describe(self) -> str:
        return (
            f"mbarrier at shared {self.address:#x} of CTA {self.cta}: phase {self.phase}, "
            f"{self.expected - self.pending} of {self.expected} arrived, "
            f"{self.transactions} bytes expected and not yet arrived"
        )


class Mbarriers:
    """All mbarriers of the resident CTAs, by their offset in the shared-memory arena."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.at: dict[int, Mbarrier] = {}
        self.changes = 0
        """Completed phases: tells whether waiting fragments need another look."""

    def init(self, offset: int, cta: int, address: int, count: int, ins: Instruction) -> None:
        if not 1 <= count <= MAX_COUNT:
            self.findings.add(
                "mbarrier-misuse",
                f"mbarrier.init with count {count}: it must be 1 to {MAX_COUNT}.",
                ins,
            )
        old = self.at.get(offset)
        if old is not None and (old.pending != old.expected or old.transactions):
            self.findings.add(
                "mbarrier-misuse", f"mbarrier.init of a barrier in use: {old.describe()}.", ins
            )
        self.at[offset] = Mbarrier(cta, address, count, count)

    def find(self, offset: int, cta: int, address: int, ins: Instruction) -> Mbarrier | None:
        barrier = self.at.get(offset)
        if barrier is None:
            self.findings.add(
                "mbarrier-misuse",
                f"no mbarrier was initialised at shared {address:#x} of CTA {cta}.",
                ins,
                cta=cta,
            )
        return barrier

    def arrive(
        self, barrier: Mbarrier, count: int, seen: Array | None, ins: Instruction, drop: int = 0
    ) -> None:
        """`count` arrivals that release what `seen` says; `drop` of them leave the barrier."""
        if seen is not None:
            old = barrier.releasing
            barrier.releasing = seen.copy() if old is None else old.clip(min=seen)
        barrier.pending -= count
        barrier.expected -= drop
        if barrier.pending < 0:
            self.findings.add(
                "over-arrival",
                f"{-barrier.pending} arrivals more than the count: {barrier.describe()}.",
                ins,
                cta=barrier.cta,
            )
            barrier.pending = 0
        self._complete(barrier)

    def expect(self, barrier: Mbarrier, size: int, ins: Instruction) -> None:
        barrier.transactions += size
        self._range(barrier, ins)
        self._complete(barrier)

    def complete(self, barrier: Mbarrier, size: int, seen: Array | None, ins: Instruction) -> None:
        """`size` bytes have arrived."""
        if seen is not None:
            old = barrier.releasing
            barrier.releasing = seen.copy() if old is None else old.clip(min=seen)
        barrier.transactions -= size
        self._range(barrier, ins)
        self._complete(barrier)

    def _range(self, barrier: Mbarrier, ins: Instruction) -> None:
        if abs(barrier.transactions) > MAX_COUNT:
            self.findings.add(
                "transaction-bytes",
                f"the transaction count leaves its range of 20 bits: {barrier.describe()}.",
                ins,
                cta=barrier.cta,
            )

    def _complete(self, barrier: Mbarrier) -> None:
        if barrier.pending or barrier.transactions:
            return
        barrier.phase += 1
        barrier.pending = barrier.expected
        if barrier.releasing is not None:
            old = barrier.released
            new = barrier.releasing
            barrier.released = new if old is None else old.clip(min=new)
        barrier.releasing = None
        self.changes += 1
