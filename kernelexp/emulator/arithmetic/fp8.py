"""E4M3 and E5M2: 256 codes each, as PTX's cvt reads and writes them.

E4M3: bias 7, largest 448, subnormal step 2**-9, no infinity, NaN 0x7F and 0xFF. E5M2: bias 15,
largest 57344, infinities, NaN 0x7D to 0x7F. Every value of both is exact in f16.
"""

from __future__ import annotations

import numpy as np

from kernelexp.emulator.arithmetic.formats import E4M3, E5M2, F16, F32, Bits, decode, encode

FORMATS = {"e4m3": E4M3, "e5m2": E5M2}
_CODES = np.arange(256, dtype=np.uint8)

E4M3_AS_F32 = encode(decode(_CODES, E4M3), F32)
E5M2_AS_F32 = encode(decode(_CODES, E5M2), F32)
E4M3_AS_F16 = encode(decode(_CODES, E4M3), F16)
E5M2_AS_F16 = encode(decode(_CODES, E5M2), F16)


def as_f32(codes: Bits, kind: str) -> Bits:
    """f32 patterns of FP8 codes."""
    return (E4M3_AS_F32 if kind == "e4m3" else E5M2_AS_F32)[codes]


def as_f16(codes: Bits, kind: str) -> Bits:
    """f16 patterns of FP8 codes."""
    return (E4M3_AS_F16 if kind == "e4m3" else E5M2_AS_F16)[codes]


def from_f32(a: Bits, kind: str, *, satfinite: bool = True) -> Bits:
    """FP8 codes nearest to f32 patterns (ties to even); PTX has the satfinite form only."""
    return encode(decode(a, F32), FORMATS[kind], "rn", satfinite=satfinite)
