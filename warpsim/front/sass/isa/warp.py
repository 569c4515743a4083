"""Among the active lanes of a warp: shuffles, votes, matches, reductions, elections."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpsim.arithmetic.floats import f32
from warpsim.front.sass.decoder import SassDecoder, copyto, uniformly
from warpsim.front.sass.operands import is_zero, part_of
from warpsim.front.sass.registry import covers
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.core.registers import Literal
from warpsim.machine.core.warps import ALL, pack
from warpsim.machine.wave.machine import Op, WarpSet

_LANES = np.arange(32, dtype=np.int64)
_BIT = (np.uint32(1) << np.arange(32, dtype=np.uint32))[None, :]


def _word(lanes: Array) -> Array:
    """bool [n, 32] as one word per warp, [n, 1]."""
    return np.array(pack(lanes), np.uint32)[:, None]


@covers("SHFL.{:IDX|UP|DOWN|BFLY}")
def shfl(d: SassDecoder) -> Op:
    """As PTX's shfl: segments by the last source. What is read of an inactive lane is that lane's
    register, where hardware leaves it open."""
    ok, target, a, b, c = d.take(d.operands, 5)
    p, slot = d.to_predicate(ok), d.to(target)
    value, lane, control = d.bits(a), d.bits(b), d.bits(c)
    mode = d.instruction.modifiers[0]

    def places(R: list[Array]) -> tuple[Array, Array]:
        return _places(mode, lane(R).astype(np.int64), control(R).astype(np.int64))

    d.lanes[d.instruction.number] = lambda R: places(R)[0]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        from_, inside = places(R)
        result = np.take_along_axis(value(R), from_, axis=1)
        copyto(R[p], inside, where=m)
        copyto(R[slot], result, where=m)

    if is_zero(target) or any(map(part_of, (a, b, c))):
        return op
    name = {"IDX": "idx", "UP": "up", "DOWN": "down", "BFLY": "bfly"}[mode]
    every = d.slot(Literal(ALL, 32))
    words = (d.words(operand, 1)[0] for operand in (a, b, c))
    slots = slot, -1 if is_zero(ok) else p, *words, every
    return Formed(op, CompiledForm(f"shfl.sync.{name}.b32", slots))


def _places(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """(source lane, whether it is in its segment)."""
    segment, clamp, b = c >> 8 & 31, c & 31, b & 31
    last = _LANES & segment | clamp & ~segment
    if mode == "UP":
        lane = _LANES - b
        inside = lane >= last
    else:
        if mode == "IDX":
            lane = _LANES & segment | b & ~segment & 31
        else:
            lane = _LANES + b if mode == "DOWN" else _LANES ^ b
        inside = lane <= last
    return np.where(inside, lane, _LANES), inside


def _votes(name: str, votes: Array, every: Array) -> tuple[Array, Array]:
    """(ballot, result) of a vote, [n, 1]."""
    ballot, whole = _word(votes), _word(every)
    results = {
        "ANY": ballot != 0,
        "ALL": ballot == whole,
        "EQ": (ballot == whole) | (ballot == 0),
    }
    return ballot, results[name]


@covers("VOTE.{:ALL|ANY|EQ}")
def vote(d: SassDecoder) -> Op:
    """Of the active lanes: who says yes, and whether all, any, or all alike do."""
    return _vote(d, uniform=False)


@covers("VOTEU.{:ALL|ANY|EQ}")
def voteu(d: SassDecoder) -> Op:
    """The same, to registers of the warp."""
    return _vote(d, uniform=True)


def _vote(d: SassDecoder, *, uniform: bool) -> Op:
    *targets, result, source = d.operands
    slots = [d.to(target) for target in targets]
    p, read, name = d.to_predicate(result), d.predicate(source), d.instruction.modifiers[0]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        here = warps.active(m)
        ballot, holds = _votes(name, here & read(R), here)
        where: Mask = np.asarray(here.any(axis=1, keepdims=True)) if uniform else m
        for slot in slots:
            copyto(R[slot], ballot, where=where)
        copyto(R[p], holds, where=where)

    if len(slots) > 1 or part_of(source):
        return op
    predicate, negated = d.predicate_slot(source)
    numbers = ("ANY", "ALL", "EQ").index(name), negated, uniform
    return Formed(op, CompiledForm("vote.b32", (*(slots or [-1]), p, predicate), numbers))


@covers("MATCH.ANY{:|.U64}")
def match_any(d: SassDecoder) -> Op:
    """The active lanes with the same value."""
    target, source = d.take(d.operands, 2)
    slot, read = d.to(target), d.pair(source) if "U64" in d.modifiers else d.bits(source)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        value = read(R)
        same = (value[:, :, None] == value[:, None, :]) & warps.active(m)[:, None, :]
        copyto(R[slot], (same * _BIT).sum(axis=2, dtype=np.uint64).astype(np.uint32), where=m)

    return op


@covers("MATCH.ALL{:|.U64}")
def match_all(d: SassDecoder) -> Op:
    """The active lanes if they all have the same value, else 0."""
    result, target, source = d.take(d.operands, 3)
    p, slot = d.to_predicate(result), d.to(target)
    read = d.pair(source) if "U64" in d.modifiers else d.bits(source)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        value, here = read(R), warps.active(m)
        first = np.take_along_axis(value, here.argmax(axis=1)[:, None], axis=1)
        same = ((value == first) | ~here).all(axis=1)[:, None]
        copyto(R[slot], np.where(same, _word(here), np.uint32(0)), where=m)
        copyto(R[p], same, where=m)

    return op


_REDUCTIONS: dict[str, tuple[Any, int]] = {
    "SUM": (np.add, 0),
    "AND": (np.bitwise_and, 0xFFFF_FFFF),
    "OR": (np.bitwise_or, 0),
    "XOR": (np.bitwise_xor, 0),
}


@covers("REDUX{:|.OR|.XOR|.SUM|.SUM.S32|.MIN|.MAX|.MIN.S32|.MAX.S32}")
@covers("CREDUX.{:MIN|MAX}{:|.S32}")
def redux(d: SassDecoder) -> Op:
    """Of the active lanes, to a register of the warp; without a name: and."""
    target, source = d.take(d.operands, 2)
    slot, read = d.to(target), d.bits(source)
    name = (d.instruction.modifiers or ("AND",))[0]
    kind = np.dtype(np.int32 if "S32" in d.modifiers else np.uint32)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values, here = read(R).view(kind), warps.active(m)
        if name in ("MIN", "MAX"):
            limits = np.iinfo(kind)
            neutral = kind.type(limits.max if name == "MIN" else limits.min)
            function: Any = np.minimum if name == "MIN" else np.maximum
        else:
            function, bits = _REDUCTIONS[name]
            neutral = np.uint32(bits).astype(kind)
        result = function.reduce(np.where(here, values, neutral), axis=1, dtype=kind)
        rows = here.any(axis=1, keepdims=True)
        copyto(R[slot], result.view(np.uint32)[:, None], where=rows)

    return op


@covers("CREDUX.{:MIN|MAX|MINABS|MAXABS}.F32{:|.NAN}")
def redux_float(d: SassDecoder) -> Op:
    """The same of floats, or of their absolute values; a NaN counts with `.NAN` only."""
    target, source = d.take(d.operands, 2)
    slot, read = d.to(target), d.bits(source)
    name, nan = d.instruction.modifiers[0], "NAN" in d.modifiers
    smallest, absolute = name.startswith("MIN"), name.endswith("ABS")
    combine = f32.minimum if smallest else f32.maximum
    infinite = np.uint32(0x7F800000 if smallest else 0xFF800000)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        here = warps.active(m)
        numbers = f32.absolute(read(R)) if absolute else read(R)
        values = np.where(here, numbers, infinite if nan else np.uint32(0x7FFFFFFF))
        result = values[:, 0]
        for lane in range(1, 32):
            result = combine(result, values[:, lane], nan=nan)
        copyto(R[slot], result[:, None], where=here.any(axis=1, keepdims=True))

    return op


@covers("ELECT")
def elect(d: SassDecoder) -> Op:
    """The lowest active lane."""
    result, target, source = d.take(d.operands, 3)
    p, slot = d.to_predicate(result), d.to(target)
    if d.truth(source) is not True:
        raise d.refuse("elects under a predicate, which is not covered")

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        here = warps.active(m)
        leader = here.argmax(axis=1)[:, None]
        copyto(R[p], leader == _LANES, where=m)
        copyto(R[slot], leader.astype(np.uint32), where=here.any(axis=1, keepdims=True))

    return op


@covers("R2UR{:|.BROADCAST|.FILL}", "R2UR.OR")
def r2ur(d: SassDecoder) -> Op:
    """The first active lane's value to a register of the warp. The predicate is whether a lane has
    another value, with `.OR` or held before."""
    *predicates, target, source = d.operands
    slot, read = d.to(target), d.bits(source)
    if not predicates and "OR" not in d.modifiers:

        def move(R: list[Array], m: Mask, warps: WarpSet) -> None:
            uniformly(R, slot, read(R), m, warps)

        return d.formed(move, "first.b32", target, (source,))
    (predicate,) = d.take(predicates, 1)
    result, keeps = d.to_predicate(predicate), "OR" in d.modifiers

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = read(R).copy()
        first = np.take_along_axis(values, warps.active(m).argmax(axis=1)[:, None], axis=1)
        uniformly(R, slot, values, m, warps)
        other = values != first
        copyto(R[result], other | R[result] if keeps else other, where=m)

    return op
