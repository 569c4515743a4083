"""atom and red: lanes execute one at a time, in lane order."""

from __future__ import annotations

from collections.abc import Callable

from kernelexp.emulator.arithmetic.reductions import global_add, global_add_64, reduction
from kernelexp.emulator.machine import atomics
from kernelexp.emulator.machine.access import Access
from kernelexp.emulator.machine.arrays import Array, Mask
from kernelexp.emulator.machine.machine import Op, WarpSet
from kernelexp.emulator.ptx.decoder import Decoder
from kernelexp.emulator.ptx.isa.memory import SPACES
from kernelexp.emulator.ptx.registry import B, builder
from kernelexp.emulator.ptx.types import width_of

_SEM = "{m:|.relaxed|.acquire|.release|.acq_rel}{c:|.cta|.cluster|.gpu|.sys}"
_SPACE = "{s:|.global|.shared|.shared::cta|.shared::cluster}"
_SPACED = _SPACE.replace("{s:|", "{s:")
_INT = "{o:add|min|max}.{t:u32|s32|u64|s64}"
_BIT = "{o:and|or|xor}.{t:b32|b64}"
_COUNT = "{o:inc|dec}.u32"
_SWAP = "{o:exch|cas}.{t:b16|b32|b64}"
_FLOAT = "add.{t:f32|f64}"
_HALF = "{o:add}.noftz.{t:f16|f16x2|bf16|bf16x2}"
_NAMES = frozenset({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"})


def _patterns(stem: str) -> Callable[[B], B]:
    def register(function: B) -> B:
        forms = [_INT, _BIT, _COUNT, _FLOAT, _HALF] + ([_SWAP] if stem == "atom" else [])
        for form in forms:
            builder(stem + _SEM + _SPACE + "." + form)(function)
            # ptxas takes the modifiers in other orders too, as older headers write them.
            name, _, kind = form.rpartition(".")
            builder(stem + _SPACED + _SEM + "." + form)(function)
            builder(stem + _SPACE + "." + name + _SEM + "." + kind)(function)
        return function

    return register


@_patterns("atom")
@_patterns("red")
def atom(d: Decoder) -> Op:
    """Returns the old value (atom). Orders the warp's accesses before and after it."""
    parts = d.parts
    t = parts[-1]
    name = next(part for part in parts[1:] if part in _NAMES)
    space = next((SPACES[part] for part in parts if part in SPACES), "generic")
    size = width_of(t) // 8
    access = Access(d.site, size, 1, store=True, relaxed=True)
    d.note_unit(space, size)
    operands = d.operands if parts[0] == "atom" else (None, *d.operands)
    target = d.destination(operands[0])
    write = d.loaded(target, t if d.width(target) == width_of(t) else f"b{width_of(t)}")
    where = d.address(operands[1])
    sources = [d.source(operand, t) for operand in operands[2:]]
    order = {
        "relaxed": not {"release", "acq_rel"} & set(parts),
        "narrow": "cta" in parts,
        "sure": bool({"acquire", "acq_rel"} & set(parts)),
    }
    function = None if name == "cas" else reduction(name, t)
    if name == "add" and space == "global" and t in ("f32", "f64"):
        function = global_add if t == "f32" else global_add_64

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        memory, values = warps.machine.spaces[space], [R[slot] for slot in sources]
        old = atomics.update(warps, memory, where(R), values, function, access, m, **order)
        write(R, old, m)

    return op
