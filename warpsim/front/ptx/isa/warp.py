"""Warp-wide operations: shuffles, votes, elections, reductions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from warpsim.arithmetic.floats import f32
from warpsim.arithmetic.integers import typed
from warpsim.front.ptx.decoder import PtxDecoder, copyto, pair
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Immediate, Operand
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.core.marks import LANE, LOADED, Origin
from warpsim.machine.core.site import Site
from warpsim.machine.core.warps import ALL, lanes_of, pack
from warpsim.machine.wave.machine import Op, WarpSet, each_warp

LANES = np.arange(32, dtype=np.int64)
_BIT = (np.uint32(1) << np.arange(32, dtype=np.uint32))[None, :]


def word(lanes: Array) -> Array:
    """bool [n, 32] as one word per warp, [n, 1]."""
    return np.array(pack(lanes), np.uint32)[:, None]


def members_of(d: PtxDecoder, operand: Operand) -> int:
    """The slot of a member mask; a lane that its own mask does not name is a finding."""
    slot = d.source(operand, "b32")
    if not (isinstance(operand, Immediate) and operand.value & 0xFFFF_FFFF == 0xFFFF_FFFF):
        d.checks.append(functools.partial(_named, slot, d.site))
    return slot


def _named(slot: int, site: Site, R: list[Array], m: Mask, warps: WarpSet) -> None:
    left_out = ((R[slot] & _BIT) == 0) & warps.active(m)
    if left_out.any():
        row, lane = (int(index[0]) for index in np.nonzero(left_out))
        sentence = f"lane {lane} executes it with the mask {int(R[slot][row, lane]):#010x}."
        warps.machine.report("member-mask", sentence, site, int(warps.warps[row]))


def groups(warps: WarpSet, m: Mask, members: Array) -> Array:
    """[n, 32, 32]: whether lane j is in the member mask of lane i, and here."""
    in_mask = (members[:, :, None] & _BIT) != 0
    return in_mask & warps.active(m)[:, None, :]


@builder("shfl.sync.{m:up|down|bfly|idx}.b32", sync=True)
def shfl(d: PtxDecoder) -> Op:
    """Segments by the c operand; a lane out of range keeps its own value. What a lane gives that
    does not take part is followed like memory that was never written."""
    mode = d.parts[2]
    value_to, ok_to = pair(d.operands[0])
    target = d.destination(value_to)
    ok_slot = d.destination(ok_to) if ok_to is not None else None
    a, b, c = (d.source(operand, "b32") for operand in d.operands[1:4])
    members = members_of(d, d.operands[4])
    site = d.site
    d.shuffles(lambda R: _sources(mode, R[b], R[c])[0])

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        from_, ok = _sources(mode, R[b], R[c])
        absent = _absent(warps, m, R[members], from_)
        copyto(R[target], np.take_along_axis(R[a], from_, axis=1), where=m)
        if ok_slot is not None:
            copyto(R[ok_slot], ok, where=m)
        if absent.any():
            row, lane = (int(index[0]) for index in np.nonzero(absent))
            place, source = int(warps.warps[row]), int(from_[row, lane])
            origin = Origin(LOADED.index(LANE), site.number, place, lane, source)
            warps.machine.undefined.shuffled(site, warps, absent, origin)

    if d.width(target) != 32:
        return op
    slots = (target, -1 if ok_slot is None else ok_slot, a, b, c, members)
    return Formed(op, CompiledForm(d.instruction.opcode, slots))


def _absent(warps: WarpSet, m: Mask, members: Array, from_: Array) -> Array:
    """Which lanes take from a lane that is not active, or that their member mask does not name."""
    active = warps.active(m)
    there = np.take_along_axis(active, from_, axis=1) & (
        members >> from_.astype(np.uint32) & 1 != 0
    )
    absent: Array = active & ~there & (from_ != LANES)
    return absent


def _sources(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """(source lane, whether it is in range): PTX ISA, shfl.sync, its pseudocode."""
    b, c = b.astype(np.int64), c.astype(np.int64)
    segment, clamp, b = c >> 8 & 31, c & 31, b & 31
    highest = LANES & segment | clamp & ~segment
    if mode == "up":
        lane, ok = LANES - b, LANES - b >= highest
    elif mode == "down":
        lane, ok = LANES + b, LANES + b <= highest
    elif mode == "bfly":
        lane, ok = LANES ^ b, (LANES ^ b) <= highest
    else:
        lane = (LANES & segment) | (b & ~segment & 31)
        ok = lane <= highest
    return np.where(ok, lane, LANES), ok


@builder("vote.sync.{o:all|any|uni}.pred", sync=True)
@builder("vote.sync.ballot.b32", sync=True)
@builder("vote.{o:all|any|uni}.sync.pred", sync=True)
@builder("vote.ballot.sync.b32", sync=True)
def vote(d: PtxDecoder) -> Op:
    """Over the lanes of the member mask."""
    mode = next(part for part in d.parts[1:] if part != "sync")
    target = d.destination(d.operands[0])
    p, flip = d.predicate(d.operands[1])
    members = members_of(d, d.operands[2])
    if mode != "ballot":  # whose bits can be told apart
        d.reduces(members)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        here = warps.active(m)
        votes = here & (~R[p] if flip else R[p])
        # Groups of lanes with a mask each may execute it together.
        ballot, every = (word(lanes) & R[members] for lanes in (votes, here))
        results = {
            "ballot": ballot,
            "any": ballot != 0,
            "all": ballot == every,
            "uni": (ballot == every) | (ballot == 0),
        }
        copyto(R[target], np.broadcast_to(results[mode], R[target].shape), where=m)

    return op


@builder("activemask.b32")
def activemask(d: PtxDecoder) -> Op:
    """The lanes that execute it together here; hardware may have fewer."""
    target = d.destination(d.operands[0])

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        lanes = word(warps.active(m))
        copyto(R[target], np.broadcast_to(lanes, R[target].shape), where=m)

    return op


@builder("elect.sync", sync=True)
def elect(d: PtxDecoder) -> Op:
    """Elects the lowest lane of the member mask."""
    lane_to, p_to = pair(d.operands[0])
    lane_slot, p_slot = d.destination(lane_to), d.destination(p_to)
    members = members_of(d, d.operands[1])

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        group = word(warps.active(m)) & R[members]
        leader = np.bitwise_count((group & (0 - group)) - np.uint32(1))
        copyto(R[p_slot], LANES == leader, where=m)
        copyto(R[lane_slot], leader, where=m, casting="unsafe")

    return op


@builder("match.any.sync.{t:b32|b64}", sync=True)
def match_any(d: PtxDecoder) -> Op:
    """The lanes of the member mask with the same value."""
    t = d.parts[-1]
    target = d.destination(d.operands[0])
    a, members = d.source(d.operands[1], t), members_of(d, d.operands[2])

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        same = (R[a][:, :, None] == R[a][:, None, :]) & groups(warps, m, R[members])
        result = (same * _BIT).sum(axis=2, dtype=np.uint64).astype(np.uint32)
        copyto(R[target], result, where=m)

    return op


@builder("match.all.sync.{t:b32|b64}", sync=True)
def match_all(d: PtxDecoder) -> Op:
    """The member mask if all its lanes hold the same value, else 0."""
    t = d.parts[-1]
    first, second = pair(d.operands[0])
    target, p = d.destination(first), d.destination(second)
    a, members = d.source(d.operands[1], t), members_of(d, d.operands[2])

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        other = (R[a][:, :, None] != R[a][:, None, :]) & groups(warps, m, R[members])
        every = ~other.any(axis=2)
        copyto(R[target], np.where(every, R[members], 0), where=m)
        copyto(R[p], every, where=m)

    return op


_REDUCE: dict[str, tuple[Any, Any]] = {
    "add": (np.add, 0),
    "and": (np.bitwise_and, 0xFFFF_FFFF),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
}


@builder("redux.sync.{o:add|min|max}.{t:u32|s32}", sync=True)
@builder("redux.sync.{o:and|or|xor}.b32", sync=True)
def redux(d: PtxDecoder) -> Op:
    """Over the lanes of the member mask."""
    _, _, name, t = d.parts
    target = d.destination(d.operands[0])
    a, members = d.source(d.operands[1], t), members_of(d, d.operands[2])
    d.reduces(members)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = typed(R[a], t)
        if name in ("min", "max"):
            limits = np.iinfo(values.dtype)
            neutral = limits.max if name == "min" else limits.min
            reduce = np.minimum if name == "min" else np.maximum
        else:
            reduce, neutral = _REDUCE[name]
        part = groups(warps, m, R[members])
        filled = np.where(part, values[:, None, :], np.array(neutral).astype(values.dtype))
        result = reduce.reduce(filled, axis=2, dtype=values.dtype)
        copyto(R[target], result.view(np.uint32), where=m)

    return op


@builder("redux.sync.{o:min|max}{a:|.abs}{n:|.NaN}.f32", sync=True)
def redux_float(d: PtxDecoder) -> Op:
    """Over the lanes of the member mask; a NaN counts with `.NaN` only."""
    parts = d.parts
    target = d.destination(d.operands[0])
    a, members = d.source(d.operands[1], "f32"), members_of(d, d.operands[2])
    d.reduces(members)
    combine = f32.minimum if "min" in parts else f32.maximum
    nan = "NaN" in parts

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = f32.absolute(R[a]) if "abs" in parts else R[a]
        part = groups(warps, m, R[members])
        neutral = np.uint32(0x7F800000 if "min" in parts else 0xFF800000)
        filled = np.where(part, values[:, None, :], neutral if nan else np.uint32(0x7FFFFFFF))
        result = filled[..., 0]
        for lane in range(1, 32):
            result = combine(result, filled[..., lane], nan=nan)
        copyto(R[target], result, where=m)

    return op


@builder("bar.warp.sync", sync=True)
def bar_warp(d: PtxDecoder) -> Op:
    """Synchronises the lanes and makes their memory accesses visible to each other."""
    members, operand = members_of(d, d.operands[0]), d.operands[0]
    if isinstance(operand, Immediate) and operand.value & ALL == ALL:
        whole = each_warp(lambda machine, warp: machine.clocks.converge(warp))
        return Formed(whole, CompiledForm("bar.warp.sync", ()))

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        clocks, exited, active = warps.machine.clocks, warps.machine.exited, warps.active(m)
        for row, warp in enumerate(warps.warps.tolist()):
            for mask in set(R[members][row][active[row]].tolist()):
                if mask | exited[warp] == ALL:
                    clocks.converge(warp)
                else:
                    clocks.converge_part(warp, np.array(lanes_of(mask)))

    return op
