"""Uses of parameters in an entry's PTX: which it loads, and whose memory it accesses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from warpsim.front.ptx.syntax import (
    Address,
    Function,
    Immediate,
    Instruction,
    Pair,
    Register,
    SpecialName,
    Symbol,
    Vector,
)

_Place: TypeAlias = tuple[int, int]
"""A parameter by its number, and bytes from its beginning."""
K = TypeVar("K")
_ACCESSES = {
    **dict.fromkeys(("ld", "ldu", "wmma.load", "multimem.ld_reduce"), (True, False)),
    **dict.fromkeys(("st", "wmma.store", "multimem.st"), (False, True)),
    **dict.fromkeys(("atom", "red", "multimem.red"), (True, True)),
}
"""Whether an access reads what its address points to, and whether it writes it."""
_LOADS = tuple(f"{name}." for name, (_, writes) in _ACCESSES.items() if not writes)
_BITS = re.compile(r"\.[busf](8|16|32|64)$")


class ValueUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel does with a parameter, or with the array that it points to."""

    read: bool = False
    written: bool = False
    packed: bool = False
    """Whether the kernel takes its integers apart and does not index with them: all bits count, as
    in packed ones. Quantised weights are copied to shared memory, indices seldom are."""
    may_index: bool = False
    """Whether its values are taken apart and may be part of an address, as keys or indices: drawn
    as small numbers."""
    mixed: bool = False
    """Whether some of its bits are halves as they lie there, and others something else, as in
    blocks of a quantised format."""
    halves: Literal["f16", "bf16"] | None = None
    """What its values are computed with, where they are declared as wider vectors or as void."""


class ParameterUses(msgspec.Struct, frozen=True, kw_only=True):
    """The uses of all parameters of an entry."""

    reads: frozenset[_Place]
    writes: frozenset[_Place]
    loads: frozenset[tuple[int, int, int]]
    """Parameter, first byte, bytes."""
    addressed: frozenset[int]
    """Parameters whose address is computed with: any of their bytes may be used."""

    values: dict[_Place, frozenset[str]] = {}
    """Of arrays whose values are taken apart: "bits" by masks and shifts, "digit" where few of the
    bits of what is computed from them go on, "f16" and "bf16" as such numbers, "half" where they
    are so without any work on their bits; "index" where they become part of an address otherwise
    than by such digits, or bound something, as lengths do a loop."""

    copied: frozenset[_Place] = frozenset()
    """Arrays that only the copy engine reads: what becomes of their values is not known here."""

    def at(self, place: int, offset: int, declared: str = "") -> ValueUse:
        """The uses of what lies there; `declared`: its type in the source."""
        words = self.values.get((place, offset), frozenset())
        only_copied = (place, offset) in self.copied and not words
        return ValueUse(
            read=(place, offset) in self.reads,
            written=(place, offset) in self.writes,
            packed=only_copied or (bool({"bits", "digit"} & words) and "index" not in words),
            may_index={"bits", "index"} <= words,
            mixed={"bits", "half"} <= words,
            halves=_halves(words) if _WIDER.fullmatch(declared) else None,
        )

    def loaded_at(self, place: int, offset: int, size: int) -> bool:
        """Whether one of these bytes is loaded, or may be."""
        return place in self.addressed or any(
            at == place and first < offset + size and offset < first + length
            for at, first, length in self.loads
        )


_WIDER = re.compile(r"(?:float|u?int)[24]|void")


def _halves(words: frozenset[str]) -> Literal["f16", "bf16"] | None:
    if {"f16", "bf16"} <= words:
        return None
    return "f16" if "f16" in words else "bf16" if "bf16" in words else None


