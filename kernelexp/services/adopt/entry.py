"""Contents of a compiled entry: its parameters, what it reads and writes, its limits."""

from __future__ import annotations

import itertools
import keyword
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from kernelexp.model.errors import ConfigurationError
from kernelexp.services.adopt import uses
from kernelexp.services.adopt.uses import ParameterUses, ValueUse
from warpsim.dtypes import SCALARS, DType, ScalarType
from warpsim.front.ptx.parser import parse
from warpsim.front.ptx.syntax import Function, PtxModule
from warpsim.launch import Dim3
from warpsim.machine.core.image import Variable

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
    "c10::Half": "f16",
    "c10::BFloat16": "bf16",
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


_PLAIN = {
    **{"u8": "unsigned char", "s8": "char", "u16": "unsigned short", "s16": "short"},
    **dict.fromkeys(("u32", "b32", "s32"), "int"),
    **dict.fromkeys(("u64", "b64", "s64"), "long"),
    **{"f32": "float", "f64": "double"},
}
"""What is most likely meant by a parameter of PTX, which has no signs."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A pointer or a scalar in a structure, as its debug information has it."""

    path: tuple[str, ...]
    """Names from the structure to it."""
    type: str
    offset: int
    size: int
    is_pointer: bool


class KernelParameter(ValueUse, frozen=True, kw_only=True):
    """A parameter of an entry, or a member of one that is a structure."""

    name: str
    type: str
    """In C++, without qualifiers."""
    size: int
    align: int
    is_pointer: bool
    offset: int = 0
    """Of a member in its structure."""
    members: tuple[KernelParameter, ...] = ()
    """Those that the kernel uses, where it is a structure whose members are known."""
    ignored: bool = False
    """The kernel does not look at it, and nobody has named it."""
    unseen: bool = False
    """The kernel does not load it."""
    alias: str = ""
    """The parameter before it that points to the same array."""
    passed: str = ""
    """The number that a launch passes, or the expression of sizes, where that has been said."""

    element: DType | None = None
    """Of the array that it points to or describes, as a person has said it."""

    @property
    def scalar(self) -> ScalarType | None:
        """The scalar type; None where it is a structure, or of a type that has no name here."""
        dtype = ELEMENTS.get(self.type)
        return next((item for item in SCALARS if item == dtype and not self.is_pointer), None)

    @property
    def is_array(self) -> bool:
        """Whether it is one, or describes one for TMA."""
        return self.is_pointer or self.is_tensor_map

    @property
    def is_tensor_map(self) -> bool:
        """Whether it is a tensor map, or the pointer to one in memory."""
        return _is_tensor_map(self.type)

    @property
    def is_structure(self) -> bool:
        known = self.is_pointer or self.scalar or self.is_tensor_map or self.ignored
        return not known

    @property
    def dtype(self) -> DType | None:
        """The dtype of the array that it points to; None where its type has none."""
        if self.element or self.is_tensor_map:
            return self.element
        if self.halves:
            return self.halves
        match = _VECTOR.fullmatch(self.type)
        element = next(filter(None, match.groups())) if match else self.type
        return ELEMENTS.get(_OWN_NAMES.get(element, element))


class KernelEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a PTX file, or of a cubin."""

    symbol: str
    name: str = ""
    """As launch() names it; empty: by its symbol."""
    signature: str
    """Demangled."""
    parameters: tuple[KernelParameter, ...]
    threads: int
    """The most that it was compiled for in a CTA; 0 where it does not say."""
    block: Dim3 | None = None
    """The only one that it was compiled for."""
    cluster: Dim3 = (1, 1, 1)
    """The one that it was compiled for."""
    in_cluster: bool = False
    """Whether it asks for its place in a cluster, or reaches other CTAs of it."""
    arithmetic: frozenset[str] = frozenset()
    """What its matrix instructions do that results show: see uses.arithmetic()."""
    dynamic_smem: bool
    """Whether it has an array in shared memory whose size the launch gives."""

    @property
    def values(self) -> tuple[KernelParameter, ...]:
        """The pointers and scalars, those in structures too; a structure of which nothing is known
        is one value."""
        flat = (
            parameter.members or (parameter,)
            for parameter in self.parameters
            if not parameter.ignored
        )
        inside = itertools.chain.from_iterable(flat)
        return tuple(
            parameter
            for parameter in inside
            if not parameter.alias and not parameter.ignored and not parameter.passed
        )


def without_unseen(entry: KernelEntry, named: Collection[str]) -> KernelEntry:
    """Passes 0 for pointers that the kernel does not load and nobody has named."""

    def one(item: KernelParameter) -> KernelParameter:
        is_plain = item.is_pointer and not item.is_tensor_map and not item.alias
        ignored = item.ignored or (item.unseen and is_plain and item.name not in named)
        return msgspec.structs.replace(item, ignored=ignored)

    return msgspec.structs.replace(entry, parameters=tuple(map(one, entry.parameters)))


def described(
    entry: KernelEntry, outputs: Sequence[str], elements: Mapping[str, DType]
) -> KernelEntry:
    """Adds what a person says of arrays: which the kernel writes, and what they have."""

    def one(kernel_parameter: KernelParameter) -> KernelParameter:
        return msgspec.structs.replace(
            kernel_parameter,
            written=kernel_parameter.written or kernel_parameter.name in outputs,
            element=elements.get(kernel_parameter.name, kernel_parameter.element),
            members=tuple(map(one, kernel_parameter.members)),
        )

    return msgspec.structs.replace(entry, parameters=tuple(map(one, entry.parameters)))


def read(
    ptx: str,
    written: Sequence[str],
    symbol: str = "",
    members: Mapping[int, Sequence[Member]] = {},
) -> KernelEntry:
    """An entry of a PTX file, the only one unless named; with its parameters as they are written
    in a source, and the members of those that are structures, by their places."""
    module = parse(ptx)
    entry = _entry(module, symbol)
    types, names = types_and_names(entry.name, written)
    used = uses.find(entry)
    parameters = [
        _parameter(place, variable, types, names, used)
        for place, variable in enumerate(entry.parameters)
    ]
    taken = {parameter.name for parameter in parameters}
    for place, inside in members.items():
        whole = parameters[place]
        own = tuple(_members(place, whole.name, inside, used, taken))
        parameters[place] = msgspec.structs.replace(whole, members=own)
        taken |= {parameter.name for parameter in own}
    exact = entry.directives.get("reqntid")
    limit = exact or entry.directives.get("maxntid") or (0,)
    return KernelEntry(
        symbol=entry.name,
        signature=demangle(entry.name),
        parameters=tuple(parameters),
        threads=math.prod(limit),
        block=three(exact) if exact else None,
        cluster=three(entry.directives.get("reqnctapercluster", ())),
        in_cluster=uses.in_cluster(entry),
        arithmetic=uses.arithmetic(entry),
        dynamic_smem=_uses_dynamic_smem(ptx, entry.name),
    )


def _uses_dynamic_smem(ptx: str, symbol: str) -> bool:
    """Whether the entry, or a function that it may call, names an array without a size."""
    names = re.findall(r"\.extern\s+\.shared[^;]*?([\w$]+)\s*\[\s*\]", ptx)
    ptx = re.sub(r"\.extern\s+\.shared[^;]*;", "", ptx)
    bodies = re.split(r"(?=^[^\n]*\.(?:entry|func)\b)", ptx, flags=re.M)
    own = re.compile(rf"\.entry\s+{re.escape(symbol)}(?![\w$])|\.func\b")
    called = [body.partition("\n}")[0] for body in bodies if own.search(body.partition("(")[0])]
    return any(re.search(rf"(?<![\w$]){re.escape(x)}(?![\w$])", y) for x in names for y in called)


def three(extents: Sequence[int]) -> Dim3:
    """Extents in x, y, z; those that are not given are 1."""
    x, y, z = [*extents, 1, 1, 1][:3]
    return x, y, z


def demangle(symbol: str) -> str:
    import cxxfilt

    return str(cxxfilt.demangle(symbol))


def types_and_names(symbol: str, written: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns C++ types and names of parameters: types by the symbol if mangled, else as
    written."""
    types = _types(demangle(symbol)) or [_type_of(text) for text in written]
    return types, [_name_of(text, place) for place, text in enumerate(written)]


