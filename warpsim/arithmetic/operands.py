"""Tensor-core operands decoded: values, exponents and lowest bits.

The exponent is that of the *unnormalised* significand, as the aligning hardware sees it: of a
subnormal the format's smallest exponent, of zero none (ZERO_EXPONENT, below every real one).
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from warpsim.arithmetic.formats import (
    BF16,
    E4M3,
    E5M2,
    F16,
    F32,
    Bits,
    Double,
    Format,
    decode,
    magnitude_to_double,
)

Integers = npt.NDArray[np.signedinteger[Any]]

# Sums of two exponents stay in int16, and below those of any two values that aren't zero.
ZERO_EXPONENT = -2000
_ZERO_LOW_BIT = 2000

_CODE = np.dtype([("value", np.float32), ("exponent", np.int16), ("fineness", np.int16)])
_SPECIAL = 32767
"""Exponent of infinities and NaNs in a _CODE."""

_REMEMBERED = 256
"""Operands, of about 100 KB each."""

UE8M0_BIAS = 127
SCALED = " scaled"
"""Ends the name of a type of one byte whose codes have a scale in UE8M0 in a byte above them."""

_FORMATS: dict[str, Format] = {"e4m3": E4M3, "e5m2": E5M2, "f16": F16, "bf16": BF16}


def _narrow(name: str, bits: int, precision: int, min_exponent: int) -> Format:
    # The formats of 6 and 4 bits have no infinity and no NaN; a code sits in a byte's low bits.
    return Format(
        name=name,
        bits=bits,
        precision=precision,
        min_exponent=min_exponent,
        max_finite=(1 << (bits - 1)) - 1,
        nan=0,
        infinity=None,
    )


_NARROW = {
    "e2m3": _narrow("e2m3", 6, 4, 0),
    "e3m2": _narrow("e3m2", 6, 3, -2),
    "e2m1": _narrow("e2m1", 4, 2, 0),
}


class Operand(msgspec.Struct, frozen=True, kw_only=True):
    """One matrix of a tensor instruction, [rows, K]; NaNs and infinities count as zeros here."""

    values: Double
    exponents: Integers
    low: Integers
    """Exponent of the lowest set bit in each row: every value is a multiple of 2**low."""
    special: Double | None
    """The values with NaNs and infinities in place, where there are any."""


class CodeTable(msgspec.Struct, frozen=True, dict=True):
    """Codes' values, which may be NaN or infinite, their exponents and their lowest bits."""

    values: Double
    exponents: Integers
    low: Integers
    finite: npt.NDArray[np.bool_]

    @functools.cached_property
    def packed(self) -> npt.NDArray[np.void]:
        """The same of one code after the other, as compiled code reads them."""
        packed = np.empty(self.values.shape, _CODE)
        with np.errstate(over="ignore", invalid="ignore"):
            packed["value"] = self.values
        packed["exponent"] = np.where(self.finite, self.exponents, _SPECIAL)
        packed["fineness"] = -self.low
        return packed

    @functools.cached_property
    def address(self) -> int:
        """Of `packed`, for compiled code."""
        return self.packed.ctypes.data


def operand(codes: Bits, kind: str) -> Operand:
    """Decodes codes [rows, K] of a type of tensor instructions."""
    return _decoded(codes.tobytes(), codes.dtype, codes.shape, kind)


@functools.lru_cache(maxsize=_REMEMBERED)
def _decoded(content: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], kind: str) -> Operand:
    """By content: a tile is multiplied with several others."""
    codes = np.frombuffer(content, dtype).reshape(shape)
    table = _of_wide(codes) if kind == "tf32" else _look_up(code_table(kind), codes)
    finite = bool(table.finite.all())
    values = table.values if finite else np.where(table.finite, table.values, 0.0)
    return Operand(
        values=values,
        exponents=table.exponents,
        low=table.low.min(axis=1),
        special=None if finite else table.values,
    )


def is_finite(codes: Bits, kind: str) -> bool:
    """Whether codes of a type, which may be one of integers, have no NaN and no infinity."""
    if kind[0] in "su":
        return True
    table = _of_wide(codes) if kind == "tf32" else _look_up(code_table(kind), codes)
    return bool(table.finite.all())


def _look_up(table: CodeTable, codes: Bits) -> CodeTable:
    return CodeTable(
        table.values[codes], table.exponents[codes], table.low[codes], table.finite[codes]
    )


@functools.cache
def code_table(kind: str) -> CodeTable:
    """Every code of a type: 256 or 65,536 entries."""
    if kind.endswith(SCALED):
        return _scaled(code_table(kind.removesuffix(SCALED)))
    if kind in _NARROW:
        fmt = _NARROW[kind]
        codes = np.arange(256, dtype=np.uint64)
        magnitude = magnitude_to_double(codes & np.uint64(fmt.sign - 1), fmt)
        values = np.where(codes & np.uint64(fmt.sign), -magnitude, magnitude)
    else:
        fmt = _FORMATS[kind]
        values = decode(np.arange(1 << fmt.bits, dtype=np.uint32).astype(fmt.dtype), fmt)
    return _described(values, fmt.min_exponent)


def _scaled(table: CodeTable) -> CodeTable:
    scale = np.arange(256)[:, None] - UE8M0_BIAS
    zero = table.exponents == ZERO_EXPONENT
    values = np.ldexp(table.values, scale)
    values[-1] = np.nan  # the scale 0xFF
    exponents = np.where(zero, ZERO_EXPONENT, table.exponents + scale)
    low = np.where(zero, _ZERO_LOW_BIT, table.low + scale)
    return CodeTable(
        values.ravel(),
        exponents.astype(np.int16).ravel(),
        low.astype(np.int16).ravel(),
        np.isfinite(values).ravel(),
    )


def _of_wide(codes: Bits) -> CodeTable:
    """TF32: the upper 19 bits of an f32 pattern; the hardware ignores the others."""
    values = decode(codes & np.uint32(0xFFFFE000), F32)
    return _described(values, F32.min_exponent)


def _described(values: Double, min_exponent: int) -> CodeTable:
    finite = np.isfinite(values)
    safe = np.where(finite, values, 0.0)
    nonzero = safe != 0
    exponents = np.maximum(np.frexp(safe)[1] - 1, min_exponent)
    return CodeTable(
        values,
        np.where(nonzero, exponents, ZERO_EXPONENT).astype(np.int16),
        np.where(nonzero, _lowest_bit(safe), _ZERO_LOW_BIT).astype(np.int16),
        finite,
    )


def _lowest_bit(values: Double) -> Integers:
    """Exponent of the lowest set bit of each float64."""
    significand, exponent = np.frexp(values)
    whole = np.abs(significand * 2.0**53).astype(np.int64)
    isolated = (whole & -whole).astype(np.float64)
    return np.frexp(isolated)[1] - 1 + exponent - 53
