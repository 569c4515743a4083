"""Integer sums, products, comparisons and choices, of lanes and of the warp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from warpsim.arithmetic import convert
from warpsim.arithmetic.packed import halves, join
from warpsim.front.sass.decoder import SassDecoder, applied, copyto, signs_of
from warpsim.front.sass.operands import Reader, is_zero, part_of
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
        return d.formed(plain, "add3.u32", first, operands)
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

    if len(outs) > 2 or any(map(part_of, operands)):
        return op
    words = [d.words(operand, 1)[0] for operand in operands[:3]]
    pairs = [d.predicate_slot(operand) for operand in operands[3:]]
    negated = sum(flip << index for index, (_, flip) in enumerate(pairs))
    slots = target, *_padded(outs, 2), *words, *(slot for slot, _ in pairs)
    signs = signs_of(operands[:3])
    return Formed(op, CompiledForm("add3.cc.u32", slots, (negated,), signs=signs))


def _padded(slots: Sequence[int], count: int) -> Sequence[int]:
    """As many, -1 for those that are missing."""
    return *slots, *[-1] * (count - len(slots))


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
    op = applied(d.to(first), lambda x, y, z, p: x * y + z + p.astype(np.uint32), sources)
    if any(map(part_of, operands)):
        return op
    slot, negated = d.predicate_slot(operands[3])
    slots = d.to(first), *(d.words(o, 1)[0] for o in operands[:3]), slot
    signs = signs_of(operands[:3])
    return Formed(op, CompiledForm("mad.cc.u32", slots, (negated,), signs=signs))


Product: TypeAlias = Callable[[list[Array]], tuple[Array, Array]]


def _product(d: SassDecoder, rest: list[Operand]) -> tuple[Product, CompiledForm | None]:
    """(a * b + c + carry as 64 bits, whether the sum has carried), and the same compiled, but for
    where it goes."""
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

    if extended and part_of(operands[3]):
        return compute, None
    slot, negated = d.predicate_slot(operands[3]) if extended else (-1, False)
    factors = (d.words(operand, 1)[0] for operand in operands[:2])
    slots = *factors, *d.words(operands[2], 2), slot
    return compute, CompiledForm("mad.wide.cc.u64", slots, (unsigned, negated))


@covers("IMAD.WIDE{:|.U32}{:|.X}", "UIMAD.WIDE{:|.U32}")
def imad_wide(d: SassDecoder) -> Op:
    """64 bits of a * b + c, c of 64 bits; the predicate is the sum's carry, `.X` takes one in."""
    first, carries, rest = d.split()
    (compute, form), write = _product(d, rest), d.to_pair(first)
    return _with_carries(d, compute, write, carries, form, d.to_words(first, 2))


@covers("IMAD.HI{:|.U32}", "UIMAD.HI{:|.U32}")
def imad_high(d: SassDecoder) -> Op:
    """The upper half of a * b + c, c of 64 bits; the predicate is the sum's carry."""
    first, carries, rest = d.split()
    (compute, form), target = _product(d, rest), d.to(first)

    def write(R: list[Array], total: Array, m: Mask) -> None:
        copyto(R[target], (total >> np.uint64(32)).astype(np.uint32), where=m)

    return _with_carries(d, compute, write, carries, form, (-1, target))


def _with_carries(
    d: SassDecoder,
    compute: Callable[[list[Array]], tuple[Array, Array]],
    write: Callable[[list[Array], Array, Mask], None],
    carries: Sequence[Operand],
    form: CompiledForm | None,
    targets: Sequence[int],
) -> Op:
    """Writes the sum by `write` to `targets`, and its carry to the predicates `carries`."""
    outs = [d.to_predicate(carry) for carry in carries]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        total, carried = compute(R)
        write(R, total, m)
        for out in outs:
            copyto(R[out], carried, where=m)

    if form is None or len(outs) > 1:
        return op
    return Formed(op, form._replace(slots=(*targets, *_padded(outs, 1), *form.slots)))


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

    if len(outs) > 1 or any(map(part_of, operands)):
        return op
    slot, negated = d.predicate_slot(operands[-1]) if extended else (-1, False)
    words = [d.words(operand, 1)[0] for operand in operands[: 2 + pairs]]
    slots = target, *_padded(outs, 2), *_padded(words, 3), slot
    signs = signs_of(operands[:2])
    return Formed(op, CompiledForm("lea.u32", slots, (shift, high, negated), signs=signs))


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

    if extended or compare in "FT":
        return op
    name = f"setp.{compare.lower()}.{'u32' if unsigned else 's32'}"
    return formed_comparison(d, op, name, (yes, no), operands)


def formed_comparison(
    d: SassDecoder,
    op: Op,
    name: str,
    targets: tuple[int, int],
    operands: Sequence[Operand],
    *,
    real: bool = False,
) -> Op:
    """A comparison of two words with its compiled form, by its five operands: two predicates, which
    go to the slots `targets`, two sources, and the predicate with which both are combined."""
    first, second, a, b, other = operands
    if is_zero(first) or any(map(part_of, (a, b, other))):
        return op
    slot, negated = d.predicate_slot(other)
    combine = next(modifier for modifier in d.instruction.modifiers if modifier in COMBINATIONS)
    alone = combine == "AND" and d.truth(other) is True
    how = 0 if alone else 1 + list(COMBINATIONS).index(combine)
    (x,), (y,) = d.words(a, 1), d.words(b, 1)
    slots = (targets[0], -1 if is_zero(second) else targets[1], x, y, -1 if alone else slot)
    signs = signs_of((a, b), real=real)
    return Formed(op, CompiledForm(name, slots, (how, int(negated)), signs=signs))


def either(x: Array, y: Array, first: Array) -> Array:
    return np.where(first, x, y)


@covers("SEL", "USEL")
def sel(d: SassDecoder) -> Op:
    """The first source where the predicate holds, else the second."""
    target, a, b, p = d.take(d.operands, 4)
    op = applied(d.to(target), either, (d.integer(a), d.integer(b), d.predicate(p)))
    return formed_choice(d, op)


def formed_choice(d: SassDecoder, op: Op, *, real: bool = False) -> Op:
    """A choice between two words with its compiled form."""
    target, a, b, p = d.operands
    if is_zero(target) or any(map(part_of, (a, b, p))):
        return op
    slot, negated = d.predicate_slot(p)
    sources = (b, a) if negated else (a, b)
    (x,), (y,) = (d.words(operand, 1) for operand in sources)
    signs = signs_of(sources, real=real)
    return Formed(op, CompiledForm("selp.b32", (d.to(target), x, y, slot), signs=signs))


@covers("IABS")
def iabs(d: SassDecoder) -> Op:
    target, a = d.take(d.operands, 2)
    return applied(d.to(target), lambda x: np.abs(signed(x)).view(np.uint32), (d.integer(a),))


@covers("VIADD", "UVIADD")
def viadd(d: SassDecoder) -> Op:
    target, a, b = d.take(d.operands, 3)
    op = applied(d.to(target), np.add, (d.integer(a), d.integer(b)))
    return d.formed(op, "add.u32", target, (a, b))


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
