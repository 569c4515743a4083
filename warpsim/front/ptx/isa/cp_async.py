"""cp.async: copies of 4, 8 or 16 bytes per lane from global to shared memory (LDGSTS)."""

from __future__ import annotations

import numpy as np

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Immediate, Not, Register
from warpsim.machine.copies import lane_copies
from warpsim.machine.copies.lane_copies import CopyWait, LaneCopy
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.wave.machine import Op, WarpSet, each_warp

_HINT = "{h:|.L2::cache_hint}{p:|.L2::64B|.L2::128B|.L2::256B}"


@builder(f"cp.async.{{c:ca|cg}}{{s:.shared|.shared::cta}}.global{_HINT}")
def cp_async(d: PtxDecoder) -> Op:
    """Bytes beyond src-size are zeros, all where ignore-src is true; lands late like every
    asynchronous effect."""
    size = d.constant(d.operands[2])
    d.note_unit("shared", 4)
    to, source = (d.address(operand) for operand in d.operands[:2])
    hint = "L2::cache_hint" in d.parts
    sizes = d.operands[3:-1] if hint else d.operands[3:]
    copy = LaneCopy(d.site, size, bypasses=d.parts[2] == "cg", fills=bool(sizes))
    if sizes and isinstance(sizes[0], Register | Not) and _is_predicate(d, sizes[0]):
        ignored, flip = d.predicate(sizes[0])

        def ignoring(R: list[Array], m: Mask, warps: WarpSet) -> None:
            bytes_ = np.where(R[ignored] != flip, 0, size).astype(np.uint32)
            copy.issue(warps, to(R), source(R), bytes_, m)

        return ignoring
    kept = d.source(sizes[0] if sizes else Immediate(size), "u32")
    return lambda R, m, warps: copy.issue(warps, to(R), source(R), R[kept], m)


def _is_predicate(d: PtxDecoder, operand: Register | Not) -> bool:
    return isinstance(operand, Not) or d.register_width(operand) == 1


@builder("cp.async.commit_group")
def commit(d: PtxDecoder) -> Op:
    """Closes the warp's group; groups are tracked per warp, not per thread."""
    return each_warp(lane_copies.commit)


@builder("cp.async.wait_group", gate=True)
@builder("cp.async.wait_all", gate=True)
def wait(d: PtxDecoder) -> CopyWait:
    """The warp's own copies have landed; others see them after a barrier."""
    every = d.parts[2] == "wait_all"
    return CopyWait(d.site, None if every else d.constant(d.operands[0]))


@builder("cp.async.mbarrier.arrive{n:|.noinc}{s:|.shared|.shared::cta}.b64")
def mbarrier_arrive(d: PtxDecoder) -> Op:
    """Arrives for each lane when the warp's copies so far have landed."""
    where, site = d.address(d.operands[0]), d.site
    adds = "noinc" not in d.parts
    return lambda R, m, warps: lane_copies.arrive_when_landed(warps, where(R), m, site, adds=adds)
