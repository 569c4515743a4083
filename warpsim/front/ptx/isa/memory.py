"""ld, st and cache hints."""

from __future__ import annotations

import re

import numpy as np

from warpsim.arithmetic.reductions import reduction
from warpsim.front.ptx.decoder import PtxDecoder, copyto
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Address, Symbol
from warpsim.front.ptx.types import width_of
from warpsim.machine.copies import remote
from warpsim.machine.core import forms
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.memory.layout import WINDOW, WINDOW_BITS
from warpsim.machine.wave.machine import Op, WarpSet

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
_TYPE = "{t:b8|b128|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64}"
_SPACE = "{s:|.global|.shared|.shared::cta|.shared::cluster|.local|.param|.const}"
_VECTOR = "{v:|.v2|.v4|.v8}"
_HINT = (
    "{c:|.ca|.cg|.cs|.lu|.cv|.wb|.wt}"
    "{e:|.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate}"
    "{x:|.L2::evict_normal|.L2::evict_first|.L2::evict_last}"
)
_L2 = "{h:|.L2::cache_hint}{p:|.L2::64B|.L2::128B|.L2::256B}"
_ORDER = "{o:.weak|.volatile|.relaxed.cta|.relaxed.cluster|.relaxed.gpu|.relaxed.sys}"
# ptxas takes the space before the order too.
_SPACED = _SPACE.replace("{s:|", "{s:")
_RELAXED = "{o:.relaxed.cta|.relaxed.cluster|.relaxed.gpu|.relaxed.sys}"
_ACQUIRE = "{o:.acquire.cta|.acquire.cluster|.acquire.gpu|.acquire.sys}"
_RELEASE = "{o:.release.cta|.release.cluster|.release.gpu|.release.sys}"


class PtxAccessForm:
    """What the modifiers of a load or a store say."""

    def __init__(self, d: PtxDecoder) -> None:
        parts = d.parts
        self.kind = parts[-1]
        self.space = next((SPACES[part] for part in parts if part in SPACES), "generic")
        vector = next((part for part in parts if re.fullmatch(r"v[248]", part)), "v1")
        self.elements = int(vector[1:])
        self.wide = self.kind == "b128"
        """One register of 128 bits: two of 64 for the memory."""
        if self.wide:
            self.kind, self.elements = "b64", 2
        self.element = width_of(self.kind) // 8
        # Loads that pass by the first-level cache poll flags as volatile ones do.
        self.polls = bool({"cv", "cg"} & set(parts)) and parts[0] == "ld"
        ordered = {"volatile", "relaxed", "acquire", "release"} & set(parts)
        # What is read before atom.cas swaps it may be stale: the swap finds out.
        guesses = parts[0] == "ld" and d.swapped(d.operands[1])
        self.relaxed = bool(ordered or guesses)
        self.ordered = "release" in parts
        self.swapped = guesses
        self.narrow = "cta" in parts and self.relaxed
        self.sure = "acquire" in parts
        self.coherent = not ("nc" in parts or parts[0] == "ldu")
        if self.element * self.elements > 32:
            raise d.refuse("accesses more than 32 bytes per lane")
        self.site = d.site
        self.used = d.instruction.used_bytes
        d.note_unit(self.space, self.element)

    def access(self, *, store: bool, relaxed: bool, polls: bool = False) -> AccessKind:
        return AccessKind(
            self.site,
            self.element,
            self.elements,
            store=store,
            relaxed=relaxed,
            narrow=self.narrow,
            polls=polls,
            coherent=self.coherent,
            used=self.used,
            swapped=self.swapped,
        )

    def compiled(
        self, name: str, op: Op, slots: tuple[int, ...], address_bits: int, offset: int
    ) -> Op:
        """The instruction, with its compiled form if it is of a memory that has any."""
        if self.space not in forms.MEMORIES:
            return op
        where = forms.MEMORIES[self.space], address_bits // 8
        # As int32: a bit for each byte of the 32 that there are at most.
        used = -1 if self.used is None else (self.used & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)
        numbers = (*where, self.element, self.elements, self.kind[0] == "s", self.coherent, used)
        return forms.Formed(op, forms.CompiledForm(name, slots, numbers, offset))


