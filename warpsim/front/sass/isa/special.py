"""Functions that hardware looks up in tables, and special registers.

A result is the correctly rounded one, as for PTX's approximations; hardware's last bits differ.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsim.arithmetic import approx, convert
from warpsim.arithmetic.floats import f64
from warpsim.arithmetic.formats import F32, decode
from warpsim.arithmetic.ieee import quiet
from warpsim.front.sass.decoder import SassDecoder, applied, copyto, uniformly
from warpsim.front.sass.operands import Reader
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import SpecialOperand
from warpsim.machine.core import registers
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.memory.layout import SHARED_WINDOW
from warpsim.machine.wave.machine import Op, WarpSet

_FLUSHING: dict[str, Callable[..., Array]] = {
    "EX2": approx.ex2,
    "LG2": approx.lg2,
    "RCP": approx.rcp,
    "RSQ": approx.rsqrt,
    "SQRT": approx.sqrt,
}


@covers("MUFU.{:EX2|LG2|RCP|RSQ|SQRT}")
def mufu(d: SassDecoder) -> Op:
    """The correctly rounded result; subnormal arguments and results are zeros."""
    target, a = d.take(d.operands, 2)
    function = _FLUSHING[d.instruction.modifiers[0]]
    op = applied(d.to(target), lambda x: function(x, ftz=True), (d.real(a),))
    return d.formed(op, f"{function.__name__}.approx.ftz.f32", target, (a,), real=True)


@covers("MUFU.{:SIN|COS}")
def mufu_turns(d: SassDecoder) -> Op:
    """Sine and cosine of an angle in turns, rounded."""
    target, a = d.take(d.operands, 2)
    function = np.sin if "SIN" in d.modifiers else np.cos

    @quiet
    def turned(x: Array) -> Array:
        value = decode(x, F32)
        result = function(2 * np.pi * (value - np.rint(value))).astype(np.float32)
        return np.where(np.isfinite(value), result.view(np.uint32), np.uint32(F32.nan))

    return applied(d.to(target), turned, (d.real(a),))


@covers("MUFU.TANH")
def mufu_tanh(d: SassDecoder) -> Op:
    """The correctly rounded result."""
    target, a = d.take(d.operands, 2)
    return applied(d.to(target), approx.tanh, (d.real(a),))


@covers("MUFU.{:EX2|TANH}.{:F16|BF16}")
def mufu_half(d: SassDecoder) -> Op:
    """Through f32 and rounded once more; in the lower half."""
    target, a = d.take(d.operands, 2)
    name, kind = d.instruction.modifiers
    read = d.half(a)

    def function(half: Array) -> Array:
        wide = convert.floating(half, kind.lower(), "f32")
        result = approx.tanh(wide) if name == "TANH" else approx.ex2(wide)
        return convert.floating(result, "f32", kind.lower()).astype(np.uint32)

    return applied(d.to(target), function, (read,))


@covers("MUFU.{:RCP64H|RSQ64H}")
def mufu_double(d: SassDecoder) -> Op:
    """The upper word of the function of the double whose upper word is the source."""
    target, a = d.take(d.operands, 2)
    root = "RSQ64H" in d.modifiers

    def function(x: Array) -> Array:
        value = x.astype(np.uint64) << np.uint64(32)
        result = f64.rcp(f64.sqrt(value) if root else value)
        return (result >> np.uint64(32)).astype(np.uint32)

    return applied(d.to(target), function, (d.real(a),))


_REGISTERS = {
    "SR_TID.X": "tid.x",
    "SR_TID.Y": "tid.y",
    "SR_TID.Z": "tid.z",
    "SR_CTAID.X": "ctaid.x",
    "SR_CTAID.Y": "ctaid.y",
    "SR_CTAID.Z": "ctaid.z",
    "SR_LANEID": "laneid",
    "SR_CgaCtaId": "cluster_ctarank",
    "SR_EQMASK": "lanemask_eq",
    "SR_LTMASK": "lanemask_lt",
    "SR_LEMASK": "lanemask_le",
    "SR_GTMASK": "lanemask_gt",
    "SR_GEMASK": "lanemask_ge",
    "SR_VIRTUALSMID": "smid",
    "SR_SMEMSZ": "total_smem_size",
}
_SECOND_BYTE = {"SR_VIRTCFG": "nwarpid", "SR_VIRTID": "warpid"}
"""Of which code reads the second byte: how many warps there may be, which of them this is."""


def _special(d: SassDecoder, source: object) -> Reader:
    """A special register."""
    slot = _slot(d, source)
    if slot is None:
        assert isinstance(source, SpecialOperand)
        byte = d.slot(registers.SpecialRegister(_SECOND_BYTE[source.name], 32))
        return lambda R: R[byte] << np.uint32(8)
    return lambda R: R[slot]


def _slot(d: SassDecoder, source: object) -> int | None:
    """The slot of a special register; None if it is not one of the machine's."""
    name = source.name if isinstance(source, SpecialOperand) else ""
    if name == "SR_SWINHI":
        return d.slot(registers.Literal(SHARED_WINDOW >> 32, 32))
    if name == "SRZ":
        return d.slot(registers.Literal(0, 32))
    if name in _SECOND_BYTE:
        return None
    if name not in _REGISTERS:
        raise d.refuse("reads a special register that the emulator does not have")
    return d.slot(registers.SpecialRegister(_REGISTERS[name], 32))


@covers("S2R")
def s2r(d: SassDecoder) -> Op:
    """SR_TID, SR_CTAID, SR_LANEID, lane masks, the rank in the cluster, the SM, the shared
    window."""
    target, source = d.take(d.operands, 2)
    slot, special = d.to(target), _special(d, source)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[slot], special(R), where=m)

    return _formed(op, "mov.b32", slot, _slot(d, source))


@covers("S2UR")
def s2ur(d: SassDecoder) -> Op:
    """The same, of the first active lane."""
    target, source = d.take(d.operands, 2)
    slot, special = d.to(target), _special(d, source)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        uniformly(R, slot, special(R), m, warps)

    return _formed(op, "first.b32", slot, _slot(d, source))


def _formed(op: Op, name: str, target: int, source: int | None) -> Op:
    return op if source is None else Formed(op, CompiledForm(name, (target, source)))
