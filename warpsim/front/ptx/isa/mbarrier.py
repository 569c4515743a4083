"""mbarrier: init, arrivals, transactions, waits."""

from __future__ import annotations

import numpy as np

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import alu, builder
from warpsim.front.ptx.syntax import Address, Immediate
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import Formed
from warpsim.machine.sync import mbarrier_ops
from warpsim.machine.sync.mbarrier_ops import Arrival
from warpsim.machine.sync.phases import PhaseTest
from warpsim.machine.wave.machine import Op, WarpSet
from warpsim.machine.wave.mbarrier import STATE_SHIFT, Mbarrier

STATE_BITS = 64
_OWN = "{s:|.shared|.shared::cta}.b64"
_ANY = "{s:|.shared|.shared::cta|.shared::cluster}.b64"
_SEM = "{m:|.release|.relaxed}{c:|.cta|.cluster}"


@builder("mbarrier.init" + _OWN)
def init(d: PtxDecoder) -> Op:
    """Phase 0, `count` arrivals pending."""
    where, site = d.address(d.operands[0]), d.site
    count = d.source(d.operands[1], "u32")

    return lambda R, m, warps: mbarrier_ops.init(warps, m, where(R), R[count], site)


@builder("mbarrier.inval" + _OWN)
def inval(d: PtxDecoder) -> Op:
    """The storage may be reused."""
    where, site = d.address(d.operands[0]), d.site
    return lambda R, m, warps: mbarrier_ops.invalidate(warps, m, where(R), site)


@builder("mbarrier.{o:arrive|arrive_drop}{n:|.noComplete}" + _SEM + _ANY)
@builder("mbarrier.{o:arrive|arrive_drop}.expect_tx" + _SEM + _ANY)
def arrive(d: PtxDecoder) -> Op:
    """Each lane adds its transaction bytes, then arrives; the state is the phase number."""
    parts = d.parts
    # `mbarrier.arrive.b64 state, [bar]`; remote and in inline asm `_, [bar]` or just `[bar]`.
    operands = list(d.operands)
    state = None if isinstance(operands[0], Address) else operands.pop(0)
    state_slot = d.destination(state) if state is not None else None
    base, offset = d.addressed(operands[0])
    where, site = d.reader(base, offset), d.site
    number = operands[1] if len(operands) > 1 else Immediate(0 if "expect_tx" in parts else 1)
    amount = d.source(number, "u32")
    how = Arrival(
        expects="expect_tx" in parts,
        drops="arrive_drop" in parts,
        releases="relaxed" not in parts,
        narrow={"release", "cta"} <= set(parts),
        local=not {"shared", "shared::cta"}.isdisjoint(parts),
        completes="noComplete" not in parts,
    )

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        def note(row: int, lanes: list[int], barrier: Mbarrier) -> None:
            assert state_slot is not None
            R[state_slot][row, lanes] = barrier.state()

        noted = None if state_slot is None else note
        mbarrier_ops.arrive(warps, m, where(R), R[amount], how, site, noted)

    if state_slot is not None and d.width(state_slot) != STATE_BITS:
        return op
    octets, to = d.width(base) // 8, -1 if state_slot is None else state_slot
    return Formed(op, how.form(to, base, octets, amount, offset))


@builder("mbarrier.{o:expect_tx|complete_tx}{m:|.relaxed}{c:|.cta|.cluster}" + _ANY)
def transactions(d: PtxDecoder) -> Op:
    """Moves the transaction count without an arrival."""
    expects = d.parts[1] == "expect_tx"
    where, site = d.address(d.operands[0]), d.site
    amount = d.source(d.operands[1], "u32")

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        mbarrier_ops.transfer(warps, m, where(R), R[amount], site, expects=expects)

    return op


_WAIT_SEM = "{m:|.acquire|.relaxed}{c:|.cta|.cluster}"


@builder("mbarrier.{o:test_wait|try_wait}{p:|.parity}" + _WAIT_SEM + _OWN, gate=True)
def wait(d: PtxDecoder) -> PhaseTest:
    """try_wait returns false once before it sleeps until the phase completes."""
    parts = d.parts
    by_parity = "parity" in parts
    return PhaseTest(
        site=d.site,
        at=d.pointer(d.operands[1]),
        wanted=d.source(d.operands[2], "u32" if by_parity else "u64"),
        by_parity=by_parity,
        result=d.destination(d.operands[0]),
        suspends=parts[1] == "try_wait",
        acquires="relaxed" not in parts,
    )


@alu("mbarrier.pending_count.b64", "u32 b64")
def pending_count(state: Array) -> Array:
    """The pending count at the arrival that returned the state; its other bits are specific to the
    emulator."""
    return (state & np.uint64((1 << STATE_SHIFT) - 1)).astype(np.uint32)