def find(entry: Function) -> ParameterUses:
    """Finds the uses by the registers that are computed from parameters, whatever way the code
    takes."""
    places = {variable.name: place for place, variable in enumerate(entry.parameters)}
    addresses, addressed = _addresses(entry, places)
    loaded = [
        one for instruction in entry.instructions for one in _loaded(instruction, places, addresses)
    ]
    origins = _origins(entry, loaded)
    reads: set[_Place] = set()
    copied: set[_Place] = set()
    writes: set[_Place] = set()
    for instruction in entry.instructions:
        if instruction.opcode.startswith("ld.param"):
            continue
        operands = [one for one in instruction.operands if isinstance(one, Address)]
        result = [_union(origins, operand) for operand in operands]
        if instruction.opcode.startswith("cp."):
            result = [
                own | _described(operand, places, addresses)
                for own, operand in zip(result, operands, strict=True)
            ]
            writes |= set().union(*result[:1])
            copied |= set().union(*result[1:])
            continue
        does_read, does_write = _access(instruction.opcode)
        reads |= set().union(*result) if does_read else set()
        writes |= set().union(*result) if does_write else set()
    return ParameterUses(
        reads=frozenset(reads | copied),
        copied=frozenset(copied - reads),
        writes=frozenset(writes),
        loads=frozenset((*place, size) for _, place, size in loaded),
        addressed=addressed,
        values=_values(entry, origins),
    )


TF32, F16_SUMS = "tf32", "sums in f16"
_MATRIX = ("mma.", "wmma.mma.", "wgmma.mma_async.", "tcgen05.mma.")


def arithmetic(entry: Function) -> frozenset[str]:
    """TF32 where matrix instructions round operands of f32 to it; F16_SUMS where they add to f16,
    the first type that is written."""
    words = [one.opcode.split(".") for one in entry.instructions if one.opcode.startswith(_MATRIX)]
    types = [[word for word in item if _TYPE.fullmatch(word)] for item in words]
    found = {TF32} if any("tf32" in item for item in words) else set()
    return frozenset(found | ({F16_SUMS} if any(item[:1] == ["f16"] for item in types) else set()))


def in_cluster(entry: Function) -> bool:
    """Whether an entry asks for its place in a cluster, or reaches other CTAs of it."""
    return any(
        item.opcode.startswith(("mapa.", "barrier.cluster."))
        or ".multicast::cluster" in item.opcode
        or any(isinstance(x, SpecialName) and "cluster" in x.name for x in item.operands)
        for item in entry.instructions
    )


_TYPE = re.compile(r"(?:b?f|s|u)[0-9]+|tf32|e[0-9]m[0-9]")
_MOVES = ("mov.", "cvt.u", "cvt.s", "prmt.", "shr.", "shl.", "and.", "or.", "lop3.", "bfe.", "shf.")
_BIT_WORK = ("shr.", "bfe.", "lop3.", "prmt.", "shf.", "dp4a.", "and.b32", "and.b64")
_HALVES = re.compile(r"\.(b?f16)(?:x2)?$")


def _values(entry: Function, origins: dict[str, set[_Place]]) -> dict[_Place, frozenset[str]]:
    """Classifies the uses of values that are loaded from memory."""
    fetched = [
        (name, place, 0)
        for item in entry.instructions
        if item.opcode.startswith(_LOADS) and not item.opcode.startswith(("ld.param", "ld.shared"))
        for operand in item.operands[1:2]
        for place in _union(origins, operand)
        for name in _registers(item.operands[0])
    ]
    moved = _origins(entry, fetched, _MOVES)
    plain = _origins(entry, fetched, ("mov.",))
    # The kernel itself bounds what a mask leaves, and what a comparison or a vote says: such a
    # value is the place of a digit, whatever the key is.
    computed = _origins(entry, fetched, but=_is_bounded)
    counted = _origins(entry, fetched, _COUNTING, but=_takes_digit)
    result: dict[_Place, set[str]] = {}

    def note(word: str, known: dict[str, set[_Place]], operands: Iterable[Any]) -> None:
        for place in set().union(*(_union(known, operand) for operand in operands)):
            result.setdefault(place, set()).add(word)

    for instruction in entry.instructions:
        half = _HALVES.search(instruction.opcode)
        word = half[1] if half else "bits" if instruction.opcode.startswith(_BIT_WORK) else ""
        sources = instruction.operands[1:]
        note("index", computed, (x for x in instruction.operands if isinstance(x, Address)))
        note(word, moved, sources if word else ())
        note("half", plain, sources if half else ())
        note("digit", computed, sources if _takes_digit(instruction) else ())
        for place in _bounds(instruction, counted):
            result.setdefault(place, set()).add("index")
    for place, word in _stored(entry, origins):
        result.setdefault(place, set()).add(word)
    return {place: frozenset(words) for place, words in result.items()}


