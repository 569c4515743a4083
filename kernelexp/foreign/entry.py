"""What a compiled entry says of itself: its parameters, what it reads and writes, its limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from kernelexp.dtypes import SCALARS, DType, ScalarType
from kernelexp.emulator.ptx.parser import parse
from kernelexp.emulator.ptx.syntax import Address, Function, Register, Symbol, Vector
from kernelexp.errors import ConfigurationError

ELEMENTS: dict[str, DType] = {
    "float": "f32",
    "double": "f64",
    "bool": "bool",
    "char": "s8",
    "signed char": "s8",
    "unsigned char": "u8",
    "short": "s16",
    "unsigned short": "u16",
    "int": "s32",
    "unsigned int": "u32",
    "long": "s64",
    "long long": "s64",
    "unsigned long": "u64",
    "unsigned long long": "u64",
    "__half": "f16",
    "half": "f16",
    "__nv_bfloat16": "bf16",
    "__nv_fp8_e4m3": "e4m3",
    "__nv_fp8_e5m2": "e5m2",
}
_VECTOR = re.compile(
    r"(float|double|u?(?:char|short|int|long(?:long)?))[1234]|(__half|half)2|(__nv_bfloat16)2"
)
_OWN_NAMES = {
    "uchar": "unsigned char",
    "ushort": "unsigned short",
    "uint": "unsigned int",
    "ulong": "unsigned long",
    "longlong": "long long",
    "ulonglong": "unsigned long long",
    "size_t": "unsigned long",
} | {
    f"{sign}int{bits}_t": f"{'unsigned ' if sign else ''}{word}"
    for sign in ("", "u")
    for bits, word in ((8, "char"), (16, "short"), (32, "int"), (64, "long"))
}


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of an entry."""

    name: str
    type: str
    """In C++, without qualifiers."""
    size: int
    align: int
    is_pointer: bool
    read: bool = False
    written: bool = False

    @property
    def scalar(self) -> ScalarType | None:
        """None where it is a structure, or of a type that has no name here."""
        dtype = ELEMENTS.get(self.type)
        return next((each for each in SCALARS if each == dtype and not self.is_pointer), None)

    @property
    def is_tensor_map(self) -> bool:
        return self.type.endswith("CUtensorMap") or self.type.endswith("CUtensorMap_st")

    @property
    def dtype(self) -> DType | None:
        """Of the array that it points to; None where its type has none."""
        match = _VECTOR.fullmatch(self.type)
        element = next(filter(None, match.groups())) if match else self.type
        return ELEMENTS.get(_OWN_NAMES.get(element, element))


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a PTX file."""

    symbol: str
    signature: str
    """Demangled."""
    parameters: tuple[Parameter, ...]
    threads: int
    """The most that it was compiled for in a CTA; 0 where it does not say."""
    dynamic_smem: bool
    """Whether it has an array in shared memory whose size the launch gives."""


def read(ptx: str, written: Sequence[str]) -> Entry:
    """The one entry of a PTX file, with the parameters as the source has them for their names."""
    import cxxfilt

    module = parse(ptx)
    entries = [each for each in module.functions.values() if each.entry]
    if len(entries) != 1:
        known = ", ".join(cxxfilt.demangle(each.name) for each in entries) or "none"
        raise ConfigurationError(f"there should be one entry, and these are compiled: {known}.")
    (entry,) = entries
    signature = cxxfilt.demangle(entry.name)
    types = _types(signature) or [_type_of(text) for text in written]
    names = [_name_of(text, place) for place, text in enumerate(written)]
    reads, writes = _accesses(entry)
    parameters = tuple(
        Parameter(
            name=names[place] if place < len(names) else f"p{place}",
            type=_bare(types[place]) if place < len(types) else "",
            size=each.size,
            align=each.align,
            is_pointer=place < len(types) and "*" in types[place],
            read=place in reads,
            written=place in writes,
        )
        for place, each in enumerate(entry.parameters)
    )
    limit = entry.directives.get("reqntid") or entry.directives.get("maxntid") or (0,)
    return Entry(
        symbol=entry.name,
        signature=signature,
        parameters=parameters,
        threads=math.prod(limit),
        dynamic_smem=re.search(r"\.extern\s+\.shared", ptx) is not None,
    )


def _types(signature: str) -> list[str]:
    """The types in a demangled signature; none where the name was not mangled."""
    if not signature.endswith(")"):
        return []
    level, place = 0, len(signature)
    while place:
        place -= 1
        level += (signature[place] == ")") - (signature[place] == "(")
        if level == 0:
            break
    inside = signature[place + 1 : -1]
    parts, level, part = [], 0, ""
    for character in inside:
        level += (character in "(<") - (character in ")>")
        if character == "," and level == 0:
            parts.append(part)
            part = ""
        else:
            part += character
    return [each.strip() for each in (*parts, part) if each.strip()]


def _type_of(text: str) -> str:
    return re.sub(r"\w+\s*(\[.*\])?$", "", text)


def _name_of(text: str, place: int) -> str:
    match = re.search(r"([A-Za-z_]\w*)\s*(\[.*\])?$", text)
    return match[1] if match else f"p{place}"


def _bare(text: str) -> str:
    words = re.sub(r"\b(const|volatile|restrict|__restrict__|__restrict)\b|[*&]|\[.*\]", " ", text)
    name = " ".join(words.split())
    return _OWN_NAMES.get(name, name)


def _accesses(entry: Function) -> tuple[set[int], set[int]]:
    """The parameters whose memory is read, and those whose is written: by the registers that are
    computed from them, whatever way the code takes."""
    origins: dict[str, set[int]] = {}
    places = {each.name: place for place, each in enumerate(entry.parameters)}
    changed = True
    while changed:
        changed = False
        for each in entry.instructions:
            if each.opcode.startswith(("ld.", "atom.")) and not each.opcode.startswith("ld.param"):
                continue
            if not each.operands or not isinstance(each.operands[0], Register):
                continue
            sources = set().union(*(_origins(one, origins, places) for one in each.operands[1:]))
            own = origins.setdefault(each.operands[0].name, set())
            if not sources <= own:
                own |= sources
                changed = True
    reads: set[int] = set()
    writes: set[int] = set()
    for each in entry.instructions:
        kind = each.opcode.partition(".")[0]
        if kind not in ("ld", "st", "atom", "red", "cp"):
            continue
        addresses = [one for one in each.operands if isinstance(one, Address)]
        found = [_origins(one, origins, {}) for one in addresses]
        if kind == "cp":
            writes |= set().union(*found[:1])
            reads |= set().union(*found[1:])
        else:
            reads |= set().union(*found) if kind != "st" else set()
            writes |= set().union(*found) if kind != "ld" else set()
    return reads, writes


def _origins(operand: Any, origins: dict[str, set[int]], places: dict[str, int]) -> set[int]:
    """The parameters that an operand is computed from."""
    found: set[int] = set()
    for name, is_symbol in _names(operand):
        if is_symbol:
            found |= {places[name]} if name in places else set()
        else:
            found |= origins.get(name, set())
    return found


def _names(operand: Any) -> Iterator[tuple[str, bool]]:
    if isinstance(operand, Register):
        yield operand.name, False
    elif isinstance(operand, Symbol):
        yield operand.name, True
    elif isinstance(operand, Address):
        yield from _names(operand.base)
    elif isinstance(operand, Vector):
        yield from _each(operand.items)


def _each(operands: Iterable[Any]) -> Iterator[tuple[str, bool]]:
    for each in operands:
        yield from _names(each)
