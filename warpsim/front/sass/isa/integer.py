"""Integer sums, products, comparisons and choices, of lanes and of the warp."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from warpsim.arithmetic import convert
from warpsim.arithmetic.packed import halves, join
from warpsim.front.sass.decoder import SassDecoder, applied, copyto, is_uniform
from warpsim.front.sass.operands import Reader, is_plain, is_zero, part_of
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import LiteralOperand, Operand
from warpsim.machine.core import registers
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.wave.machine import Op, WarpSet

_COMPARE = "{:F|LT|EQ|LE|GT|NE|GE|T}"
_COMBINE = "{:AND|OR|XOR}"
COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "F": lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape), bool),
    "LT": np.less,
    "EQ": np.equal,
    "LE": np.less_equal,
    "GT": np.greater,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "T": lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape), bool),
}
COMBINATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "AND": np.logical_and,
    "OR": np.logical_or,
    "XOR": np.logical_xor,
}


def signed(a: Array) -> Array:
    """The same bits as signed integers."""
    return a.view(np.int32 if a.itemsize == 4 else np.int64)


@covers("IADD3", "IADD3.X", "UIADD3", "UIADD3.X")
def iadd3(d: SassDecoder) -> Op:
    """a + b + c; the predicates are whether it reaches 2^32 and 2^33, a negated operand being
    ~x + 1. `.X` takes in two carries."""
    first, carries, rest = d.split()
    extended = "X" in d.modifiers
    operands = d.take(rest, 5 if extended else 3)
    if not (extended or carries):
        readers = [d.integer(operand) for operand in operands]
        plain = applied(d.to(first), lambda x, y, z: x + y + z, readers)
        some = [operand for operand in operands if not is_zero(operand)]
        return d.formed(plain, "add.u32", first, some) if len(some) == 2 else plain
    target, outs = d.to(first), [d.to_predicate(carry) for carry in carries]
    terms = [d.addend(operand) for operand in operands[:3]]
    ins = [d.predicate(operand) for operand in operands[3:]]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        total = terms[0](R) + terms[1](R) + terms[2](R)
        for carry in ins:
            total = total + carry(R)
        for index, out in enumerate(outs, 1):
            copyto(R[out], total >= np.uint64(index << 32), where=m)
        copyto(R[target], total.astype(np.uint32), where=m)

    return op


@covers("UIADD3.64")
def uiadd3_wide(d: SassDecoder) -> Op:
    """The same of 64 bits without carries; a literal is extended by its sign."""
    target, carries, rest = d.split()
    if any(d.truth(carry) is not True for carry in carries):
        raise d.refuse("gives a carry, which is not covered")
    operands = d.take(rest, 3)
    write, terms = d.to_pair(target), [_wide(d, operand) for operand in operands]
    return lambda R, m, warps: write(R, terms[0](R) + terms[1](R) + terms[2](R), m)


def _wide(d: SassDecoder, operand: Operand) -> Reader:
    if isinstance(operand, LiteralOperand):
        value = operand.value - (operand.value >> 31 << 32)
        slot = d.slot(registers.Literal(value % (1 << 64), 64))
        return lambda R: R[slot]
    return d.pair(operand)


@covers("IMAD{:|.U32|.MOV|.MOV.U32|.IADD|.IADD.U32|.SHL|.SHL.U32}", "UIMAD{:|.U32|.MOV|.IADD}")
def imad(d: SassDecoder) -> Op:
    """The low 32 bits of a * b + c."""
    first, carries, rest = d.split()
    if carries:
        raise d.refuse("gives a carry, which is not covered")
    operands = d.take(rest, 3)
    op = applied(
        d.to(first), lambda x, y, z: x * y + z, [d.integer(operand) for operand in operands]
    )
    if is_zero(operands[0]):
        return d.formed(op, "mov.b32", first, operands[2:])
    return d.formed(op, "mad.lo.u32", first, operands)


@covers("IMAD{:|.U32}.X")
def imad_extended(d: SassDecoder) -> Op:
    """The low 32 bits of a * b + c + carry."""
    first, carries, rest = d.split()
    operands = d.take(rest, 4)
    if carries:
        raise d.refuse("gives a carry, which is not covered")
    sources = [*(d.integer(o) for o in operands[:3]), d.predicate(operands[3])]
    return applied(d.to(first), lambda x, y, z, p: x * y + z + p.astype(np.uint32), sources)


def _product(d: SassDecoder, rest: list[Operand]) -> Callable[[list[Array]], tuple[Array, Array]]:
    """(a * b + c + carry as 64 bits, whether the sum has carried)."""
    extended, unsigned = "X" in d.modifiers, "U32" in d.modifiers
    operands = d.take(rest, 4 if extended else 3)
    a, b, c = d.bits(operands[0]), d.bits(operands[1]), d.pair(operands[2])
    carry = d.predicate(operands[3]) if extended else None

    def wide(R: list[Array], source: Reader) -> Array:
        value = source(R)
        return value.astype(np.uint64) if unsigned else signed(value).astype(np.int64)

    def compute(R: list[Array]) -> tuple[Array, Array]:
        product = (wide(R, a) * wide(R, b)).view(np.uint64)
        total = product + c(R)
        carried = total < product
        if carry is not None:
            more = total + carry(R)
            carried, total = carried | (more < total), more
        return total, carried

    return compute


@covers("IMAD.WIDE{:|.U32}{:|.X}", "UIMAD.WIDE{:|.U32}")
def imad_wide(d: SassDecoder) -> Op:
    """64 bits of a * b + c, c of 64 bits; the predicate is the sum's carry, `.X` takes one in."""
    first, carries, rest = d.split()
    compute, write = _product(d, rest), d.to_pair(first)
    return _with_carries(d, compute, write, carries)


