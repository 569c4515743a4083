"""ld, st, and what only hints at the caches."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelexp.emulator.decode import Decoder, copyto
from kernelexp.emulator.isa.registry import Op, builder, modifiers, refuse
from kernelexp.emulator.machine.asynchronous import Pending
from kernelexp.emulator.machine.spaces import Site
from kernelexp.emulator.ptx.syntax import Address, Instruction, Register, Symbol
from kernelexp.emulator.slots import DTYPES, Array, width_of

SPACES = {
    "global": "global",
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "cluster",
    "local": "local",
    "param": "param",
    "param::entry": "param",
    "const": "global",
}
_TYPE = "{t:b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64}"
_SPACE = "{s:|.global|.shared|.shared::cta|.shared::cluster|.local|.param|.const}"
_VECTOR = "{v:|.v2|.v4|.v8}"
_HINT = (
    "{c:|.ca|.cg|.cs|.lu|.cv|.wb|.wt}"
    "{e:|.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate}"
)
_L2 = "{h:|.L2::cache_hint}{p:|.L2::64B|.L2::128B|.L2::256B}"
_ORDER = "{o:.weak|.volatile|.relaxed.cta|.relaxed.cluster|.relaxed.gpu|.relaxed.sys}"
# ptxas takes the space before the order too.
_SPACED = _SPACE.replace("{s:|", "{s:")
_RELAXED = "{o:.relaxed.cta|.relaxed.cluster|.relaxed.gpu|.relaxed.sys}"
_ACQUIRE = "{o:.acquire.cta|.acquire.cluster|.acquire.gpu|.acquire.sys}"
_RELEASE = "{o:.release.cta|.release.cluster|.release.gpu|.release.sys}"


class Form:
    """What the modifiers of a load or a store say."""

    def __init__(self, ins: Instruction) -> None:
        parts = modifiers(ins)
        self.kind = parts[-1]
        self.space = next((SPACES[part] for part in parts if part in SPACES), "generic")
        vector = next((part for part in parts if re.fullmatch(r"v[248]", part)), "v1")
        self.elements = int(vector[1:])
        self.element = width_of(self.kind) // 8
        self.relaxed = bool({"volatile", "relaxed", "acquire", "release"} & set(parts))
        self.acquire = "acquire" in parts or "volatile" in parts
        self.release = "release" in parts or "volatile" in parts
        if self.element * self.elements > 32:
            raise refuse(ins, "accesses more than 32 bytes a lane")


def note_unit(d: Decoder, space: str, size: int) -> None:
    """Races are told apart at the size of the smallest shared-memory access of the kernel."""
    if space in ("shared", "cluster", "generic"):
        d.program.shared_unit = min(d.program.shared_unit, size)


def address(ins: Instruction, operand: Any, d: Decoder) -> Callable[[list[Array]], Array]:
    """A function that gives the address operand [base + offset] as uint64 or int64 [n, 32]."""
    if not isinstance(operand, Address) or operand.extra:
        raise refuse(ins, "has an address of unknown form")
    base, offset = operand.base, operand.offset
    if isinstance(base, Symbol):
        slot = d.source(Symbol(base.name, base.offset + offset), "u64", ins)
        return lambda R: R[slot]
    bits = d.slots.width(base) if isinstance(base, Register) else 64
    slot = d.source(base, f"u{bits}", ins)
    if offset == 0:
        return lambda R: R[slot]
    step = np.int64(offset)
    if bits == 32:
        return lambda R: R[slot].astype(np.int64) + step
    return lambda R: R[slot].view(np.int64) + step


@builder("ld{n:|.nc}" + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("ld" + _ORDER + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("ld.global.nc" + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("ld" + _SPACED + _RELAXED + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("ld" + _SPACED + _ACQUIRE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("ld" + _ACQUIRE + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
def ld(ins: Instruction, d: Decoder) -> Op:
    """Every space and vector width; the cache hints change nothing."""
    form = Form(ins)
    if form.space == "param":
        return _ld_param(ins, d, form)
    site = Site(
        ins, d.number, form.space, form.element, form.elements, store=False, relaxed=form.relaxed
    )
    note_unit(d, form.space, form.element)
    where = address(ins, ins.operands[1], d)
    targets = d.destinations(ins.operands[0], ins, form.elements)
    writers = [loaded(d, slot, form.kind) for slot in targets]
    space, single = form.space, form.elements == 1

    def op(R: list[Array], m: Any, warps: Any) -> None:
        values = warps.machine.spaces[space].load(warps, where(R), site, m)
        if single:
            writers[0](R, values, m)
        else:
            for index, write in enumerate(writers):
                write(R, values[..., index], m)

    def acquiring(R: list[Array], m: Any, warps: Any) -> None:
        op(R, m, warps)
        warps.machine.flags.acquire(warps, where(R), m)

    return acquiring if form.acquire else op


def loaded(d: Decoder, slot: int, kind: str) -> Callable[[list[Array], Array, Any], None]:
    """Writes loaded values to a register that may be wider than they are."""
    bits, width = width_of(kind), d.width(slot)
    if width == bits or d.slots.keys[slot][0] == "sink":
        return lambda R, values, m: copyto(R[slot], values, where=m, casting="unsafe")
    if kind[0] == "s":
        signed, wide = np.dtype(f"i{bits // 8}"), DTYPES[width]
        return lambda R, values, m: copyto(R[slot], values.view(signed).astype(wide), where=m)
    return lambda R, values, m: copyto(R[slot], values, where=m)


def _ld_param(ins: Instruction, d: Decoder, form: Form) -> Op:
    site = Site(ins, d.number, "param", form.element, form.elements, store=False)
    where = address(ins, ins.operands[1], d)
    base = ins.operands[1].base if isinstance(ins.operands[1], Address) else None
    own = isinstance(base, Symbol) and base.name in {p.name for p in d.function.parameters}
    targets = d.destinations(ins.operands[0], ins, form.elements)
    writers = [loaded(d, slot, form.kind) for slot in targets]
    low = np.uint64((1 << 40) - 1)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        space = warps.machine.spaces["param" if own else "local"]
        values = space.load(warps, where(R).astype(np.uint64) & low, site, m)
        values = values[..., None] if values.ndim == 2 else values
        for index, write in enumerate(writers):
            write(R, values[..., index], m)

    return op


@builder("st" + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("st" + _ORDER + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("st" + _SPACED + _RELAXED + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("st" + _SPACED + _RELEASE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("st" + _RELEASE + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
def st(ins: Instruction, d: Decoder) -> Op:
    """Every space and vector width; the cache hints change nothing."""
    form = Form(ins)
    space = "local" if form.space == "param" else form.space
    site = Site(ins, d.number, space, form.element, form.elements, store=True, relaxed=form.relaxed)
    note_unit(d, space, form.element)
    where = address(ins, ins.operands[0], d)
    sources = d.sources(ins.operands[1], form.kind, ins, form.elements)
    single = form.elements == 1

    def op(R: list[Array], m: Any, warps: Any) -> None:
        if single:
            values = R[sources[0]]
        else:
            values = np.stack([R[slot] for slot in sources], axis=-1)
        warps.machine.spaces[space].store(warps, where(R), values, site, m)

    def releasing(R: list[Array], m: Any, warps: Any) -> None:
        warps.machine.flags.release(warps, where(R), m)
        op(R, m, warps)

    return releasing if form.release else op


@builder("prefetch{s:|.global|.local}{c:.L1|.L2|.L2::evict_last|.L2::evict_normal}")
@builder("prefetchu.L1")
@builder("applypriority{s:|.global}.L2::evict_normal")
@builder("discard{s:|.global}.L2")
@builder("cp.async.bulk.prefetch.L2.global{h:|.L2::cache_hint}")
@builder("cp.async.bulk.prefetch.tensor.{d:1d|2d|3d|4d|5d}.L2.global{m:|.tile}{h:|.L2::cache_hint}")
@builder("prefetch{s:|.const|.param|.generic}.tensormap")
def hint(ins: Instruction, d: Decoder) -> Op:
    """Changes nothing that a program can see."""
    return nothing


@builder(
    "createpolicy.fractional.{p:L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged}{q:|.L2::evict_unchanged|.L2::evict_first}.b64"
)
def createpolicy(ins: Instruction, d: Decoder) -> Op:
    """A policy of zero bits: cache hints change nothing."""
    target = d.destination(ins.operands[0], ins)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        copyto(R[target], np.uint64(0), where=m)

    return op


def nothing(R: list[Array], m: Any, warps: Any) -> None:
    """A hint."""


@builder(
    "st.async{w:|.weak}.shared::cluster.mbarrier::complete_tx::bytes{v:|.v2|.v4}"
    ".{t:b32|b64|u32|u64|s32|s64|f32|f64}"
)
def st_async(ins: Instruction, d: Decoder) -> Op:
    """Lands late, then completes its bytes on a barrier of the same CTA."""
    form = Form(ins)
    site = Site(ins, d.number, "cluster", form.element, form.elements, store=True, relaxed=True)
    where, bar = (address(ins, ins.operands[i], d) for i in (0, 2))
    sources = d.sources(ins.operands[1], form.kind, ins, form.elements)

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        values = np.stack([R[slot] for slot in sources], axis=-1)
        values = values[..., 0].copy() if form.elements == 1 else values
        at, barriers = where(R).copy(), bar(R).copy()
        lanes = np.ones((warps.count, 32), bool) if m is True else m

        def land() -> None:
            machine.spaces["cluster"].store(warps, at, values, site, m)
            machine.clocks.tick()
            for row, lane in zip(*np.nonzero(lanes), strict=True):
                place = int(warps.warps[row])
                barrier = machine.mbarrier(place, int(barriers[row, lane]), ins)
                if barrier is not None:
                    row_seen = machine.clocks.release(place)
                    machine.mbarriers.complete(barrier, site.size, row_seen, ins)

        machine.engines.issue(Pending(f"a store to another CTA ({ins.where()})", land, ins))

    return op
