"""PTX's cvt: between floating-point formats, and between them and integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpsim.arithmetic import fp8, native, packed
from warpsim.arithmetic.floats import Float, bf16, f16, f32, f64
from warpsim.arithmetic.formats import TF32, Bits, Double, decode, encode, flush_tiny, sum_to_odd
from warpsim.arithmetic.half import bf16_from_f32, f16_from_f32, f32_from_bf16, f32_from_f16
from warpsim.arithmetic.ieee import quiet

FLOATS: dict[str, Float] = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64}
# Conversions that need no general rounding.
_COMMON = {
    ("f32", "f16"): f16_from_f32,
    ("f32", "bf16"): bf16_from_f32,
    ("f16", "f32"): f32_from_f16,
    ("bf16", "f32"): f32_from_bf16,
}
_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def floating(
    a: Bits,
    src: str,
    dst: str,
    *,
    rounding: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    satfinite: bool = False,
    relu: bool = False,
) -> Bits:
    """cvt between floating-point formats; "rni" ... round to an integral value.

    `ftz` concerns f32 only, as in PTX: a subnormal f32 source or result becomes zero.
    """
    common = _COMMON.get((src, dst))
    if common is not None and rounding == "rn" and not (ftz or sat or satfinite):
        result = common(a)
        return FLOATS[dst].relu(result) if relu else result
    value = _source(a, src, ftz)
    if rounding in _INTEGRAL:
        with np.errstate(all="ignore"):
            value = np.asarray(_INTEGRAL[rounding](value))
        rounding = "rn"
    if sat:
        value = np.where(value > 0, np.minimum(value, 1.0), 0.0)
    if relu:
        value = np.where(np.signbit(value) & ~np.isnan(value), 0.0, value)
    result = _result(value, dst, rounding, ftz, satfinite)
    if ftz and (src, dst) == ("f32", "f64"):
        a = np.where(f32.isnan(a), np.uint32(f32.format.nan), a)  # lost in the flushing
    return result if sat else _kept_nans(a, src, dst, rounding, result)


def _kept_nans(a: Bits, src: str, dst: str, rounding: str, result: Bits) -> Bits:
    """Puts in the NaNs whose payload an H200 was seen to keep; the others are canonical.

    To and from f64: the payload's upper bits and the sign, made quiet. bf16 to f32 and to tf32 with
    "rna": the bits as they are.
    """
    if (src, dst) == ("bf16", "f32"):
        return np.where(bf16.isnan(a), a.astype(np.uint32) << np.uint32(16), result)
    if dst == "tf32" and rounding == "rna":
        return np.where(f32.isnan(a), a & np.uint32(0xFFFFE000), result)
    if "f64" in (src, dst) and src in FLOATS and dst in FLOATS:
        return np.where(FLOATS[src].isnan(a), _payload(a, src, dst), result)
    return result


def _payload(a: Bits, src: str, dst: str) -> Bits:
    """A NaN of one format as one of another: sign, quiet bit, upper payload bits."""
    wide = a.astype(np.uint64)
    source, target = FLOATS[src].format, FLOATS[dst].format
    sign = (wide >> np.uint64(source.bits - 1)) << np.uint64(target.bits - 1)
    payload = wide & np.uint64((1 << (source.precision - 1)) - 1)
    shift = target.precision - source.precision
    moved = payload << np.uint64(shift) if shift >= 0 else payload >> np.uint64(-shift)
    assert target.infinity is not None
    quiet = np.uint64(target.infinity | 1 << (target.precision - 2))
    return (sign | moved | quiet).astype(target.dtype)


def _source(a: Bits, src: str, ftz: bool) -> Double:
    if src in fp8.FORMATS:
        return decode(a, fp8.FORMATS[src])
    if src == "tf32":
        src = "f32"
    if src == "f32" and ftz:
        a = f32.flush(a)
    with np.errstate(all="ignore"):
        return decode(a, FLOATS[src].format)


def _result(value: Double, dst: str, rounding: str, ftz: bool, satfinite: bool) -> Bits:
    if dst in fp8.FORMATS:
        return encode(value, fp8.FORMATS[dst], rounding, satfinite=satfinite)
    if dst == "tf32":
        return encode(value, TF32, rounding, satfinite=satfinite) << np.uint32(13)
    if dst == "f32" and ftz:
        value = flush_tiny(value, f32.format, rounding)
    return encode(value, FLOATS[dst].format, rounding, satfinite=satfinite)


def pack_x2(
    high: Bits,
    low: Bits,
    dst: str,
    *,
    rounding: str = "rn",
    relu: bool = False,
    satfinite: bool | None = None,
) -> Bits:
    """cvt.rn.bf16x2.f32 d, high, low and its kind: two f32 to a pair, PTX's first source high.

    FP8 pairs (uint16) always saturate; f16 and bf16 pairs (uint32) where `satfinite` says so.
    """
    saturate = dst in fp8.FORMATS if satfinite is None else satfinite
    if dst == "bf16" and rounding == "rn" and not (relu or saturate):
        result = native.single(native.PACK_BF16, high, low, low)
        if result is not None:
            return result
    both = np.array((low, high))  # one pass over both: most of the time is NumPy's overhead
    first, second = floating(both, "f32", dst, rounding=rounding, relu=relu, satfinite=saturate)
    if dst in fp8.FORMATS:
        return first.astype(np.uint16) | (second.astype(np.uint16) << np.uint16(8))
    return packed.join(first, second)


def pack_fp8x2(a: Bits, src: str, dst: str, *, relu: bool = False) -> Bits:
    """cvt.rn.satfinite.e4m3x2.f16x2: a pair of 16-bit floats to a pair of FP8 codes."""
    first, second = (
        floating(half, src, dst, relu=relu, satfinite=True).astype(np.uint16)
        for half in packed.halves(a)
    )
    return first | (second << np.uint16(8))


def unpack_fp8x2(a: Bits, src: str, *, relu: bool = False) -> Bits:
    """cvt.rn.f16x2.e4m3x2: a pair of codes (uint16) to a pair of f16 (uint32); exact."""
    codes = (a & np.uint16(0xFF)).astype(np.uint8), (a >> np.uint16(8)).astype(np.uint8)
    low, high = (fp8.as_f16(code, src) for code in codes)
    if relu:
        low, high = f16.relu(low), f16.relu(high)
    return packed.join(low, high)


# Integers


def _width(kind: str) -> int:
    return int(kind[1:])


def limits(kind: str) -> tuple[int, int]:
    """Smallest and largest value of "s8" ... "u64"."""
    width = _width(kind)
    return (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (0, (1 << width) - 1)


def _pattern(kind: str) -> type[np.unsignedinteger[Any]]:
    return np.uint64 if _width(kind) == 64 else np.uint32


@quiet
def float_to_int(a: Bits, src: str, dst: str, *, rounding: str = "rzi", ftz: bool = False) -> Bits:
    """cvt.rzi.s32.f32 and its kind: rounds, saturates; uint32 (two's complement) or uint64.

    NaN gives 0, or the pattern 0x80...0 of the width (of s8 and s16 the smallest value, extended)
    where source or target has 64 bits.
    """
    value = np.asarray(_INTEGRAL[rounding](_source(a, src, ftz)))
    low, high = limits(dst)
    # 2**63 and 2**64 are exact in float64, 2**63 - 1 is not: compare with high + 1.
    above = value >= float(high + 1)
    below = value < float(low)
    nan = np.isnan(value)
    inside = np.where(above | below | nan, 0.0, value)
    if dst == "u64":
        result = inside.astype(np.uint64)
    else:
        result = inside.astype(np.int64).view(np.uint64)
    result = np.where(above, np.uint64(high), np.where(below, np.uint64(low % 2**64), result))
    wide = src == "f64" or _width(dst) == 64
    of_nan = (low if dst[0] == "s" else 1 << (_width(dst) - 1)) % 2**64 if wide else 0
    return np.where(nan, np.uint64(of_nan), result).astype(_pattern(dst))


def sign_extended(a: Bits, kind: str) -> Bits:
    """The low bits of a register as a value of `kind`, extended to 64 bits (uint64 pattern)."""
    width = _width(kind)
    shift = np.uint64(64 - width)
    top = a.astype(np.uint64) << shift
    return (
        (top.view(np.int64) >> np.int64(64 - width)).view(np.uint64)
        if kind[0] == "s"
        else top >> shift
    )


@quiet
def int_to_float(a: Bits, src: str, dst: str, *, rounding: str = "rn", sat: bool = False) -> Bits:
    """cvt.rn.f32.s32 and its kind, rounded once."""
    wide = sign_extended(a, src)
    high = (
        (wide.view(np.int64) >> np.int64(32)).astype(np.float64)
        if src[0] == "s"
        else (wide >> np.uint64(32)).astype(np.float64)
    )
    low = (wide & np.uint64(0xFFFFFFFF)).astype(np.float64)
    if dst == "f64":
        # Both are integers of at most 32 bits times a power of two: one rounded addition.
        upper = (high * 2.0**32).view(np.uint64)
        return f64.add(upper, low.view(np.uint64), rounding=rounding)
    value = sum_to_odd(high * 2.0**32, low)
    if sat:
        value = np.where(value > 0, np.minimum(value, 1.0), 0.0)
    return encode(value, FLOATS[dst].format, rounding)


def int_to_int(a: Bits, src: str, dst: str, *, sat: bool = False) -> Bits:
    """cvt between integers: extends or truncates, or saturates; sub-word results are extended."""
    wide = sign_extended(a, src)
    if sat:
        low, high = limits(dst)
        signed = src[0] == "s"
        if signed:
            value = wide.view(np.int64)
            top = min(high, 2**63 - 1)
            wide = np.clip(value, max(low, -(2**63)), top).view(np.uint64)
        else:
            wide = np.minimum(wide, np.uint64(high))
    return sign_extended(wide, dst).astype(_pattern(dst))