@covers("IMAD.HI{:|.U32}", "UIMAD.HI{:|.U32}")
def imad_high(d: SassDecoder) -> Op:
    """The upper half of a * b + c, c of 64 bits; the predicate is the sum's carry."""
    first, carries, rest = d.split()
    compute, target = _product(d, rest), d.to(first)

    def write(R: list[Array], total: Array, m: Mask) -> None:
        copyto(R[target], (total >> np.uint64(32)).astype(np.uint32), where=m)

    return _with_carries(d, compute, write, carries)


def _with_carries(
    d: SassDecoder,
    compute: Callable[[list[Array]], tuple[Array, Array]],
    write: Callable[[list[Array], Array, Mask], None],
    carries: Sequence[Operand],
) -> Op:
    """Writes the sum by `write`, and its carry to the predicates `carries`."""
    outs = [d.to_predicate(carry) for carry in carries]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        total, carried = compute(R)
        write(R, total, m)
        for out in outs:
            copyto(R[out], carried, where=m)

    return op


@covers("LEA", "LEA.HI{:|.SX32}{:|.X}", "LEA.HI.X.SX32")
@covers("ULEA", "ULEA.HI{:|.SX32}{:|.X}", "ULEA.HI.X.SX32")
def lea(d: SassDecoder) -> Op:
    """(a << k) + b with its carry; `.HI` the upper half of {c, a} << k, or of a with its sign
    (`.SX32`), and `.X` takes a carry in."""
    first, carries, rest = d.split()
    high, extended = "HI" in d.modifiers, "X" in d.modifiers
    pairs = high and "SX32" not in d.modifiers
    operands = d.take(rest, 3 + pairs + extended)
    plain = not (high or extended or carries)
    a = d.integer(operands[0]) if plain else d.bits(operands[0])
    b = d.addend(operands[1])
    upper = d.bits(operands[2]) if pairs else None
    shift = d.constant(operands[2 + pairs])
    carry = d.predicate(operands[-1]) if extended else None
    target, outs = d.to(first), [d.to_predicate(c) for c in carries]

    def moved(R: list[Array]) -> Array:
        low = a(R)
        if not high:
            return (low << np.uint32(shift)).astype(np.uint64)
        if upper is None:
            whole = signed(low).astype(np.int64).view(np.uint64)
        else:
            whole = upper(R).astype(np.uint64) << np.uint64(32) | low
        return whole >> np.uint64(32 - shift) & np.uint64(0xFFFF_FFFF)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        total = moved(R) + b(R)
        if carry is not None:
            total = total + carry(R)
        for out in outs:
            copyto(R[out], total >= np.uint64(1 << 32), where=m)
        copyto(R[target], total.astype(np.uint32), where=m)

    return op


@covers(f"ISETP.{_COMPARE}{{:|.U32}}.{_COMBINE}{{:|.EX}}")
@covers(f"UISETP.{_COMPARE}{{:|.U32}}.{_COMBINE}{{:|.EX}}")
def isetp(d: SassDecoder) -> Op:
    """The comparison and its opposite, each combined with a predicate; `.EX` compares the upper
    halves of numbers whose lower ones have been compared."""
    compare, combine = (
        d.instruction.modifiers[0],
        next(modifier for modifier in d.instruction.modifiers if modifier in COMBINATIONS),
    )
    extended, unsigned = "EX" in d.modifiers, "U32" in d.modifiers
    operands = d.take(d.operands, 6 if extended else 5)
    yes, no = d.to_predicate(operands[0]), d.to_predicate(operands[1])
    a, b, other = d.integer(operands[2]), d.integer(operands[3]), d.predicate(operands[4])
    low = d.predicate(operands[5]) if extended else None
    test, join_ = COMPARISONS[compare], COMBINATIONS[combine]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        x, y = a(R), b(R)
        holds = test(x, y) if unsigned else test(signed(x), signed(y))
        if low is not None and compare not in "FT":
            holds = np.where(x == y, low(R), holds)
        with_ = other(R)
        first, second = join_(holds, with_), join_(~holds, with_)
        copyto(R[yes], first, where=m)
        copyto(R[no], second, where=m)

    if extended or compare in "FT" or is_uniform(d.instruction) or is_zero(operands[0]):
        return op
    if not all(map(is_plain, operands[2:4])) or part_of(operands[4]):
        return op
    slot, negated = d.predicate_slot(operands[4])
    alone = combine == "AND" and d.truth(operands[4]) is True
    how = 0 if alone else 1 + ["AND", "OR", "XOR"].index(combine)
    (x,), (y,) = (d.words(operand, 1) for operand in operands[2:4])
    slots = (yes, -1 if is_zero(operands[1]) else no, x, y, -1 if alone else slot)
    name = f"setp.{compare.lower()}.{'u32' if unsigned else 's32'}"
    return Formed(op, CompiledForm(name, slots, (how, int(negated))))


