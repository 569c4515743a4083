"""mbarriers: words in shared memory that count arrivals and bytes"""

from __future__ import annotations

import numpy as np

from warpsim.front.sass.decoder import SassDecoder, copyto
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import ZERO, MemoryOperand, Operand, Other, RegisterOperand
from warpsim.machine.copies import lane_copies
from warpsim.machine.core import registers
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.mbarrier_words import counts, parities
from warpsim.machine.sync import mbarrier_ops
from warpsim.machine.sync.gates import AddressSlot
from warpsim.machine.sync.mbarrier_ops import Arrival
from warpsim.machine.sync.phases import PhaseTest
from warpsim.machine.wave.machine import Op, WarpSet
from warpsim.machine.wave.mbarrier import Mbarrier

_WORD = 32
_PARITY_AT = 31
"""In the upper half of an mbarrier's word."""


def _unused(d: SassDecoder, operand: Operand) -> None:
    """Refuses a result where none is modelled."""
    if not (isinstance(operand, RegisterOperand) and operand.index == ZERO):
        raise d.refuse("gives a result, which is not covered")


@covers("SYNCS.EXCH.64")
def init(d: SassDecoder) -> Op:
    """Initialises an mbarrier with the word of a new one; the old word may not be used."""
    result, address, source = d.take(d.operands, 3)
    _unused(d, result)
    d.note_unit("shared", 8)
    where, new, site = d.shared_address(address), d.pair(source), d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        words = new(R)
        value, phases = counts(words), parities(words)
        if ((value < 0) & warps.active(m)).any():
            sentence = "an mbarrier is initialised with a word that is not a new one's."
            warps.machine.report("mbarrier-misuse", sentence, site, int(warps.warps[0]))
            raise Fatal
        mbarriers = warps.machine.mbarriers
        for row, place, at, lanes in mbarriers.named(warps, m, where(R), site):
            # The lanes that name one mbarrier are one access: what one thread does in PTX, ptxas
            # lets all of the warp do.
            count, phase = int(value[row, lanes[0]]), int(phases[row, lanes[0]])
            mbarriers.init(place, at, count, site, phase)

    return op


@covers("SYNCS.CCTL.IV")
def invalidate(d: SassDecoder) -> Op:
    """The storage may be reused."""
    (address,) = d.take(d.operands, 1)
    where, site = d.shared_address(address), d.site
    return lambda R, m, warps: mbarrier_ops.invalidate(warps, m, where(R), site)


@covers("SYNCS.ARRIVE.TRANS64{:|.RED|.OPTOUT|.TMASK|.TMASK.OPTOUT}{:|.A1T0|.ART0}")
def arrive(d: SassDecoder) -> Op:
    """Each lane arrives: once (`.A1T0`), as often as a register says (`.ART0`), or once after it
    has added bytes to wait for; with `.OPTOUT` it leaves the barrier. The result is the word
    before; with `.TMASK` its lower half is the mask of the lanes at the same mbarrier."""
    result, address, source = d.take(d.operands, 3)
    expects = d.modifiers.isdisjoint({"A1T0", "ART0"})
    how = Arrival(
        expects=expects, drops="OPTOUT" in d.modifiers, completes="TMASK" not in d.modifiers
    )
    numbers = d.bits(source)
    if "A1T0" in d.modifiers:
        _unused(d, source)
        one = d.slot(registers.Literal(1, _WORD))
        numbers = lambda R: R[one]  # noqa: E731
    where, site, masks = d.shared_address(address), d.site, "TMASK" in d.modifiers
    low, high = d.to_words(result, 2)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        def note(row: int, lanes: list[int], barrier: Mbarrier) -> None:
            before = barrier.word()
            mask = sum(1 << lane for lane in lanes)
            R[low][row, lanes] = mask if masks else before & 0xFFFF_FFFF
            R[high][row, lanes] = before >> _WORD

        mbarrier_ops.arrive(warps, m, where(R), numbers(R).copy(), how, site, note)

    return op


@covers("SYNCS.ARRIVE.TRANS64.RED.{:A0TR|A0TX|A0T1}")
def transfer(d: SassDecoder) -> Op:
    """Each lane adds bytes to wait for (`.A0TR`; `.A0T1`: one), or bytes that have arrived
    (`.A0TX`)."""
    result, address, source = d.take(d.operands, 3)
    _unused(d, result)
    size, one = d.bits(source), "A0T1" in d.modifiers
    where, site, expects = d.shared_address(address), d.site, "A0TX" not in d.modifiers

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        sizes = np.ones((warps.count, 32), np.uint32) if one else size(R)
        mbarrier_ops.transfer(warps, m, where(R), sizes, site, expects=expects)

    return op


@covers("SYNCS.PHASECHK.TRANS64{:|.TRYWAIT}")
def wait(d: SassDecoder) -> PhaseTest:
    """Whether the phase with the parity of a register's sign has completed. `.TRYWAIT` says no once
    before the warp sleeps until it has."""
    result, address, source = d.take(d.operands, 3)
    (wanted,) = d.words(d.unsigned(source), 1)
    at, plus = _pointer(d, address)
    return PhaseTest(
        site=d.site,
        at=at,
        plus=plus,
        wanted=wanted,
        shift=_PARITY_AT,
        by_parity=True,
        result=d.to_predicate(result),
        suspends="TRYWAIT" in d.modifiers,
        acquires=True,
    )


def _pointer(d: SassDecoder, operand: Operand) -> tuple[AddressSlot, int | None]:
    """[base + uniform + offset] as a slot with an offset, and a slot that is added."""
    if not isinstance(operand, MemoryOperand):
        raise d.refuse("has no memory operand where one is expected")
    named = [part for part in (operand.base, operand.uniform) if part is not None]
    slots = [d.words(d.unsigned(part), 1)[0] for part in named if part.index != ZERO]
    slots = slots or [d.slot(registers.Literal(0, _WORD))]
    return AddressSlot(slots[0], operand.offset), slots[1] if len(slots) > 1 else None


@covers("ARRIVES.LDGSTSBAR.64.{:ARVCNT|TRANSCNT}")
def arrive_for_copies(d: SassDecoder) -> Op:
    """When the copies of the warp so far have landed, each lane arrives, or a byte of it does
    (`.TRANSCNT`)."""
    (address,) = d.take(d.operands, 1)
    where, site, as_bytes = d.shared_address(address), d.site, "TRANSCNT" in d.modifiers
    return lambda R, m, warps: lane_copies.arrive_when_landed(
        warps, where(R), m, site, as_bytes=as_bytes
    )


_HALVES = ("Rpc.LO", "Rpc.HI")


@covers("RPCMOV.32")
def rpcmov(d: SassDecoder) -> Op:
    """Keeps a word of a lane, and gives it back."""
    target, source = d.take(d.operands, 2)
    if isinstance(target, Other) and target.text in _HALVES:
        slot, read = d.scratch(target.text, _WORD), d.bits(source)
        return lambda R, m, warps: copyto(R[slot], read(R), where=m)
    if not (isinstance(source, Other) and source.text in _HALVES):
        raise d.refuse("has an operand that is not covered")
    slot, kept = d.to(target), d.scratch(source.text, _WORD)
    return lambda R, m, warps: copyto(R[slot], R[kept], where=m)