@builder("ld{n:|.nc}" + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("ld" + _ORDER + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("ldu{s:|.global}" + _VECTOR + "." + _TYPE)
@builder("ld.global.nc" + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("ld" + _SPACED + _RELAXED + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("ld" + _SPACED + _ACQUIRE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("ld" + _ACQUIRE + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
def ld(d: PtxDecoder) -> Op:
    """Every space and vector width; the cache hints have no effect."""
    form = PtxAccessForm(d)
    if form.space == "param":
        return _ld_param(d, form)
    access = form.access(store=False, relaxed=form.relaxed, polls=form.polls)
    poll = form.access(store=False, relaxed=True)
    base, offset = d.addressed(d.operands[1])
    where = d.reader(base, offset)
    if form.wide:
        targets = list(d.halves(d.operands[0], to=True))
    else:
        targets = d.destinations(d.operands[0], form.elements)
    writers = [d.loaded(slot, form.kind) for slot in targets]
    space, single = form.space, form.elements == 1

    def op(R: list[Array], m: Mask, warps: WarpSet, access: AccessKind = access) -> None:
        values = warps.machine.spaces[space].load(warps, where(R), access, m)
        if single:
            writers[0](R, values, m)
        else:
            for index, write in enumerate(writers):
                write(R, values[..., index], m)

    def acquiring(R: list[Array], m: Mask, warps: WarpSet) -> None:
        at = where(R)
        op(R, m, warps)
        warps.machine.flags.acquire(warps, at, m, narrow=form.narrow, sure=form.sure)

    def polling(R: list[Array], m: Mask, warps: WarpSet) -> None:
        # Cache operators are hints: only what others use as a flag is taken for one.
        at, flags = where(R), warps.machine.flags
        if flags.known(warps, at, m):
            op(R, m, warps, poll)
            flags.acquire(warps, at, m, sure=False)
        else:
            op(R, m, warps)

    if form.polls and not form.relaxed:
        return polling
    if form.relaxed:
        return acquiring
    return form.compiled("ld", op, (base, *targets), d.slots[base].bits, offset)


def _ld_param(d: PtxDecoder, form: PtxAccessForm) -> Op:
    arguments = d.arguments(d.operands[1], form.element, form.elements)
    if arguments is not None and not form.wide:
        return _ld_arguments(d, form, arguments)
    access = form.access(store=False, relaxed=False)
    where = d.address(d.operands[1])
    base = d.operands[1].base if isinstance(d.operands[1], Address) else None
    own = isinstance(base, Symbol) and base.name in {p.name for p in d.function.parameters}
    targets = d.destinations(d.operands[0], form.elements)
    writers = [d.loaded(slot, form.kind) for slot in targets]
    low = np.uint64(WINDOW)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        address = where(R).astype(np.uint64)
        # A parameter of the kernel that is indexed has its address in a register.
        kernel_s = own or bool((address[warps.active(m)] >> np.uint64(WINDOW_BITS)).any())
        space = warps.machine.spaces["param" if kernel_s else "local"]
        values = space.load(warps, address & low, access, m)
        values = values[..., None] if values.ndim == 2 else values
        for index, write in enumerate(writers):
            write(R, values[..., index], m)

    return op


def _ld_arguments(d: PtxDecoder, form: PtxAccessForm, arguments: list[int]) -> Op:
    """Of parameters of the entry, whose values are slots."""
    targets = d.destinations(d.operands[0], form.elements)
    writers = [d.loaded(slot, form.kind) for slot in targets]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for write, argument in zip(writers, arguments, strict=True):
            write(R, R[argument], m)

    bits = 8 * form.element
    if form.elements > 1 or d.width(targets[0]) != bits:
        return op
    return forms.Formed(op, forms.CompiledForm(f"mov.b{bits}", (targets[0], arguments[0])))


@builder("st" + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("st" + _ORDER + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("st" + _SPACED + _RELAXED + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("st" + _SPACED + _RELEASE + _HINT + _L2 + _VECTOR + "." + _TYPE)
@builder("st" + _RELEASE + _SPACE + _HINT + _L2 + _VECTOR + "." + _TYPE)
def st(d: PtxDecoder) -> Op:
    """Every space and vector width; the cache hints have no effect."""
    form = PtxAccessForm(d)
    space = "local" if form.space == "param" else form.space
    access = form.access(store=True, relaxed=form.relaxed)
    base, offset = d.addressed(d.operands[0])
    where = d.reader(base, offset)
    wide, value = form.wide, d.operands[1]
    sources = list(d.halves(value)) if wide else d.sources(value, form.kind, form.elements)
    single = form.elements == 1

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        if single:
            values = R[sources[0]]
        else:
            values = np.stack([R[slot] for slot in sources], axis=-1)
        warps.machine.spaces[space].store(warps, where(R), values, access, m)

    def releasing(R: list[Array], m: Mask, warps: WarpSet) -> None:
        flags = warps.machine.flags
        flags.release(warps, where(R), m, relaxed=not form.ordered, narrow=form.narrow)
        op(R, m, warps)

    if form.relaxed:
        return releasing
    return form.compiled("st", op, (base, *sources), d.slots[base].bits, offset)


@builder("prefetch{s:|.global|.local}{c:.L1|.L2|.L2::evict_last|.L2::evict_normal}")
@builder("prefetchu.L1")
@builder("applypriority{s:|.global}.L2::evict_normal")
@builder("discard{s:|.global}.L2")
@builder("cp.async.bulk.prefetch.L2.global{h:|.L2::cache_hint}")
@builder("cp.async.bulk.prefetch.tensor.{d:1d|2d|3d|4d|5d}.L2.global{m:|.tile}{h:|.L2::cache_hint}")
@builder("prefetch{s:|.const|.param|.generic}.tensormap")
def hint(d: PtxDecoder) -> Op:
    """Has no effect that a program can see."""
    for operand in d.operands:
        if isinstance(operand, Address):
            d.check_space(operand.base)
    return nothing


@builder(
    "createpolicy.fractional.{p:L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged}{q:|.L2::evict_unchanged|.L2::evict_first}.b64"
)
@builder(
    "createpolicy.range{s:|.global}.{p:L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged}{q:|.L2::evict_unchanged|.L2::evict_first}.b64"
)
@builder("createpolicy.cvt.L2.b64")
def createpolicy(d: PtxDecoder) -> Op:
    """A policy of zero bits: cache hints have no effect."""
    target = d.destination(d.operands[0])
    return lambda R, m, warps: copyto(R[target], np.uint64(0), where=m)


def nothing(R: list[Array], m: Mask, warps: WarpSet) -> None:
    """A hint."""


@builder(
    "st.async{w:|.weak}.shared::cluster.mbarrier::complete_tx::bytes{v:|.v2|.v4}"
    ".{t:b32|b64|u32|u64|s32|s64|f32|f64}"
)
def st_async(d: PtxDecoder) -> Op:
    """Lands late, then completes its bytes on a barrier of the same CTA."""
    form = PtxAccessForm(d)
    access = form.access(store=True, relaxed=True)
    where, bar = (d.address(d.operands[i]) for i in (0, 2))
    sources = d.sources(d.operands[1], form.kind, form.elements)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = np.stack([R[slot] for slot in sources], axis=-1)
        values = values[..., 0].copy() if form.elements == 1 else values
        remote.store(warps, where(R), values, bar(R), access, m)

    return op


@builder(
    "red.async{m:|.relaxed}{c:|.cluster}{s:|.shared::cluster}.mbarrier::complete_tx::bytes"
    ".{o:add|min|max|inc|dec|and|or|xor}.{t:u32|s32|u64|b32}"
)
def red_async(d: PtxDecoder) -> Op:
    """Lands late, then completes its bytes on a barrier of the same CTA."""
    name, t = d.parts[-2:]
    size = width_of(t) // 8
    d.note_unit("cluster", size)
    access = AccessKind(d.site, size, 1, store=True, relaxed=True)
    where, bar = (d.address(d.operands[i]) for i in (0, 2))
    source, function = d.source(d.operands[1], t), reduction(name, t)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        remote.reduce(warps, where(R), R[source], bar(R), function, access, m)

    return op


@builder("st.bulk{w:|.weak}{s:|.shared|.shared::cta}")
def st_bulk(d: PtxDecoder) -> Op:
    """Zeros, 8 bytes at a time (PTX ISA, st.bulk: the size is a multiple of 8, the value 0)."""
    space = next((SPACES[part] for part in d.parts if part in SPACES), "generic")
    access = AccessKind(d.site, 8, 1, store=True)
    d.note_unit(space, 8)
    where, size = d.address(d.operands[0]), d.source(d.operands[1], "u64")

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        address, zeros = where(R).astype(np.uint64), np.zeros((warps.count, 32), np.uint64)
        memory, active = warps.machine.spaces[space], warps.active(m)
        for at in range(0, int(np.where(active, R[size], 0).max()), 8):
            lanes = active & (R[size] > at)
            memory.store(warps, address + np.uint64(at), zeros, access, lanes)

    return op
