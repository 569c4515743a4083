"""Arithmetic in compiled code (compiled/tensor.cpp, compiled/single.cpp), where there is any.

Each function returns None where there is none, or where it leaves the operation to NumPy, which
computes the same bits.
"""

from __future__ import annotations

import ctypes

import numpy as np

from warpsim import compiled
from warpsim.arithmetic.formats import Bits
from warpsim.arithmetic.operands import code_table

_OBJECT, _LONG, _INT, _POINTER = ctypes.py_object, ctypes.c_int64, ctypes.c_int, ctypes.c_void_p
_SINGLE = (_INT, _OBJECT, _OBJECT, _OBJECT, _INT, _OBJECT)
ADD, MUL, FMA, MIN, MAX, PACK_BF16 = range(6)
"""Operations of single(); the last gives a pair of bf16, its first operand high."""
TO_ODD = 0
"""Bits of mma(): 24, of which the last is 1 where anything was lost: what rounds it to f16 rounds
the sum."""
_MATRIX = (_OBJECT, _POINTER)
_ARGUMENTS = (*[_LONG] * 4, _INT, _INT, *_MATRIX, *_MATRIX, _INT, _OBJECT, _INT, _OBJECT)


def mma(
    a: Bits,
    b: Bits,
    c: Bits | None,
    a_type: str,
    b_type: str,
    fraction: int,
    bits: int,
    out: Bits | None = None,
) -> Bits | None:
    """D = A * B^T + C as tensor.mma, or one of each in [count, M, K], [count, N, K], [count, M, N].

    out: where D goes, rows of [M, N] without gaps in them; it may be C.

    NaNs, infinities, subnormal results and codes of more than two bytes are NumPy's.
    """
    if not compiled.is_loaded() or a.itemsize > 2:
        return None
    (*rest, m, depth), n = a.shape, b.shape[-2]
    left, right = code_table(a_type), code_table(b_type)
    result = np.empty((*rest, m, n), np.uint32) if out is None else out
    if c is not None and c is not out:
        c = np.ascontiguousarray(c)
    declined = compiled.function("kx_mma", *_ARGUMENTS)(
        *(rest[0] if rest else 1, m, n, depth, fraction, bits),
        *(np.ascontiguousarray(a), left.address, np.ascontiguousarray(b), right.address),
        *(a.itemsize, c, c is not None, result),
    )
    return None if declined else result


def single(operation: int, a: Bits, b: Bits, c: Bits, *, flush: bool = False) -> Bits | None:
    """An operation on f32 patterns [rows, columns], rounded to nearest; `c` counts for FMA only."""
    if not compiled.is_loaded() or a.ndim != 2:
        return None
    result = np.empty(a.shape, np.uint32)
    declined = compiled.function("kx_single", *_SINGLE)(operation, a, b, c, flush, result)
    return None if declined else result
