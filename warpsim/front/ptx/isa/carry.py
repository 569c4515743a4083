"""Extended precision: additions, subtractions and products with a carry."""

from __future__ import annotations

from warpsim.front.ptx.decoder import PtxDecoder, copyto
from warpsim.front.ptx.isa.integer import mul_hi, mul_hi_64
from warpsim.front.ptx.registry import builder
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.registers import RegisterPart
from warpsim.machine.wave.machine import Op, WarpSet

_T = "{t:u32|s32|u64|s64}"


def _carry(d: PtxDecoder) -> int:
    """The slot of the condition code's carry flag."""
    return d.place(RegisterPart("@carry", 1, 1))


@builder("add.cc." + _T)
@builder("addc{c:|.cc}." + _T)
@builder("sub.cc." + _T)
@builder("subc{c:|.cc}." + _T)
def add_carry(d: PtxDecoder) -> Op:
    """The carry flag is the thread's own. After a subtraction it is set if nothing was borrowed, as
    nvcc's own 128-bit division relies on: its `addc` after `subc.cc` reads it so."""
    parts = d.parts
    t, takes, gives = parts[-1], parts[0].endswith("c"), "cc" in parts
    subtracts = parts[0].startswith("sub")
    target, flag = d.destination(d.operands[0]), _carry(d)
    a, b = (d.source(operand, t) for operand in d.operands[1:3])

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        x, y = R[a], R[b]
        if subtracts:
            borrow = (~R[flag]).astype(x.dtype) if takes else x.dtype.type(0)
            result = x - y - borrow
            out = (x > y) | ((x == y) & (borrow == 0))
        else:
            carry = R[flag].astype(x.dtype) if takes else x.dtype.type(0)
            result = x + y + carry
            out = (result < x) | ((result == x) & (carry != 0) & (y != 0))
        if gives:
            copyto(R[flag], out, where=m)
        copyto(R[target], result, where=m)

    return op


@builder("mad.{h:lo|hi}.cc." + _T)
@builder("madc.{h:lo|hi}{c:|.cc}." + _T)
def mad_carry(d: PtxDecoder) -> Op:
    """A product's half, plus the third operand, plus the carry."""
    parts = d.parts
    t, takes, gives = parts[-1], parts[0] == "madc", "cc" in parts
    high = parts[1] == "hi"
    target, flag = d.destination(d.operands[0]), _carry(d)
    a, b, c = (d.source(operand, t) for operand in d.operands[1:4])
    multiply_high = mul_hi_64 if t.endswith("64") else mul_hi

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        product = multiply_high(R[a], R[b], t) if high else R[a] * R[b]
        carry = R[flag].astype(product.dtype) if takes else product.dtype.type(0)
        result = product + R[c] + carry
        out = (result < product) | ((result == product) & (carry != 0) & (R[c] != 0))
        if gives:
            copyto(R[flag], out, where=m)
        copyto(R[target], result, where=m)

    return op