def _entry(module: PtxModule, symbol: str) -> Function:
    entries = {function.name: function for function in module.functions.values() if function.entry}
    if symbol:
        return entries[symbol]
    if len(entries) != 1:
        known = ", ".join(map(demangle, entries)) or "none"
        raise ConfigurationError(f"there should be one entry, and these are compiled: {known}.")
    return next(iter(entries.values()))


def _parameter(
    place: int, variable: Variable, types: Sequence[str], names: Sequence[str], used: ParameterUses
) -> KernelParameter:
    text = types[place] if place < len(types) else ""
    use, loaded = used.at(place, 0), used.loaded_at(place, 0, variable.size)
    is_pointer = "*" in text if text else use.read or use.written
    whole = variable.type != "b8" or variable.size == 1
    plain = bare(text) if text or is_pointer or not whole else _PLAIN.get(variable.type, "")
    return KernelParameter(
        name=names[place] if place < len(names) else f"p{place}",
        type=plain,
        size=variable.size,
        align=variable.align,
        is_pointer=is_pointer,
        ignored=not text and not loaded,
        unseen=not loaded,
        **msgspec.structs.asdict(used.at(place, 0, plain)),
    )


def _members(
    place: int, owner: str, inside: Sequence[Member], used: ParameterUses, taken: set[str]
) -> Iterator[KernelParameter]:
    """Those that the kernel loads, and tensor maps, whose addresses it passes on; each with the
    shortest name that no other has."""
    paths = [(owner, *member.path) for member in inside]
    ends = Counter("_".join(path[at:]) for path in paths for at in range(len(path)))
    for member, path in zip(inside, paths, strict=True):
        is_map = _is_tensor_map(bare(member.type)) and not member.is_pointer
        if not is_map and not used.loaded_at(place, member.offset, member.size):
            continue
        names = [python_name("_".join(path[at:])) for at in reversed(range(len(path)))]
        yield KernelParameter(
            name=next((x for x in names if x not in taken and ends[x] == 1), names[-1]),
            type=bare(member.type),
            size=member.size,
            align=member.size,
            is_pointer=member.is_pointer,
            offset=member.offset,
            **msgspec.structs.asdict(used.at(place, member.offset, bare(member.type))),
        )


def _types(signature: str) -> list[str]:
    """The types in a demangled signature; none where the name was not mangled."""
    if not signature.endswith(")"):
        return []
    inside = signature[opening(signature) + 1 : -1]
    return [item.strip() for item in split(inside, "(<", ")>") if item.strip()]


def split(text: str, opened: str = "([{", closed: str = ")]}") -> list[str]:
    """The parts between commas that none of these brackets encloses."""
    parts, level = [""], 0
    for letter in text:
        level += (letter in opened) - (letter in closed)
        if letter == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def opening(text: str) -> int:
    """Finds the parenthesis that the last character of a text closes."""
    level = 0
    for place in reversed(range(len(text))):
        level += (text[place] == ")") - (text[place] == "(")
        if level == 0:
            return place
    return 0


def _type_of(text: str) -> str:
    return re.sub(r"\w+\s*(\[.*\])?$", "", text)


def _name_of(text: str, place: int) -> str:
    match = re.search(r"([A-Za-z_]\w*)\s*(\[.*\])?$", text)
    return python_name(match[1]) if match else f"p{place}"


def python_name(name: str) -> str:
    """A parameter's name in Python, of which `in` and others are keywords: in_."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _is_tensor_map(kind: str) -> bool:
    return kind.endswith(("CUtensorMap", "CUtensorMap_st"))


def bare(text: str) -> str:
    """A type without qualifiers, and without what makes it a pointer."""
    words = re.sub(r"\b(const|volatile|restrict|__restrict__|__restrict)\b|[*&]|\[.*\]", " ", text)
    name = " ".join(words.split())
    return _OWN_NAMES.get(name, name)