def _stored(entry: Function, origins: dict[str, set[_Place]]) -> Iterator[tuple[_Place, str]]:
    """The type of halves that are computed and stored, as they are or as parts of wider values."""
    made = [
        (name, half[1], 0)
        for item in entry.instructions
        if (half := (_ROUNDED if item.opcode.startswith("cvt.") else _HALVES).search(item.opcode))
        for name in _registers(item.operands[0])
    ]
    halves = _origins(entry, made, ("mov.",))
    for instruction in entry.instructions:
        if instruction.opcode.startswith("st.") and len(instruction.operands) > 1:
            for place in _union(origins, instruction.operands[0]):
                for word in _union(halves, instruction.operands[1]):
                    yield place, word


_ROUNDED = re.compile(r"^cvt(?:\.r[nz]\w*|\.satfinite|\.relu)*\.(b?f16)(?:x2)?\.")
_DIGIT = 12
"""Bits. Radix sorts take 4 to 11 at a time; 16 may be half of a pair of indices."""
_ANSWERS = ("setp", "set", "vote", "match", "popc", "clz", "bfind", "activemask")


def _is_bounded(instruction: Instruction) -> bool:
    """Whether its result is small, whatever its operands are."""
    words = instruction.opcode.split(".")
    is_byte = words[0] == "cvt" and words[-1] in ("u8", "s8")
    return words[0] in _ANSWERS or is_byte or _takes_digit(instruction)


def _takes_digit(instruction: Instruction) -> bool:
    """Whether a mask, a field or a remainder leaves few bits of a value, or as many as a mask or a
    divisor of the kernel's own says."""
    words, sources = instruction.opcode.split("."), instruction.operands[1:]
    numbers = [item.value for item in sources if isinstance(item, Immediate)]
    if words[0] == "bfe":
        return bool(numbers) and numbers[-1] <= _DIGIT
    if words[0] == "shr" and words[-1] in ("u32", "b32"):
        return bool(numbers) and numbers[-1] >= 32 - _DIGIT
    if words[0] == "rem":
        return words[-1].startswith("u")
    return words[0] == "and" and any(mask >= 0 and mask.bit_count() <= _DIGIT for mask in numbers)


_COUNTING = ("mov.", "cvt.u", "cvt.s", "add.s", "sub.s", "shr.", "shl.", "min.", "max.")
_ORDERED = re.compile(r"setp\.(lt|le|gt|ge|lo|ls|hi|hs)\.[su](32|64)$")
_SIGNS = {("lt", 0), ("ge", 0), ("gt", -1), ("le", -1)}


def _bounds(instruction: Instruction, origins: dict[str, set[_Place]]) -> set[_Place]:
    """The arrays a value of which is compared with what is none of its own: a count of turns. A
    test of the sign, and keys beside keys, are no bounds."""
    compared = _ORDERED.match(instruction.opcode)
    if not compared:
        return set()
    one, other = instruction.operands[-2:]
    if any(isinstance(x, Immediate) and (compared[1], x.value) in _SIGNS for x in (one, other)):
        return set()
    return _union(origins, one) ^ _union(origins, other)