def either(x: Array, y: Array, first: Array) -> Array:
    return np.where(first, x, y)


@covers("SEL", "USEL")
def sel(d: SassDecoder) -> Op:
    """The first source where the predicate holds, else the second."""
    target, a, b, p = d.take(d.operands, 4)
    op = applied(d.to(target), either, (d.integer(a), d.integer(b), d.predicate(p)))
    if is_uniform(d.instruction) or not all(map(is_plain, (a, b))) or is_zero(target):
        return op
    slot, negated = d.predicate_slot(p)
    (x,), (y,) = (d.words(operand, 1) for operand in ((b, a) if negated else (a, b)))
    return Formed(op, CompiledForm("selp.b32", (d.to(target), x, y, slot)))


@covers("IABS")
def iabs(d: SassDecoder) -> Op:
    target, a = d.take(d.operands, 2)
    return applied(d.to(target), lambda x: np.abs(signed(x)).view(np.uint32), (d.integer(a),))


@covers("VIADD", "UVIADD")
def viadd(d: SassDecoder) -> Op:
    target, a, b = d.take(d.operands, 3)
    return applied(d.to(target), np.add, (d.integer(a), d.integer(b)))


@covers("VIADD.16x2")
def viadd_pairs(d: SassDecoder) -> Op:
    """The sums of the halves of words."""
    target, a, b = d.take(d.operands, 3)

    def function(x: Array, y: Array) -> Array:
        return join(*(u + v for u, v in zip(halves(x), halves(y), strict=True)))

    return applied(d.to(target), function, (d.bits(a), d.bits(b)))


@covers("VABSDIFF{:|.U32}")
def distance(d: SassDecoder) -> Op:
    """|a - b| + c"""
    target, *sources = d.take(d.operands, 4)
    unsigned = "U32" in d.modifiers

    def function(a: Array, b: Array, c: Array) -> Array:
        x, y = (a, b) if unsigned else (signed(a), signed(b))
        return np.where(x > y, a - b, b - a) + c

    return applied(d.to(target), function, [d.bits(source) for source in sources])


@covers("VABSDIFF4{:|.U8}")
def byte_distances(d: SassDecoder) -> Op:
    """The distances of the bytes, side by side; the last source has no effect."""
    target, a, b, _ = d.take(d.operands, 4)
    kind = "u1" if "U8" in d.modifiers else "i1"

    def function(x: Array, y: Array) -> Array:
        u, v = (_bytes(source, kind).astype(np.int16) for source in (x, y))
        return np.ascontiguousarray(np.abs(u - v).astype(np.uint8)).view(np.uint32)[..., 0]

    return applied(d.to(target), function, (d.bits(a), d.bits(b)))


@covers("VABSDIFF4{:|.U8}.ACC")
def distances(d: SassDecoder) -> Op:
    """The distances of the bytes, added to c."""
    target, *sources = d.take(d.operands, 4)
    kind = "u1" if "U8" in d.modifiers else "i1"

    def function(a: Array, b: Array, c: Array) -> Array:
        x, y = (_bytes(item, kind).astype(np.int16) for item in (a, b))
        return np.abs(x - y).sum(axis=-1).astype(np.uint32) + c

    return applied(d.to(target), function, [d.bits(source) for source in sources])


def _bytes(a: Array, kind: str) -> Array:
    return np.ascontiguousarray(a)[..., None].view(np.dtype(kind))


@covers("IDP.4A.{:S8|U8}.{:S8|U8}", "IDP.2A.{:LO|HI}.{:S16|U16}.{:S8|U8}")
def dot(d: SassDecoder) -> Op:
    """The sum of the products of parts, added to c."""
    target, *sources = d.take(d.operands, 4)
    four, high = "4A" in d.modifiers, "HI" in d.modifiers
    left, right = (
        f"{kind[0].lower().replace('s', 'i')}{int(kind[1:]) // 8}"
        for kind in d.instruction.modifiers[-2:]
    )

    def function(a: Array, b: Array, c: Array) -> Array:
        x, y = _bytes(a, left).astype(np.int64), _bytes(b, right).astype(np.int64)
        if not four:
            y = y[..., 2:] if high else y[..., :2]
        return (x * y).sum(axis=-1).astype(np.uint32) + c

    return applied(d.to(target), function, [d.bits(source) for source in sources])


@covers("I2I.{:U8|S8|U16|S16}.S32.SAT")
def narrow(d: SassDecoder) -> Op:
    """The nearest number of the narrow type, extended to 32 bits."""
    target, a = d.take(d.operands, 2)
    kind = d.instruction.modifiers[0].lower()
    return applied(
        d.to(target), lambda x: convert.int_to_int(x, "s32", kind, sat=True), (d.bits(a),)
    )
