"""Logic, shifts, bytes and fields of words; predicates."""

from __future__ import annotations

import numpy as np

from warpsim.arithmetic import bits
from warpsim.front.sass.decoder import SassDecoder, applied, copyto, signs_of
from warpsim.front.sass.operands import Reader, part_of
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import File, Other, RegisterOperand
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.wave.machine import Op, WarpSet


@covers("MOV", "UMOV")
def mov(d: SassDecoder) -> Op:
    target, a = d.take(d.operands, 2)
    return d.formed(applied(d.to(target), lambda x: x, (d.bits(a),)), "mov.b32", target, (a,))


@covers("MOV.SPILL")
def spill(d: SassDecoder) -> Op:
    """Keeps a register of the warp in one of its lanes', in all of them."""
    target, a = d.take(d.operands, 2)
    slot, read = d.to(target), d.bits(a)
    d.unguarded()
    return lambda R, m, warps: copyto(R[slot], read(R))


@covers("CS2R", "CS2R.32")
def cs2r(d: SassDecoder) -> Op:
    """Zeros, or the clock, which counts the emulator's own steps. The size of the cluster, by which
    kernels find what the driver says of it in constant bank 0, is zero."""
    target, source = d.take(d.operands, 2)
    name = getattr(source, "name", "")
    if name in ("SRZ", "SR_CgaSize"):
        slots = d.to_words(target, 1 if "32" in d.modifiers else 2)
        zero = np.uint32(0)

        def clear(R: list[Array], m: Mask, warps: WarpSet) -> None:
            for slot in slots:
                copyto(R[slot], zero, where=m)

        return clear
    if name not in ("SR_CLOCKLO", "SR_GLOBALTIMERLO"):
        raise d.refuse("reads a special register that the emulator does not have")
    slots = d.to_words(target, 1 if "32" in d.modifiers else 2)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        now = warps.machine.read_clock()
        for part, slot in enumerate(slots):
            copyto(R[slot], np.uint32(now >> 32 * part & 0xFFFF_FFFF), where=m)

    return op


@covers("LOP3.LUT", "LOP3.LUT.PAND", "ULOP3.LUT")
def lop3(d: SassDecoder) -> Op:
    """Any logic function of three words by its table; the predicate is whether any bit is set, or
    the last operand holds (`.PAND`: and it holds)."""
    operands = list(d.operands)
    out = None
    if isinstance(operands[0], RegisterOperand) and operands[0].file in ("P", "UP"):
        out = d.to_predicate(operands.pop(0))
    target, a, b, c, table, other = d.take(operands, 6)
    slot, lut, with_ = d.to(target), d.constant(table), d.predicate(other)
    x, y, z = d.integer(a), d.integer(b), d.integer(c)
    both = "PAND" in d.modifiers

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        result = bits.lop3(x(R), y(R), z(R), lut)
        if out is not None:
            nonzero = result != 0
            nonzero = nonzero & with_(R) if both else nonzero | with_(R)
            copyto(R[out], nonzero, where=m)
        copyto(R[slot], result, where=m)

    if out is None:
        return d.formed(op, "lop3.b32", target, (a, b, c), lut)
    if part_of(other) or any(map(part_of, (a, b, c))):
        return op
    predicate, negated = d.predicate_slot(other)
    words = (d.words(operand, 1)[0] for operand in (a, b, c))
    numbers = lut, 1 + both, negated
    return Formed(
        op,
        CompiledForm(
            "lop3.b32", (slot, *words, out, predicate), numbers, signs=signs_of((a, b, c))
        ),
    )


@covers("PLOP3.LUT", "UPLOP3.LUT")
def plop3(d: SassDecoder) -> Op:
    """The same of three predicates, which may be the sign bits of words: two functions at once."""
    first, second, *sources, one, other = d.take(d.operands, 7)
    yes, no = d.to_predicate(first), d.to_predicate(second)
    p, q, r = (d.predicate(source) for source in sources)
    tables = d.constant(one), d.constant(other)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        values = p(R), q(R), r(R)
        results = [bits.truth(table, *values) for table in tables]
        copyto(R[yes], results[0], where=m)
        copyto(R[no], results[1], where=m)

    if any(map(part_of, sources)):
        return op
    pairs = [d.predicate_slot(source) for source in sources]
    negated = sum(flip << index for index, (_, flip) in enumerate(pairs))
    slots = yes, no, *(slot for slot, _ in pairs)
    return Formed(op, CompiledForm("plop3.pred", slots, (*tables, negated)))


@covers("SHF.{:L|R}{:|.W}.{:U32|S32|U64|S64}{:|.HI}", "USHF.{:L|R}{:|.W}.{:U32|S32|U64|S64}{:|.HI}")
def shf(d: SassDecoder) -> Op:
    """A shift of {high, low}: its lower word, `.HI` its upper one. The distance is at most 32 (64
    of 64-bit types), or wraps there (`.W`)."""
    target, low, shift, high = d.take(d.operands, 4)
    parts = d.instruction.modifiers
    kind = next(part for part in parts if part in ("U32", "S32", "U64", "S64"))
    left, wraps, upper = parts[0] == "L", "W" in parts, "HI" in parts

    def function(x: Array, s: Array, y: Array) -> Array:
        return bits.funnel(x, s, y, left=left, kind=kind, wraps=wraps, upper=upper)

    op = applied(d.to(target), function, (d.bits(low), d.bits(shift), d.bits(high)))
    numbers = left, int(kind[1:]), kind[0] == "S", wraps, upper
    return d.formed(op, "shf.b64", target, (low, shift, high), *numbers)


