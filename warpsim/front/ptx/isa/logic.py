"""Bits: logic, shifts, fields, permutations."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpsim.arithmetic.bits import permute
from warpsim.arithmetic.integers import bits, typed
from warpsim.front.ptx.decoder import PtxDecoder, copyto
from warpsim.front.ptx.registry import alu, builder
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.wave.machine import Op, WarpSet

_BITS = "{t:b16|b32|b64}"


@alu("and.{t:b16|b32|b64|pred}", "t t t", ufunc=np.bitwise_and)
def and_(a: Array, b: Array) -> Array:
    return a & b


@alu("or.{t:b16|b32|b64|pred}", "t t t", ufunc=np.bitwise_or)
def or_(a: Array, b: Array) -> Array:
    return a | b


@alu("xor.{t:b16|b32|b64|pred}", "t t t", ufunc=np.bitwise_xor)
def xor(a: Array, b: Array) -> Array:
    return a ^ b


@alu("not.{t:b16|b32|b64|pred}", "t t")
def not_(a: Array) -> Array:
    return ~a


@alu("cnot." + _BITS, "t t")
def cnot(a: Array) -> Array:
    return (a == 0).astype(a.dtype)


@alu("shl." + _BITS, "t t u32")
def shl(a: Array, n: Array) -> Array:
    """Shifts by the width or more give 0."""
    return np.left_shift(a, _distance(n, a))


@alu("shr.{t:b16|u16|s16|b32|u32|s32|b64|u64|s64}", "t t u32")
def shr(a: Array, n: Array, t: str) -> Array:
    """Shifts by the width or more give 0, or the sign."""
    value = typed(a, t)
    width = 8 * a.itemsize
    if t[0] == "s":
        return bits(value >> np.minimum(n, width - 1).astype(value.dtype))
    return np.right_shift(a, _distance(n, a))


def _distance(n: Array, a: Array) -> Array:
    """Of a shift of `a`, in its type; NumPy too gives 0 for the width or more."""
    return (
        n.astype(a.dtype, copy=False)
        if a.itemsize >= n.itemsize
        else np.minimum(n, 16).astype(a.dtype)
    )


@alu("shf.{d:l|r}.{m:wrap|clamp}.b32", "b32 b32 b32 u32")
def shf(a: Array, b: Array, n: Array, d: str, m: str) -> Array:
    """Funnel shift of {b, a}: the high half of a left shift, the low half of a right one."""
    n = (n & 31 if m == "wrap" else np.minimum(n, 32)).astype(np.uint64)
    both = b.astype(np.uint64) << np.uint64(32) | a
    if d == "l":
        return (both << n >> np.uint64(32)).astype(np.uint32)
    return (both >> n).astype(np.uint32)


@alu("clz.{t:b32|b64}", "u32 t")
def clz(a: Array) -> Array:
    width = 8 * a.itemsize
    return (width - 1 - _highest(a)).astype(np.uint32)


def _highest(a: Array) -> Array:
    """Position of the highest one bit, -1 without any."""
    result = np.full(a.shape, -1, np.int64)
    rest = a.astype(np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        high = rest >> np.uint64(step)
        moved = high != 0
        result[moved] += step
        rest = np.where(moved, high, rest)
    return result + (rest != 0)


@alu("bfind.{t:u32|u64}", "u32 t")
def bfind(a: Array) -> Array:
    return _highest(a).astype(np.uint32)


@alu("bfind.shiftamt.{t:u32|u64}", "u32 t")
def bfind_shiftamt(a: Array) -> Array:
    array = _highest(a)
    return np.where(array < 0, -1, 8 * a.itemsize - 1 - array).astype(np.uint32)


@alu("bfind.shiftamt.{t:s32|s64}", "u32 t")
def bfind_shiftamt_signed(a: Array, t: str) -> Array:
    return bfind_shiftamt(np.where(typed(a, t) < 0, ~a, a))


@alu("bfind.{t:s32|s64}", "u32 t")
def bfind_signed(a: Array, t: str) -> Array:
    return _highest(np.where(typed(a, t) < 0, ~a, a)).astype(np.uint32)


@alu("popc.{t:b32|b64}", "u32 t")
def popc(a: Array) -> Array:
    return np.bitwise_count(a).astype(np.uint32)


@alu("brev.{t:b32|b64}", "t t")
def brev(a: Array) -> Array:
    octets = a[..., None].view(np.uint8)[..., ::-1]
    flipped = np.packbits(np.unpackbits(octets, axis=-1), axis=-1, bitorder="little")
    return np.ascontiguousarray(flipped).view(a.dtype)[..., 0]


@alu("bfe.{t:u32|u64|s32|s64}", "t t u32 u32")
def bfe(a: Array, position: Array, length: Array, t: str) -> Array:
    """Bits beyond the width are zeros or the sign. Position and length are taken modulo 256 for
    32 bits and unchanged for 64, as on an H200."""
    width = 8 * a.itemsize
    most = np.uint32(0xFF if width == 32 else 0xFFFF_FFFF)
    p, n = (position & most).astype(np.int64), (length & most).astype(np.int64)
    shifted = shr(a, np.minimum(p, width).astype(np.uint32), t)
    mask = _ones(n, width, a.dtype)
    if t[0] == "u":
        return shifted & mask
    sign_at = np.clip(np.minimum(p + n - 1, width - 1), 0, None).astype(a.dtype)
    negative = (a >> sign_at & 1).astype(bool) & (n > 0)
    return np.where(n == 0, 0, np.where(negative, shifted | ~mask, shifted & mask)).astype(a.dtype)


@alu("bfi.{t:b32|b64}", "t t t u32 u32")
def bfi(a: Array, b: Array, position: Array, length: Array) -> Array:
    """Position and length are taken modulo 256 for 32 bits and unchanged for 64, as bfe's."""
    width = 8 * a.itemsize
    most = np.uint32(0xFF if width == 32 else 0xFFFF_FFFF)
    p, n = (position & most).astype(np.int64), (length & most).astype(np.int64)
    mask = shl(_ones(n, width, a.dtype), p.astype(np.uint32))
    return (b & ~mask) | (shl(a, p.astype(np.uint32)) & mask)


