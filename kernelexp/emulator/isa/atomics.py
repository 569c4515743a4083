"""atom and red: lanes one after the other, in lane order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelexp.emulator.arithmetic.floats import bf16, f16, f32, f64
from kernelexp.emulator.arithmetic.packed import packed
from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.integer import typed
from kernelexp.emulator.isa.memory import SPACES, address, loaded, note_unit
from kernelexp.emulator.isa.registry import Op, builder, modifiers
from kernelexp.emulator.machine.spaces import Site
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array, width_of

_SEM = "{m:|.relaxed|.acquire|.release|.acq_rel}{c:|.cta|.cluster|.gpu|.sys}"
_SPACE = "{s:|.global|.shared|.shared::cta|.shared::cluster}"
_INT = "{o:add|min|max}.{t:u32|s32|u64|s64}"
_BIT = "{o:and|or|xor}.{t:b32|b64}"
_COUNT = "{o:inc|dec}.u32"
_SWAP = "{o:exch|cas}.{t:b16|b32|b64}"
_FLOAT = "add.{t:f32|f64}"
_HALF = "{o:add}.noftz.{t:f16|f16x2|bf16|bf16x2}"


def _min(a: Array, b: Array, t: str) -> Array:
    return np.where(typed(b, t) < typed(a, t), b, a)


def _max(a: Array, b: Array, t: str) -> Array:
    return np.where(typed(b, t) > typed(a, t), b, a)


def _global_add(a: Array, b: Array) -> Array:
    """f32 in global memory: subnormals count as zeros (PTX ISA, atom: shared keeps them)."""
    return f32.add(a, b, ftz=True)


def _global_add_64(a: Array, b: Array) -> Array:
    """f64 in global memory hands a NaN on as it is, signalling ones too (an H200 does)."""
    result = f64.add(a, b)
    for operand in (b, a):
        result = np.where(operand << np.uint64(1) > np.uint64(0xFFE << 52), operand, result)
    return result


def _floating_add(t: str) -> Callable[[Array, Array], Array]:
    formats: dict[str, Any] = {"f32": f32, "f64": f64, "f16": f16, "bf16": bf16}
    function = formats[t.removesuffix("x2")].add
    return (lambda a, b: packed(function, a, b)) if t.endswith("x2") else function


def _operation(name: str, t: str) -> Callable[[Array, Array], Array]:
    """What becomes of the old value `a` and the operand `b`."""
    if name == "add":
        is_float = t[0] == "f" or t.startswith("bf")
        return _floating_add(t) if is_float else lambda a, b: a + b
    table: dict[str, Callable[[Array, Array], Array]] = {
        "min": lambda a, b: _min(a, b, t),
        "max": lambda a, b: _max(a, b, t),
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "exch": lambda a, b: b,
        "inc": lambda a, b: np.where(a >= b, 0, a + 1).astype(a.dtype),
        "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1).astype(a.dtype),
    }
    return table[name]


def _patterns(stem: str) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        forms = [_INT, _BIT, _COUNT, _FLOAT, _HALF] + ([_SWAP] if stem == "atom" else [])
        for form in forms:
            builder(stem + _SEM + _SPACE + "." + form)(function)
        return function

    return register


@_patterns("atom")
@_patterns("red")
def atom(ins: Instruction, d: Decoder) -> Op:
    """Returns the old value (atom); orders what the warps did before and do after."""
    parts = modifiers(ins)
    t = parts[-1]
    name = next(part for part in parts[1:] if part in _NAMES)
    space = next((SPACES[part] for part in parts if part in SPACES), "generic")
    size = width_of(t) // 8
    site = Site(ins, d.number, space, size, 1, store=True, relaxed=True)
    note_unit(d, space, size)
    operands = ins.operands if parts[0] == "atom" else (None, *ins.operands)
    target = d.destination(operands[0], ins)
    write = loaded(d, target, t if d.width(target) == width_of(t) else f"b{width_of(t)}")
    where = address(ins, operands[1], d)
    sources = [d.source(operand, t, ins) for operand in operands[2:]]
    function = None if name == "cas" else _operation(name, t)
    if name == "add" and space == "global" and t in ("f32", "f64"):
        function = _global_add if t == "f32" else _global_add_64

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        at = where(R)
        machine.flags.release(warps, at, m)
        old = np.zeros((warps.count, 32), R[sources[0]].dtype)
        for chosen, within, lanes in machine.parts(space, at, m):
            offsets = chosen.offsets(warps, within, site, lanes)
            chosen.update_check(warps, offsets, site, lanes)
            _sequence(chosen.arena, offsets, lanes, [R[s] for s in sources], function, old)
        machine.flags.acquire(warps, at, m)
        write(R, old, m)

    return op


_NAMES = frozenset({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"})


def _sequence(
    arena: Any, offsets: Array, lanes: Any, operands: list[Array], function: Any, old: Array
) -> None:
    """Lanes with different addresses at once, lanes with the same one after the other."""
    view = arena.view(old.itemsize, 1)
    index = (offsets // old.itemsize).ravel()
    rest = np.arange(index.size) if lanes is True else np.flatnonzero(lanes)
    flat, out = [operand.ravel() for operand in operands], old.reshape(-1)
    while len(rest):
        _, first = np.unique(index[rest], return_index=True)
        now = rest[np.sort(first)]
        before = view[index[now]]
        out[now] = before
        if function is None:
            after = np.where(before == flat[0][now], flat[1][now], before)
        else:
            after = function(before, flat[0][now])
        view[index[now]] = after
        rest = np.setdiff1d(rest, now, assume_unique=True)