def _access(opcode: str) -> tuple[bool, bool]:
    """Whether it reads and whether it writes memory; `wmma` and `multimem` say so in their second
    word."""
    words = opcode.split(".")
    name = ".".join(words[:2]) if words[0] in ("wmma", "multimem") else words[0]
    return _ACCESSES.get(name, (False, False))


def _described(
    operand: Address, places: dict[str, int], addresses: dict[str, _Place]
) -> set[_Place]:
    """The tensor map among the parameters that a copy takes."""
    place = _address(operand.base, places, addresses)
    return {place} if place else set()


def _addresses(entry: Function, places: dict[str, int]) -> tuple[dict[str, _Place], frozenset[int]]:
    """The registers that hold the address of a parameter, or of a byte of it; and the parameters
    whose address goes where it is not followed."""
    result: dict[str, _Place] = {}
    lost: set[int] = set()
    for instruction in entry.instructions:
        if instruction.opcode.startswith("ld.") or not instruction.operands:
            continue
        target, *sources = instruction.operands
        held = [one for x in sources if (one := _address(x, places, result))]
        moved = sum(one.value for one in sources if isinstance(one, Immediate))
        follows = instruction.opcode.startswith(("mov.", "cvta.", "add."))
        if len(held) == 1 and follows and isinstance(target, Register) and not instruction.guard:
            if all(isinstance(one, Immediate) or _address(one, places, result) for one in sources):
                result[target.name] = held[0][0], held[0][1] + moved
                continue
        lost |= {place for place, _ in held}
    return result, frozenset(lost)


def _address(operand: Any, places: dict[str, int], found: dict[str, _Place]) -> _Place | None:
    if isinstance(operand, Symbol) and operand.name in places:
        return places[operand.name], operand.offset
    return found.get(operand.name) if isinstance(operand, Register) else None


def _loaded(
    instruction: Instruction, places: dict[str, int], addresses: dict[str, _Place]
) -> Iterator[tuple[str, _Place, int]]:
    """Register, place and bytes of each value that a load takes from a parameter."""
    if not instruction.opcode.startswith("ld.") or len(instruction.operands) < 2:
        return
    source, bits = instruction.operands[1], _BITS.search(instruction.opcode)
    base = _address(source.base, places, addresses) if isinstance(source, Address) else None
    if base and bits and isinstance(source, Address):
        size, first = int(bits[1]) // 8, base[1] + source.offset
        for index, name in enumerate(_registers(instruction.operands[0])):
            yield name, (base[0], first + index * size), size


def _origins(
    entry: Function,
    loaded: Sequence[tuple[str, K, int]],
    through: tuple[str, ...] = ("",),
    but: Callable[[Instruction], bool] = lambda _: False,
) -> dict[str, set[K]]:
    """The parameters that each register is computed from, by instructions that begin so."""
    origins: dict[str, set[K]] = {}
    for name, place, _ in loaded:
        origins.setdefault(name, set()).add(place)
    changed = True
    while changed:
        changed = False
        for instruction in entry.instructions:
            if not instruction.operands or instruction.opcode.startswith((*_LOADS, "atom.")):
                continue
            if not instruction.opcode.startswith(through) or but(instruction):
                continue
            if isinstance(instruction.operands[0], Address):
                continue  # it writes to memory, and no register
            sources: set[K] = set()
            sources = sources.union(
                *(_union(origins, operand) for operand in instruction.operands[1:])
            )
            for name in _registers(instruction.operands[0]):
                own = origins.setdefault(name, set())
                if not sources <= own:
                    own |= sources
                    changed = True
    return origins


def _union(origins: dict[str, set[K]], operand: Any) -> set[K]:
    result: set[K] = set()
    return result.union(*(origins.get(name, ()) for name in _registers(operand)))


def _registers(operand: Any) -> Iterator[str]:
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Address):
        yield from _registers(operand.base)
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _registers(item)
    elif isinstance(operand, Pair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)
