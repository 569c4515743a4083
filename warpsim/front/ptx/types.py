"""Widths of PTX types, and literals as their bits."""

from __future__ import annotations

import struct

import numpy as np

from warpsim.front.ptx.syntax import Immediate

_PAIRS = {"f16x2": 32, "bf16x2": 32, "e4m3x2": 16, "e5m2x2": 16, "u16x2": 32, "s16x2": 32} | {
    "e2m1x2": 8,
    "e2m3x2": 16,
    "e3m2x2": 16,
    "ue8m0x2": 16,
}
_WIDTHS = _PAIRS | {"pred": 1, "tf32": 32, "bf16": 16, "f32x2": 64, "e4m3": 8, "e5m2": 8}


def width_of(type_name: str) -> int:
    """Bits of a PTX type: width_of("bf16x2") is 32."""
    return _WIDTHS.get(type_name) or int(type_name[1:])


def literal(operand: Immediate, kind: str) -> int:
    """The bits of a literal as PTX type `kind`: 0d literals are rounded to the type."""
    bits = width_of(kind)
    if operand.float_bits == 64 and bits == 32:
        value = struct.unpack("<d", struct.pack("<Q", operand.value))[0]
        return int(np.float32(value).view(np.uint32))
    if operand.float_bits == 32 and kind == "f64":
        value = struct.unpack("<f", struct.pack("<I", operand.value))[0]
        return int(np.float64(value).view(np.uint64))
    return operand.value & ((1 << bits) - 1)
