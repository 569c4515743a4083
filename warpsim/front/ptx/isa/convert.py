"""cvt: between all the types."""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic import convert, packed
from warpsim.arithmetic import narrow as narrow_floats
from warpsim.arithmetic.floats import bf16, f16
from warpsim.arithmetic.half import f32_from_bf16
from warpsim.arithmetic.matrices import scaled
from warpsim.front.ptx.registry import alu
from warpsim.machine.core.arrays import Array

_INT = "u8|u16|u32|u64|s8|s16|s32|s64"
_FLOATS = ("f16", "bf16", "f32", "f64")


@alu(f"cvt{{sat:|.sat}}.{{d:{_INT}}}.{{s:{_INT}}}", "d s")
def int_to_int(a: Array, d: str, s: str, sat: str) -> Array:
    return convert.int_to_int(a, s, d, sat=bool(sat))


@alu(
    f"cvt.{{r:rni|rzi|rmi|rpi}}{{ftz:|.ftz}}{{sat:|.sat}}.{{d:{_INT}}}.{{s:f16|bf16|f32|f64}}",
    "d s",
)
def float_to_int(a: Array, d: str, s: str, r: str, ftz: str) -> Array:
    return convert.float_to_int(a, s, d, rounding=r, ftz=bool(ftz))


@alu(f"cvt.{{r:rn|rz|rm|rp}}{{sat:|.sat}}.{{d:f16|bf16|f32|f64}}.{{s:{_INT}}}", "d s")
def int_to_float(a: Array, d: str, s: str, r: str, sat: str) -> Array:
    return convert.int_to_float(a, s, d, rounding=r, sat=bool(sat))


@alu("cvt{ftz:|.ftz}{sat:|.sat}.{d:f32|f64}.{s:f16|bf16|f32}", "d s")
def widen(a: Array, d: str, s: str, ftz: str, sat: str) -> Array:
    return convert.floating(a, s, d, ftz=bool(ftz), sat=bool(sat))


def _integral(kind: str) -> None:
    @alu(f"cvt.{{r:rni|rzi|rmi|rpi}}{{ftz:|.ftz}}{{sat:|.sat}}.{kind}.{kind}", f"{kind} {kind}")
    def integral(a: Array, r: str, ftz: str, sat: str) -> Array:
        """Rounds to an integral value of the same type."""
        return convert.floating(a, kind, kind, rounding=r, ftz=bool(ftz), sat=bool(sat))


for _kind in _FLOATS:
    _integral(_kind)


@alu(
    "cvt.{r:rn|rz|rm|rp}{relu:|.relu}{ftz:|.ftz}{sat:|.sat}.{d:f16|bf16|f32}.{s:f16|bf16|f32|f64}",
    "d s",
)
def narrow(a: Array, d: str, s: str, r: str, relu: str, ftz: str, sat: str) -> Array:
    return convert.floating(a, s, d, rounding=r, ftz=bool(ftz), sat=bool(sat), relu=bool(relu))


@alu("cvt.{r:rn|rz}{relu:|.relu}{sf:|.satfinite}.{d:f16x2|bf16x2}.f32", "d f32 f32")
def pack_half(a: Array, b: Array, d: str, r: str, relu: str, sf: str) -> Array:
    """The first source becomes the high half."""
    kind = d.removesuffix("x2")
    return convert.pack_x2(a, b, kind, rounding=r, relu=bool(relu), satfinite=bool(sf))


@alu("cvt.rn.satfinite{relu:|.relu}.{d:e4m3x2|e5m2x2}.f32", "d f32 f32")
def pack_fp8(a: Array, b: Array, d: str, relu: str) -> Array:
    """The first source becomes the high byte."""
    return convert.pack_x2(a, b, d.removesuffix("x2"), relu=bool(relu))


