"""Linear bulk copies, and the groups in which a thread waits for its bulk stores."""

from __future__ import annotations

from warpsim.arithmetic.reductions import reduction
from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.types import width_of
from warpsim.machine.copies import bulk
from warpsim.machine.copies.bulk import BulkWait
from warpsim.machine.copies.copying import CopyDestination, Reduction
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.wave.machine import Machine, Op, WarpSet, each_thread

_HINT = "{h:|.L2::cache_hint}"
_DST = "{s:shared::cta|shared::cluster}"
_TX = ".mbarrier::complete_tx::bytes"


@builder("cp.async.bulk.commit_group")
def commit_group(d: PtxDecoder) -> Op:
    """Closes the thread's group."""

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for _, place, lane in warps.each_lane(m):
            bulk.commit(warps.machine, place * 32 + lane)

    return op


@builder("cp.async.bulk.wait_group{r:|.read}", gate=True)
def wait_group(d: PtxDecoder) -> BulkWait:
    """A store reads its source first and writes later: `.read` waits for the former only."""
    return BulkWait(d.site, d.constant(d.operands[0]), d.parts[-1] == "read")


# Linear copies


@builder(f"cp.async.bulk.{_DST}.global{_TX}{{m:|.multicast::cluster}}{_HINT}")
@builder(f"cp.async.bulk.shared::cluster.shared::cta{_TX}")
@builder(
    f"cp.reduce.async.bulk.shared::cluster.shared::cta{_TX}.{{o:add|min|max|and|or|xor|inc|dec}}.{{t:u32|s32|u64|s64|b32|b64}}"
)
def bulk_load(d: PtxDecoder) -> Op:
    """From global memory, or from the CTA's own shared memory, to shared memory; or a reduction
    into it."""
    parts = d.parts
    reduces = None
    if parts[1] == "reduce":
        reduces = Reduction(reduction(parts[-2], parts[-1]), width_of(parts[-1]) // 8)
    to, source, bar = (d.pointer(d.operands[i]) for i in (0, 1, 3))
    size = d.source(d.operands[2], "u32")
    multicast = "multicast::cluster" in parts
    ranks = d.source(d.operands[4], "u16") if multicast else None
    from_shared = "shared::cta" in parts[4:]

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        mask = None if ranks is None else int(R[ranks][row, lane])
        destination = CopyDestination(to.value(R, row, lane), bar.value(R, row, lane), mask)
        address, count = source.value(R, row, lane), int(R[size][row, lane])
        bulk.load(machine, issuer, destination, address, count, from_shared, reduces)

    return each_thread(d.site, act)


@builder(f"cp.async.bulk.global.shared::cta.bulk_group{_HINT}")
@builder(
    f"cp.reduce.async.bulk.global.shared::cta.bulk_group{_HINT}.{{o:add|min|max|and|or|xor}}{{n:|.noftz}}.{{t:u32|s32|u64|s64|b32|b64|f16|bf16|f32|f64}}"
)
def bulk_store(d: PtxDecoder) -> Op:
    """From shared to global memory, with a reduction or without."""
    parts = d.parts
    reduces = None
    if parts[1] == "reduce":
        name = next(part for part in parts if part in ("add", "min", "max", "and", "or", "xor"))
        element = {"f16": 2, "bf16": 2}.get(parts[-1], 8 if parts[-1].endswith("64") else 4)
        reduces = Reduction(reduction(name, parts[-1]), element)
    to, source = (d.pointer(operand) for operand in d.operands[:2])
    size = d.source(d.operands[2], "u32")

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        addresses = to.value(R, row, lane), source.value(R, row, lane)
        bulk.store(machine, issuer, *addresses, int(R[size][row, lane]), reduces)

    return each_thread(d.site, act)
