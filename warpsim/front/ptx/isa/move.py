"""mov, address conversion, clocks."""

from __future__ import annotations

import numpy as np

from warpsim.front.ptx.decoder import PtxDecoder, copyto
from warpsim.front.ptx.registry import alu, builder
from warpsim.front.ptx.syntax import SpecialName, Symbol, Vector
from warpsim.front.ptx.types import width_of
from warpsim.machine.core.arrays import DTYPES, Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.core.registers import RegisterPart
from warpsim.machine.memory.layout import RANK_SHIFT, SHARED_WINDOW, WINDOW_BITS
from warpsim.machine.wave.machine import Op, WarpSet
from warpsim.machine.wave.specials import CLOCKS
from warpsim.machine.wave.windows import WINDOWS, lies_in

_TYPES = "{t:b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|pred}"


@builder("mov.b128")
def mov_wide(d: PtxDecoder) -> Op:
    """Between two registers of 64 bits and one of 128, or between two of 128."""
    to, source = d.operands
    if isinstance(to, Vector):
        targets, sources = d.destinations(to, 2), list(d.halves(source))
    else:
        targets = list(d.halves(to, to=True))
        wide = not isinstance(source, Vector)
        sources = list(d.halves(source)) if wide else d.sources(source, "b64", 2)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = [R[slot].copy() for slot in sources]
        for target, value in zip(targets, values, strict=True):
            copyto(R[target], value, where=m)

    return op


@builder("mov." + _TYPES)
def mov(d: PtxDecoder) -> Op:
    """Registers, literals, addresses of variables, special registers; packs and unpacks vectors."""
    to, source = d.operands
    t = d.parts[-1]
    if isinstance(to, Vector):
        return _unpack(d, to, t)
    if isinstance(source, Vector):
        return _pack(d, source, t)
    if isinstance(source, SpecialName) and source.name[1:] in CLOCKS:
        return _clock(d, source.name)
    target, value = d.destination(to), d.source(source, t)
    return _moved(d, target, value)


def _moved(d: PtxDecoder, target: int, value: int) -> Op:
    """Copies a slot to a register as wide or wider."""

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[target], R[value], where=m)

    bits = d.width(target)
    if d.slots[value].bits != bits:
        return op
    return Formed(op, CompiledForm("mov.pred" if bits == 1 else f"mov.b{bits}", (target, value)))


def _pack(d: PtxDecoder, vector: Vector, t: str) -> Op:
    """The first element becomes the low part."""
    part = width_of(t) // len(vector.items)
    target = d.destination(d.operands[0])
    sources = [d.source(item, f"b{part}") for item in vector.items]
    wide = DTYPES[width_of(t)]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        value = R[sources[0]].astype(wide)
        for index, slot in enumerate(sources[1:], 1):
            value |= R[slot].astype(wide) << wide(index * part)
        copyto(R[target], value, where=m)

    if d.width(target) != width_of(t):
        return op
    return Formed(op, CompiledForm(f"pack.b{width_of(t)}.b{part}", (target, *sources)))


def _unpack(d: PtxDecoder, vector: Vector, t: str) -> Op:
    part = width_of(t) // len(vector.items)
    value = d.source(d.operands[1], t)
    targets = [d.destination(item) for item in vector.items]
    narrow, wide = DTYPES[part], DTYPES[width_of(t)]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        whole = R[value].copy()
        for index, slot in enumerate(targets):
            piece = (whole >> wide(index * part)).astype(narrow)
            copyto(R[slot], piece, where=m)

    # What nobody wants goes to a slot of another width.
    wanted = [slot if isinstance(d.slots[slot], RegisterPart) else -1 for slot in targets]
    if any(slot >= 0 and d.width(slot) != part for slot in wanted):
        return op
    return Formed(op, CompiledForm(f"unpack.b{width_of(t)}.b{part}", (*wanted, value)))


def _clock(d: PtxDecoder, name: str) -> Op:
    target = d.destination(d.operands[0])
    shift = 32 if name == "%clock_hi" else 0

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        """Time is the count of warp instructions: it rises, and means nothing more."""
        now = R[target].dtype.type(warps.machine.read_clock() >> shift)
        copyto(R[target], now, where=m)

    return op


_SPACES = "{s:shared|shared::cta|shared::cluster|local|param|param::entry|global|const}"


@builder("cvta{to:|.to}." + _SPACES + ".{t:u64|u32}")
def cvta(d: PtxDecoder) -> Op:
    """Generic addresses: one window of 2^40 bytes per space."""
    parts = d.parts
    back = "to" in parts
    window = np.uint64(WINDOWS[parts[-2]])
    d.check_space(d.operands[1])
    target, value = d.destination(d.operands[0]), d.source(d.operands[1], parts[-1])
    # The address of a parameter already is generic: see Machine's addresses.
    symbol = isinstance(d.operands[1], Symbol) and d.operands[1].name in _parameters(d)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        address = R[value].astype(np.uint64)
        if not symbol:
            address = address - window if back else _into(address, window)
        copyto(R[target], address.astype(R[target].dtype), where=m)

    return _moved(d, target, value) if window == 0 else op


def _into(address: Array, window: np.uint64) -> Array:
    # nvcc takes a parameter's address by mov and then converts it: it is in the window by then.
    inside = (address >> np.uint64(WINDOW_BITS)) == (window >> np.uint64(WINDOW_BITS))
    return np.where(inside, address, address + window)


def _parameters(d: PtxDecoder) -> set[str]:
    return {variable.name for variable in d.function.parameters}


@builder("isspacep." + _SPACES)
def isspacep(d: PtxDecoder) -> Op:
    """Which window a generic address lies in."""
    space = d.parts[1]
    target, value = d.destination(d.operands[0]), d.source(d.operands[1], "u64")
    if space == "const":
        raise d.refuse()

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[target], lies_in(warps, R[value], space), where=m)

    return op


@alu("mapa.shared::cluster.{t:u32|u64}", "t t u32")
def mapa(a: Array, rank: Array) -> Array:
    """The same offset in the CTA of that rank: rank << 24 | offset."""
    low = a & a.dtype.type((1 << RANK_SHIFT) - 1)
    return low | rank.astype(a.dtype) << a.dtype.type(RANK_SHIFT)


@alu("mapa.u64", "u64 u64 u32")
def mapa_generic(a: Array, rank: Array) -> Array:
    """As above, for a generic address."""
    return mapa(a, rank) | np.uint64(SHARED_WINDOW)


@alu("getctarank.shared::cluster.{t:u32|u64}", "u32 t")
def getctarank(a: Array) -> Array:
    return (a & a.dtype.type(0xFFFF_FFFF)).astype(np.uint32) >> np.uint32(RANK_SHIFT)