@alu("cvt.rn.satfinite{relu:|.relu}.{d:e4m3x2|e5m2x2}.{s:f16x2|bf16x2}", "d s")
def pack_fp8_from_pair(a: Array, d: str, s: str, relu: str) -> Array:
    return convert.pack_fp8x2(a, s.removesuffix("x2"), d.removesuffix("x2"), relu=bool(relu))


@alu("cvt.rn{relu:|.relu}.f16x2.{s:e4m3x2|e5m2x2}", "f16x2 s")
def unpack_fp8(a: Array, s: str, relu: str) -> Array:
    return convert.unpack_fp8x2(a, s.removesuffix("x2"), relu=bool(relu))


@alu("cvt.{r:rna|rn|rz}{relu:|.relu}{sf:|.satfinite}.tf32.f32", "b32 f32")
def to_tf32(a: Array, r: str, relu: str, sf: str) -> Array:
    return convert.floating(a, "f32", "tf32", rounding=r, relu=bool(relu), satfinite=bool(sf))


@alu("cvt.pack.sat.{d:u16|s16}.s32", "b32 s32 s32")
def pack_int16(a: Array, b: Array, d: str) -> Array:
    high, low = (convert.int_to_int(x, "s32", d, sat=True).astype(np.uint32) for x in (a, b))
    return high << np.uint32(16) | low & np.uint32(0xFFFF)


@alu("cvt.pack.sat.{d:u8|s8}.s32.b32", "b32 s32 s32 b32")
def pack_int8(a: Array, b: Array, c: Array, d: str) -> Array:
    high, low = (
        convert.int_to_int(x, "s32", d, sat=True).astype(np.uint32) & np.uint32(0xFF)
        for x in (a, b)
    )
    return c << np.uint32(16) | high << np.uint32(8) | low


_NARROW = "e2m1x2|e2m3x2|e3m2x2"


@alu(f"cvt.rn.satfinite{{relu:|.relu}}.{{d:{_NARROW}}}.f32", "d f32 f32")
def pack_narrow(a: Array, b: Array, d: str, relu: str) -> Array:
    """Four- and six-bit floats: the first source becomes the high half; NaN the largest number."""
    return narrow_floats.pack(a, b, d.removesuffix("x2"), relu=bool(relu))


@alu(f"cvt.rn{{relu:|.relu}}.f16x2.{{s:{_NARROW}}}", "f16x2 s")
def unpack_narrow(a: Array, s: str, relu: str) -> Array:
    return narrow_floats.unpack(a, s.removesuffix("x2"), relu=bool(relu))


@alu("cvt.rn.satfinite{relu:|.relu}.e2m1x2.{s:f16x2|bf16x2}", "e2m1x2 s")
def pack_e2m1_from_pair(a: Array, s: str, relu: str) -> Array:
    low, high = packed.halves(a)
    source = (f16 if s == "f16x2" else bf16).format
    return narrow_floats.pack(high, low, "e2m1", relu=bool(relu), source=source)


@alu("cvt.{r:rz|rp}{sf:|.satfinite}.ue8m0x2.f32", "ue8m0x2 f32 f32")
def pack_scales(a: Array, b: Array, r: str, sf: str) -> Array:
    """Scale factors: the exponent of the magnitude; the first source becomes the high byte."""
    return scaled.pack_ue8m0(a, b, up=r == "rp", satfinite=bool(sf))


@alu("cvt.{r:rz|rp}{sf:|.satfinite}.ue8m0x2.bf16x2", "ue8m0x2 bf16x2")
def pack_scales_from_pair(a: Array, r: str, sf: str) -> Array:
    low, high = (f32_from_bf16(half) for half in packed.halves(a))
    return scaled.pack_ue8m0(high, low, up=r == "rp", satfinite=bool(sf))


@alu("cvt.rn.bf16x2.ue8m0x2", "bf16x2 ue8m0x2")
def unpack_scales(a: Array) -> Array:
    return scaled.unpack_ue8m0(a)
