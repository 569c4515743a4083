"""E4M3 and E5M2: 256 codes each, as PTX's cvt reads and writes them.

E4M3: bias 7, largest 448, subnormal step 2**-9, no infinity, NaN 0x7F and 0xFF. E5M2: bias 15,
largest 57344, infinities, NaN 0x7D to 0x7F. Every value of both is exact in f16.
"""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic.formats import E4M3, E5M2, F16, Bits, decode, encode

FORMATS = {"e4m3": E4M3, "e5m2": E5M2}
_CODES = np.arange(256, dtype=np.uint8)
_AS_F16 = {
    kind: encode(decode(_CODES, format_of_kind), F16) for kind, format_of_kind in FORMATS.items()
}


def as_f16(codes: Bits, kind: str) -> Bits:
    """f16 patterns of FP8 codes."""
    return _AS_F16[kind][codes]
