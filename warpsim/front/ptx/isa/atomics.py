"""atom and red: lanes execute one at a time, in lane order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsim.arithmetic.reductions import GLOBAL_ADD, GLOBAL_ADD_64, reduction
from warpsim.front.ptx.decoder import PtxDecoder, copyto
from warpsim.front.ptx.isa.memory import SPACES
from warpsim.front.ptx.registry import B, builder
from warpsim.front.ptx.types import width_of
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.sync import atomics
from warpsim.machine.wave.machine import Op, WarpSet

_SEM = "{m:|.relaxed|.acquire|.release|.acq_rel}{c:|.cta|.cluster|.gpu|.sys}"
_SCOPED = "{c:.cta|.cluster|.gpu|.sys}{m:.relaxed|.acquire|.release|.acq_rel}"
_SPACE = "{s:|.global|.shared|.shared::cta|.shared::cluster}"
_SPACED = _SPACE.replace("{s:|", "{s:")
_INT = "{o:add|min|max}.{t:u32|s32|u64|s64}"
_BIT = "{o:and|or|xor}.{t:b32|b64}"
_COUNT = "{o:inc|dec}.u32"
_SWAP = "{o:exch|cas}.{t:b16|b32|b64}"
_FLOAT = "add.{t:f32|f64}"
_HALF = "{o:add}.noftz.{t:f16|f16x2|bf16|bf16x2}"
_VECTORS = (
    "add{v:.v2|.v4}.{t:f32}",
    "{o:add|min|max}.noftz{v:.v2|.v4|.v8}.{t:f16|bf16}",
    "{o:add|min|max}.noftz{v:.v2|.v4}.{t:f16x2|bf16x2}",
)
_ELEMENTS = frozenset({"f32", "f16", "bf16", "f16x2", "bf16x2"})
_NAMES = frozenset({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"})


def _patterns(stem: str) -> Callable[[B], B]:
    def register(function: B) -> B:
        forms = [_INT, _BIT, _COUNT, _FLOAT, _HALF] + ([_SWAP] if stem == "atom" else [])
        for form in forms:
            builder(stem + _SEM + _SPACE + "." + form)(function)
            # ptxas takes the modifiers in other orders too, as older headers and Triton write them.
            name, _, kind = form.rpartition(".")
            builder(stem + _SPACED + _SEM + "." + form)(function)
            builder(stem + _SPACED + _SCOPED + "." + form)(function)
            builder(stem + _SPACE + "." + name + _SEM + "." + kind)(function)
        return function

    return register


@_patterns("atom")
@_patterns("red")
def atom(d: PtxDecoder) -> Op:
    """Returns the old value (atom). Orders the warp's accesses before and after it."""
    parts = d.parts
    t = parts[-1]
    name = next(part for part in parts[1:] if part in _NAMES)
    space = next((SPACES[part] for part in parts if part in SPACES), "generic")
    size = width_of(t) // 8
    access = AccessKind(
        d.site,
        size,
        1,
        store=True,
        relaxed=True,
        narrow="cta" in parts,
        swapped=name == "cas",
    )
    d.note_unit(space, size)
    operands = d.operands if parts[0] == "atom" else (None, *d.operands)
    target = d.destination(operands[0])
    write = d.loaded(target, t if d.width(target) == width_of(t) else f"b{width_of(t)}")
    where = d.address(operands[1])
    sources = [d.source(operand, t) for operand in operands[2:]]
    # What nobody looks at tells nobody anything: ptxas makes a reduction of it.
    acquires = operands[0] is not None and d.is_read(operands[0])
    order = {
        "acquires": acquires,
        "relaxed": not {"release", "acq_rel"} & set(parts),
        "narrow": "cta" in parts,
        "sure": bool({"acquire", "acq_rel"} & set(parts)),
    }
    function = None if name == "cas" else reduction(name, t)
    if name == "add" and space == "global" and t in ("f32", "f64"):
        function = GLOBAL_ADD if t == "f32" else GLOBAL_ADD_64

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        memory, values = warps.machine.spaces[space], [R[slot] for slot in sources]
        old = atomics.update(warps, memory, where(R), values, function, access, m, **order)
        write(R, old, m)

    return op


def _vectors(stem: str) -> Callable[[B], B]:
    def register(function: B) -> B:
        for form in _VECTORS:
            operation, _, rest = form.partition("{v:")
            vector, _, kind = rest.partition("}.")
            builder(stem + _SEM + "{s:|.global}." + form)(function)
            # ptxas takes the vector before the operation too.
            before = stem + _SEM + "{s:|.global}{v:" + vector + "}." + kind + "." + operation
            builder(before)(function)
        return function

    return register


@_vectors("atom")
@_vectors("red")
def vector(d: PtxDecoder) -> Op:
    """Each element is an atomic operation of its own (PTX ISA, atom: vector types), global only."""
    parts = d.parts
    t = next(part for part in parts if part in _ELEMENTS)
    count = int(next(part for part in parts if part in ("v2", "v4", "v8"))[1])
    name = next(part for part in parts if part in ("add", "min", "max"))
    space = "global" if "global" in parts else "generic"
    size = width_of(t) // 8
    access = AccessKind(d.site, size, 1, store=True, relaxed=True)
    d.note_unit(space, size)
    targets, operands = [], d.operands
    if parts[0] == "atom":
        targets, operands = d.destinations(operands[0], count), operands[1:]
    writers = [d.loaded(target, f"b{width_of(t)}") for target in targets]
    where, sources = d.address(operands[0]), d.sources(operands[1], t, count)
    relaxed = not {"release", "acq_rel"} & set(parts)
    function = GLOBAL_ADD if t == "f32" else reduction(name, t)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        memory, address = warps.machine.spaces[space], where(R).astype(np.uint64)
        for index, source in enumerate(sources):
            at = address + np.uint64(index * size)
            values = [R[source]]
            old = atomics.update(warps, memory, at, values, function, access, m, relaxed=relaxed)
            if writers:
                writers[index](R, old, m)

    return op


@builder("atom" + _SEM + "{s:|.global|.shared|.shared::cta|.shared::cluster}.{o:exch|cas}.b128")
@builder("atom{s:|.global|.shared|.shared::cta|.shared::cluster}.{o:exch|cas}" + _SEM + ".b128")
def wide(d: PtxDecoder) -> Op:
    """16 bytes at once."""
    space = next((SPACES[part] for part in d.parts if part in SPACES), "generic")
    access = AccessKind(d.site, 8, 2, store=True, relaxed=True)
    d.note_unit(space, 16)
    targets, where = d.halves(d.operands[0], to=True), d.address(d.operands[1])
    sources = [d.halves(operand) for operand in d.operands[2:]]
    relaxed = not {"release", "acq_rel"} & set(d.parts)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        memory = warps.machine.spaces[space]
        values = [np.stack([R[slot] for slot in pair], axis=-1) for pair in sources]
        old = atomics.update_pair(warps, memory, where(R), values, access, m, relaxed=relaxed)
        for index, target in enumerate(targets):
            copyto(R[target], old[..., index], where=m)

    return op
