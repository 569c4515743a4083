"""What the lanes of a warp do together: shuffles, votes, elections, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelexp.emulator.decode import Decoder, copyto
from kernelexp.emulator.isa.integer import typed
from kernelexp.emulator.isa.predicate import _pair as pair
from kernelexp.emulator.isa.predicate import _predicate as predicate
from kernelexp.emulator.isa.registry import Op, builder, modifiers
from kernelexp.emulator.machine.warps import pack
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

LANES = np.arange(32, dtype=np.int64)
_BIT = (np.uint32(1) << np.arange(32, dtype=np.uint32))[None, :]


def active(warps: Any, m: Any) -> Array:
    """The mask as bool [n, 32]."""
    return np.ones((warps.count, 32), bool) if m is True else m


def word(lanes: Array) -> Array:
    """bool [n, 32] as one word a warp, [n, 1]."""
    return np.array(pack(lanes), np.uint32)[:, None]


def groups(warps: Any, m: Any, members: Array) -> Array:
    """[n, 32, 32]: whether lane j is in the member mask of lane i, and here."""
    in_mask = (members[:, :, None] & _BIT) != 0
    result: Array = in_mask & active(warps, m)[:, None, :]
    return result


@builder("shfl.sync.{m:up|down|bfly|idx}.b32", sync=True)
def shfl(ins: Instruction, d: Decoder) -> Op:
    """Segments by the c operand; a lane out of range keeps its own value. Reading a lane that does
    not take part gives that lane's register, where PTX leaves it undefined."""
    mode = modifiers(ins)[2]
    value_to, ok_to = pair(ins.operands[0])
    target = d.destination(value_to, ins)
    ok_slot = d.destination(ok_to, ins) if ok_to is not None else None
    a, b, c = (d.source(operand, "b32", ins) for operand in ins.operands[1:4])

    def op(R: list[Array], m: Any, warps: Any) -> None:
        from_, ok = _shuffle(mode, R[b].astype(np.int64), R[c].astype(np.int64))
        copyto(R[target], np.take_along_axis(R[a], from_, axis=1), where=m)
        if ok_slot is not None:
            copyto(R[ok_slot], ok, where=m)

    return op


def _shuffle(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """(source lane, whether it is in range): PTX ISA, shfl.sync, its pseudocode."""
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
def vote(ins: Instruction, d: Decoder) -> Op:
    """Over the lanes of the member mask."""
    mode = modifiers(ins)[2]
    target = d.destination(ins.operands[0], ins)
    p, flip = predicate(d, ins, ins.operands[1])
    members = d.source(ins.operands[2], "b32", ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        here = active(warps, m)
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
def activemask(ins: Instruction, d: Decoder) -> Op:
    """The lanes that execute it together here; hardware may have fewer together."""
    target = d.destination(ins.operands[0], ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        lanes = np.array(pack(active(warps, m)), np.uint32)[:, None]
        copyto(R[target], np.broadcast_to(lanes, R[target].shape), where=m)

    return op


@builder("elect.sync", sync=True)
def elect(ins: Instruction, d: Decoder) -> Op:
    """Elects the lowest lane of the member mask."""
    lane_to, p_to = pair(ins.operands[0])
    lane_slot, p_slot = d.destination(lane_to, ins), d.destination(p_to, ins)
    members = d.source(ins.operands[1], "b32", ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        group = word(active(warps, m)) & R[members]
        leader = np.bitwise_count((group & (0 - group)) - np.uint32(1))
        copyto(R[p_slot], LANES == leader, where=m)
        copyto(R[lane_slot], leader, where=m, casting="unsafe")

    return op


@builder("match.any.sync.{t:b32|b64}", sync=True)
def match_any(ins: Instruction, d: Decoder) -> Op:
    """The lanes of the member mask with the same value."""
    t = modifiers(ins)[-1]
    target = d.destination(ins.operands[0], ins)
    a, members = d.source(ins.operands[1], t, ins), d.source(ins.operands[2], "b32", ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        same = (R[a][:, :, None] == R[a][:, None, :]) & groups(warps, m, R[members])
        result = (same * _BIT).sum(axis=2, dtype=np.uint64).astype(np.uint32)
        copyto(R[target], result, where=m)

    return op


@builder("match.all.sync.{t:b32|b64}", sync=True)
def match_all(ins: Instruction, d: Decoder) -> Op:
    """The member mask if all its lanes have one value, else 0."""
    t = modifiers(ins)[-1]
    first, second = pair(ins.operands[0])
    target, p = d.destination(first, ins), d.destination(second, ins)
    a, members = d.source(ins.operands[1], t, ins), d.source(ins.operands[2], "b32", ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
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
def redux(ins: Instruction, d: Decoder) -> Op:
    """Over the lanes of the member mask."""
    _, _, name, t = modifiers(ins)
    target = d.destination(ins.operands[0], ins)
    a, members = d.source(ins.operands[1], t, ins), d.source(ins.operands[2], "b32", ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
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


@builder("bar.warp.sync", sync=True)
def bar_warp(ins: Instruction, d: Decoder) -> Op:
    """Lanes meet, and have seen each other's accesses to memory."""

    def op(R: list[Array], m: Any, warps: Any) -> None:
        for warp in warps.warps.tolist():
            warps.machine.clocks.converge(warp)

    return op