def _ones(count: Array, width: int, dtype: Any) -> Array:
    shift = np.clip(width - count, 0, width - 1).astype(dtype)
    return np.where(count <= 0, 0, ~np.zeros(count.shape, dtype) >> shift).astype(dtype)


@alu("bmsk.{m:clamp|wrap}.b32", "b32 u32 u32")
def bmsk(position: Array, length: Array, m: str) -> Array:
    if m == "wrap":
        position, length = position & 31, length & 31
    return shl(_ones(length.astype(np.int64), 32, np.uint32), position)


@alu("szext.{m:clamp|wrap}.{t:u32|s32}", "t t u32")
def szext(a: Array, n: Array, m: str, t: str) -> Array:
    n = np.minimum(n, 32) if m == "clamp" else n & 31
    left = (32 - n).astype(np.uint32)
    return np.where(n == 0, 0, shr(shl(a, left), left, t))


def _lop3(a: Array, b: Array, c: Array, table: int) -> Array:
    result = np.zeros_like(a)
    for index in range(8):
        if table >> index & 1:
            term = a if index & 4 else ~a
            term = term & (b if index & 2 else ~b)
            result |= term & (c if index & 1 else ~c)
    return result


@builder("lop3.b32")
def lop3(d: PtxDecoder) -> Op:
    """Any logic function of three operands, by its truth table."""
    target = d.destination(d.operands[0])
    a, b, c = (d.source(operand, "b32") for operand in d.operands[1:4])
    table = d.constant(d.operands[4])

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[target], _lop3(R[a], R[b], R[c], table), where=m)

    return Formed(op, CompiledForm("lop3.b32", (target, a, b, c), (table,)))


@alu("prmt.b32", "b32 b32 b32 b32")
def prmt(a: Array, b: Array, selector: Array) -> Array:
    """Picks four bytes from eight; bit 3 of a selector repeats the byte's sign."""
    return permute(a, selector, b)


@alu("prmt.b32.{k:f4e|b4e|rc8|ecl|ecr|rc16}", "b32 b32 b32 b32")
def prmt_mode(a: Array, b: Array, selector: Array, k: str) -> Array:
    return permute(a, selector, b, k.upper())


@alu("fns.b32", "b32 b32 b32 s32")
def fns(mask: Array, base: Array, offset: Array) -> Array:
    """The offset-th set bit from bit `base` on, upwards or downwards."""
    result = np.full(mask.shape, 0xFFFF_FFFF, np.uint32)
    for at in np.ndindex(mask.shape):
        value, start, count = int(mask[at]), int(base[at]), int(offset[at].astype(np.int32))
        order = range(start, 32) if count >= 0 else range(min(start, 31), -1, -1)
        positions = [bit for bit in order if value >> bit & 1]
        if count == 0:
            result[at] = start if value >> start & 1 else 0xFFFF_FFFF
        elif len(positions) >= abs(count):
            result[at] = positions[abs(count) - 1]
    return result