@covers("PRMT{:|.F4E|.B4E|.RC8|.ECL|.ECR|.RC16}", "UPRMT")
def prmt(d: SassDecoder) -> Op:
    """Four bytes of two words, each by four bits of a selector; modes as PTX's."""
    target, a, selector, b = d.take(d.operands, 4)
    mode = (d.instruction.modifiers or ("",))[0]
    op = applied(
        d.to(target),
        lambda x, s, y: bits.permute(x, s, y, mode),
        (d.bits(a), d.bits(selector), d.bits(b)),
    )
    return op if mode else d.formed(op, "prmt.b32", target, (a, b, selector))


@covers("BMSK{:|.W}", "UBMSK{:|.W}")
def bmsk(d: SassDecoder) -> Op:
    target, position, length = d.take(d.operands, 3)
    wraps = "W" in d.modifiers
    return applied(
        d.to(target),
        lambda x, y: bits.mask(x, y, wraps=wraps),
        (d.bits(position), d.bits(length)),
    )


@covers("SGXT{:|.W}{:|.U32}", "USGXT{:|.W}{:|.U32}")
def sgxt(d: SassDecoder) -> Op:
    """The low bits of a word, extended by their sign or by zeros (`.U32`)."""
    target, a, length = d.take(d.operands, 3)
    wraps, signed = "W" in d.modifiers, "U32" not in d.modifiers
    return applied(
        d.to(target),
        lambda x, n: bits.extend(x, n, signed=signed, wraps=wraps),
        (d.bits(a), d.bits(length)),
    )


@covers("BREV", "UBREV")
def brev(d: SassDecoder) -> Op:
    target, a = d.take(d.operands, 2)
    return applied(d.to(target), bits.reverse, (d.integer(a),))


@covers("POPC", "UPOPC")
def popc(d: SassDecoder) -> Op:
    target, a = d.take(d.operands, 2)
    op = applied(d.to(target), lambda x: np.bitwise_count(x).astype(np.uint32), (d.integer(a),))
    return d.formed(op, "popc.b32", target, (a,))


@covers("FLO{:|.U32}{:|.SH}", "UFLO{:|.U32}{:|.SH}")
def flo(d: SassDecoder) -> Op:
    """The highest bit, of signed numbers that differs from the sign; `.SH` counts from the top."""
    target, a = d.take(d.operands, 2)
    signed, shift = "U32" not in d.modifiers, "SH" in d.modifiers
    return applied(
        d.to(target),
        lambda x: bits.highest(x, signed=signed, shift=shift),
        (d.integer(a),),
    )


@covers("P2R{:|.B1|.B2|.B3}")
def p2r(d: SassDecoder) -> Op:
    """The predicates under a mask in a byte, the other bits of a word."""
    target, file, a, mask = d.take(d.operands, 4)
    if file != Other("PR"):
        raise d.refuse("packs other than the predicates of lanes")
    byte = next((int(name[1]) for name in d.instruction.modifiers if name.startswith("B")), 0)
    return _packed(d, "P", d.to(target), d.bits(a), d.constant(mask), 8 * byte)


def _packed(d: SassDecoder, file: File, slot: int, word: Reader, mask: int, first: int = 0) -> Op:
    places = {
        index: d.bit_of(RegisterOperand(file=file, index=index))
        for index in range(7)
        if mask >> index & 1
    }
    keep = np.uint32((mask & 0x7F) << first)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        packed = np.zeros_like(R[slot])
        for index, place in places.items():
            packed |= R[place].astype(np.uint32) << np.uint32(first + index)
        copyto(R[slot], word(R) & ~keep | packed & keep, where=m)

    return op


@covers("UP2UR")
def up2ur(d: SassDecoder) -> Op:
    """The same of the predicates of the warp."""
    target, file, a, mask = d.take(d.operands, 4)
    if file != Other("UPR"):
        raise d.refuse("packs other than the predicates of the warp")
    return _packed(d, "UP", d.to(target), d.bits(a), d.constant(mask))


@covers("R2P")
def r2p(d: SassDecoder) -> Op:
    """The bits of a word under a mask to the predicates."""
    file, a, mask = d.take(d.operands, 3)
    if file != Other("PR"):
        raise d.refuse("unpacks other than the predicates of lanes")
    word, keep = d.narrow(a), d.constant(mask)
    places = [
        (index, d.to_predicate(RegisterOperand(file="P", index=index)))
        for index in range(7)
        if keep >> index & 1
    ]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        value = word(R)
        for index, place in places:
            copyto(R[place], (value >> np.uint32(index) & np.uint32(1)).astype(bool), where=m)

    return op
