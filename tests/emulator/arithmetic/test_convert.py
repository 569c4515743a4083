from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from definition import is_special, rounded, value
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsim.arithmetic import convert
from warpsim.arithmetic.formats import BF16, E4M3, E5M2, F16, F32, F64, Format

FORMATS: dict[str, Format] = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
some = settings(max_examples=40, deadline=None)
ROUND = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def bits_of(x: float) -> np.ndarray:
    return np.array([x], np.float64).view(np.uint64)


@pytest.mark.parametrize("fmt", [E4M3, E5M2], ids=lambda fmt: fmt.name)
def test_every_fp8_code_has_the_value_that_its_fields_say(fmt: Format) -> None:
    codes = np.arange(256, dtype=np.uint8)
    got = convert.floating(codes, fmt.name, "f32").view(np.float32)
    for code in range(256):
        wanted = value(code, fmt)
        assert float(wanted) == got[code] or (math.isnan(wanted) and math.isnan(got[code]))
        assert math.copysign(1, got[code]) == (-1 if code & 0x80 else 1) or math.isnan(wanted)


@pytest.mark.parametrize("fmt", [E4M3, E5M2], ids=lambda fmt: fmt.name)
def test_every_fp8_code_comes_back_from_f32(fmt: Format) -> None:
    codes = np.arange(256, dtype=np.uint8)
    numbers = np.array([not is_special(value(code, fmt)) for code in range(256)])
    wide = convert.floating(codes, fmt.name, "f32")
    back = convert.floating(wide, "f32", fmt.name, satfinite=True)
    assert np.array_equal(back[numbers], codes[numbers])


@pytest.mark.parametrize(
    ("x", "e4m3", "e5m2"),
    [
        (math.nan, 0x7F, 0x7F),
        (math.inf, 0x7E, 0x7B),
        (-math.inf, 0xFE, 0xFB),
        (1e9, 0x7E, 0x7B),
        (464.0, 0x7E, 0x5F),  # halfway past the largest E4M3
        (2.0**-10, 0x00, 0x14),  # halfway to the smallest subnormal E4M3: to even
        (2.0**-10 * 1.01, 0x01, 0x14),
        (-0.0, 0x80, 0x80),
    ],
)
def test_satfinite_saturates_and_keeps_nan(x: float, e4m3: int, e5m2: int) -> None:
    pattern = np.array([x], np.float32).view(np.uint32)
    got = [convert.floating(pattern, "f32", kind, satfinite=True) for kind in ("e4m3", "e5m2")]
    assert [int(item[0]) for item in got] == [e4m3, e5m2]


@pytest.mark.parametrize("dst", ["f16", "bf16", "f32", "e4m3", "e5m2"])
@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
@some
@given(x=st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.floats(-500, 500)))
def test_narrowing_is_one_rounding(dst: str, rounding: str, x: float) -> None:
    fmt = {**FORMATS, "e4m3": E4M3, "e5m2": E5M2}[dst]
    eight = fmt.bits == 8
    if eight and rounding != "rn":
        return  # PTX has no such form
    got = convert.floating(bits_of(x), "f64", dst, rounding=rounding, satfinite=eight)
    wanted = rounded(Fraction(x), fmt, rounding, negative_zero=math.copysign(1, x) < 0)
    if eight:
        wanted = min(wanted % fmt.sign, fmt.max_finite) | (wanted & fmt.sign)
    assert int(got[0]) == wanted


@pytest.mark.parametrize("dst", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("rounding", ROUND)
@some
@given(x=st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.floats(-2e10, 2e10),
                   st.integers(-(2**65), 2**65).map(float)))  # fmt: skip
def test_a_float_to_an_integer_rounds_then_saturates(dst: str, rounding: str, x: float) -> None:
    low, high = convert.limits(dst)
    wanted = min(max(ROUND[rounding](Fraction(x)), low), high)
    got = int(convert.float_to_int(bits_of(x), "f64", dst, rounding=rounding)[0])
    assert got == wanted % (2**64 if dst[1:] == "64" else 2**32)


@pytest.mark.parametrize(
    ("src", "dst", "wanted"),
    [("f32", "s32", 0), ("f32", "u32", 0), ("f32", "s64", 1 << 63), ("f64", "s32", 1 << 31),
     ("f64", "u32", 1 << 31), ("f64", "u64", 1 << 63), ("f64", "s8", 0xFFFFFF80)],
)  # fmt: skip
def test_nan_becomes_zero_or_the_top_bit_where_64_bits_are_involved(
    src: str, dst: str, wanted: int
) -> None:
    nan = np.array([0x7FC00000], np.uint32) if src == "f32" else bits_of(math.nan)
    assert int(convert.float_to_int(nan, src, dst)[0]) == wanted


@pytest.mark.parametrize("src", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("dst", ["f16", "bf16", "f32", "f64"])
@some
@given(pattern=st.integers(0, 2**64 - 1), rounding=st.sampled_from(["rn", "rz", "rm", "rp"]))
def test_an_integer_to_a_float_is_one_rounding(
    src: str, dst: str, pattern: int, rounding: str
) -> None:
    width = int(src[1:])
    pattern %= 2**width
    signed = pattern - 2**width if src[0] == "s" and pattern >> (width - 1) else pattern
    a = np.array([pattern], np.uint64 if width == 64 else np.uint32)
    got = int(convert.int_to_float(a, src, dst, rounding=rounding)[0])
    assert got == rounded(Fraction(signed), FORMATS[dst], rounding)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["s8", "u8", "s16", "u16", "s32", "u32"]),
       st.sampled_from(["s8", "u8", "s16", "u16"]))  # fmt: skip
def test_integers_saturate_or_wrap(pattern: int, src: str, dst: str) -> None:
    width = int(src[1:])
    unsigned = pattern % 2**width
    number = unsigned - 2**width if src[0] == "s" and unsigned >> (width - 1) else unsigned
    low, high = convert.limits(dst)
    a = np.array([pattern], np.uint32)
    assert int(convert.int_to_int(a, src, dst, sat=True)[0]) == min(max(number, low), high) % 2**32
    wrapped = (number - low) % (high - low + 1) + low
    assert int(convert.int_to_int(a, src, dst)[0]) == wrapped % 2**32


def test_the_first_source_of_a_packed_conversion_becomes_the_high_half() -> None:
    one, two = (np.array([x], np.float32).view(np.uint32) for x in (1.0, 2.0))
    assert int(convert.pack_x2(one, two, "bf16")[0]) == 0x3F804000
    assert int(convert.pack_x2(one, two, "e4m3")[0]) == 0x3840


@given(st.integers(0, 0xFFFF))
def test_fp8_pairs_widen_to_f16_exactly(pair: int) -> None:
    wide = int(convert.unpack_fp8x2(np.array([pair], np.uint16), "e5m2")[0])
    for code, half in ((pair & 0xFF, wide & 0xFFFF), (pair >> 8, wide >> 16)):
        left, right = value(code, E5M2), value(half, F16)
        assert left == right or (math.isnan(left) and math.isnan(right))
