"""What only the compiler knows of a kernel's source: constants, sizes and layouts of its types.

Constants are compiled to PTX. The layout of a structure is in no PTX: nvcc writes it into a cubin
that it compiles with -G, as DWARF.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from kernelexp.evidence import build
from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.experiment import Variant
from kernelexp.services.adopt import adopted, jobs
from kernelexp.services.adopt import answers as answering
from kernelexp.services.adopt.adopted import Compiled
from kernelexp.services.adopt.answers import Answers, LaunchShape
from kernelexp.services.adopt.entry import Member
from kernelexp.services.adopt.expressions import names_in
from kernelexp.services.adopt.notation import parse_block, spelled
from kernelexp.system.process import processes
from kernelexp.system.process.processes import TimedOut
from kernelexp.system.toolchain import Toolchain
from warpsim.launch import full_name

LIMIT_S = 300.0
MOST = 16
"""Elements of an array in a structure that are members of their own."""
_QUALIFIERS = frozenset({"const_type", "volatile_type", "restrict_type", "typedef"})
_STRUCTURES = frozenset({"structure_type", "class_type"})


def members(
    root: Path, variant: Variant, tools: Toolchain, symbol: str
) -> dict[int, tuple[Member, ...]]:
    """Returns the members of an entry's struct parameters, by place; empty where the compiler does
    not tell."""
    try:
        cubin = compiled("cubin", root, variant, tools, "-G")
    except (EnvironmentFault, TimedOut):
        return {}
    return _read(cubin, symbol) if cubin else {}


def compiled(
    kind: Literal["ptx", "cubin"], root: Path, variant: Variant, tools: Toolchain, *flags: str
) -> bytes:
    """What the compiler makes of a variant with these flags; empty where it refuses.

    Raises EnvironmentFault, TimedOut.
    """
    (plan,) = build.make_plans(root, [variant], tools)
    argv = [*(item for item in plan.command if item != "-lineinfo"), *flags, f"-{kind}", "-o"]
    with tempfile.TemporaryDirectory(dir=root / build.CACHE) as folder:
        made = Path(folder) / f"made.{kind}"
        processes.run([*argv, str(made)], cwd=root, env={"TMPDIR": folder}, timeout_s=LIMIT_S)
        return made.read_bytes() if made.is_file() else b""


def _read(cubin: bytes, symbol: str) -> dict[int, tuple[Member, ...]]:
    """The members of a kernel's struct parameters, by parameter, from a cubin with debug data."""
    from elftools.elf.elffile import ELFFile

    dwarf = ELFFile(io.BytesIO(cubin)).get_dwarf_info(relocate_dwarf_sections=False)
    for unit in dwarf.iter_CUs():
        for die in unit.iter_DIEs():
            if die.tag == "DW_TAG_subprogram" and symbol in _names(die):
                parameters = (p for p in die.iter_children() if p.tag == "DW_TAG_formal_parameter")
                result = {n: tuple(_of_parameter(p)) for n, p in enumerate(parameters)}
                return {place: inside for place, inside in result.items() if inside}
    return {}


def _names(entry: Any) -> Sequence[str]:
    wanted = ("DW_AT_MIPS_linkage_name", "DW_AT_linkage_name", "DW_AT_name")
    return [entry.attributes[name].value.decode() for name in wanted if name in entry.attributes]


def _of_parameter(parameter: Any) -> Iterator[Member]:
    kind = _plain(_type(parameter))
    if kind is not None and _kind(kind) in ("pointer_type", "reference_type"):
        return
    if kind is not None and _kind(kind) in _STRUCTURES and _spelled(kind) not in OPAQUE:
        yield from _inside(kind, (), 0)


OPAQUE = ("__half", "__nv_bfloat16", "CUtensorMap_st")
"""Structures that are values."""


def _inside(kind: Any, path: tuple[str, ...], offset: int) -> Iterator[Member]:
    """The members of a structure, those of base classes and of structures in it too.

    Of a union the first; bit fields are left out, and so are the later elements of long arrays.
    """
    for child in kind.iter_children():
        if child.tag not in ("DW_TAG_member", "DW_TAG_inheritance"):
            continue
        if "DW_AT_bit_size" in child.attributes or _place(child) is None:
            continue
        name = _text(child, "DW_AT_name") if child.tag == "DW_TAG_member" else ""
        here = (*path, name) if name else path
        yield from _value(_type(child), here, offset + (_place(child) or 0))
        if _kind(kind) == "union_type":
            return


def _value(kind: Any, path: tuple[str, ...], offset: int) -> Iterator[Member]:
    plain = _plain(kind)
    if plain is None:
        return
    tag = _kind(plain)
    if tag == "array_type":
        element = _plain(_type(plain))
        size = _size(element)
        for index in range(min(_count(plain), MOST) if size else 0):
            named = (*path[:-1], f"{path[-1]}_{index}") if path else ()
            yield from _value(element, named, offset + index * size)
    elif tag in (*_STRUCTURES, "union_type") and _spelled(plain) not in OPAQUE:
        yield from _inside(plain, path, offset)
    elif path:
        is_pointer = tag in ("pointer_type", "reference_type", "rvalue_reference_type")
        yield Member(
            path=path,
            type=_spelled(plain),
            offset=offset,
            size=8 if is_pointer else _size(plain),
            is_pointer=is_pointer,
        )


def _spelled(kind: Any) -> str:
    """Its name in C++; of a pointer what it points to, with a star."""
    plain = _plain(kind)
    if plain is None:
        return "void"
    if _kind(plain).endswith(("pointer_type", "reference_type")):
        return f"{_spelled(_type(plain))} *"
    if _kind(plain) == "enumeration_type":
        return {1: "unsigned char", 2: "unsigned short", 8: "unsigned long"}.get(
            _size(plain), "int"
        )
    return _text(plain, "DW_AT_name") or "void"


def _plain(kind: Any) -> Any:
    while kind is not None and _kind(kind) in _QUALIFIERS:
        kind = _type(kind)
    return kind


def _kind(entry: Any) -> str:
    return str(entry.tag).removeprefix("DW_TAG_")


def _type(entry: Any) -> Any:
    return entry.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in entry.attributes else None


def _text(entry: Any, attribute: str) -> str:
    result = entry.attributes.get(attribute)
    return result.value.decode("utf-8", "replace") if result else ""


def _size(entry: Any) -> int:
    if entry is None:
        return 0
    if _kind(entry).endswith("pointer_type"):
        return 8
    if _kind(entry) == "array_type":
        return _count(entry) * _size(_plain(_type(entry)))
    result = entry.attributes.get("DW_AT_byte_size")
    return int(result.value) if result else 0


def _count(array: Any) -> int:
    """Elements of an array of all its dimensions."""
    count = 1
    for child in array.iter_children():
        bound = child.attributes.get("DW_AT_upper_bound")
        total = child.attributes.get("DW_AT_count")
        count *= total.value if total else (bound.value + 1 if bound else 0)
    return int(count)


def _place(member: Any) -> int | None:
    """Bytes from the structure's beginning: a number, or DW_OP_plus_uconst and a LEB128."""
    result = member.attributes.get("DW_AT_data_member_location")
    if result is None:
        return 0
    if isinstance(result.value, int):
        return int(result.value)
    operation, *encoded = result.value
    if operation != 0x23:
        return None
    return int(sum((byte & 0x7F) << 7 * index for index, byte in enumerate(encoded)))


def find(
    root: Path,
    compiled: Compiled,
    answers: Answers,
    axes: Collection[str],
    flags: Sequence[str],
    tools: Toolchain,
) -> dict[str, int]:
    """Returns the values of names that a person wrote in a grid, a block, a shape, ... and that are
    no parameters, sizes or axes; without those that are no constants of the source either."""
    own = [*answering.texts(answers), *compiled.cluster, *jobs.passed(compiled.entries)]
    used = names_in(own)
    known = {value.name for value in jobs.values(compiled.entries)} | answers.values.keys()
    names = sorted(used - known - {*axes})
    if not names or not compiled.source.endswith(".cu"):
        return {}
    variant = Variant(
        kernel=compiled.kernel,
        arch=compiled.arch,
        source=f"variants/{compiled.kernel}/{compiled.source}",
        axes={},
        flags=tuple(dict.fromkeys((*flags, *compiled.flags))),
    )
    spaces = {full_name(x.symbol).partition("<")[0].rpartition("::")[0] for x in compiled.entries}
    return evaluate(root, variant, names, tools, sorted(spaces))


def evaluate(
    root: Path,
    variant: Variant,
    names: Sequence[str],
    tools: Toolchain,
    namespaces: Sequence[str] = (),
) -> dict[str, int]:
    """Returns the values of names at the end of a variant's source; without those that are no
    constants there."""
    using = [f"using namespace {space};" for space in namespaces if space and "(" not in space]
    try:
        together = _evaluate(root, variant, names, using, tools)
        # One that is no constant fails them all.
        return together or {
            name: number
            for single in names
            if len(names) > 1
            for name, number in _evaluate(root, variant, [single], using, tools).items()
        }
    except (EnvironmentFault, TimedOut):
        return {}


def insert(
    compiled: Compiled, answers: Answers, numbers: Mapping[str, int]
) -> tuple[Compiled, Answers]:
    """Replaces the names by the numbers."""
    if not numbers:
        return compiled, answers
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, numbers))})\b")
    compiled, answers = adopted.rewritten(
        compiled, answers, lambda text: pattern.sub(lambda match: str(numbers[match[1]]), text)
    )
    launches = tuple(map(_with_block, answers.launches))
    return compiled, msgspec.structs.replace(answers, launches=launches)


def _with_block(shape: LaunchShape) -> LaunchShape:
    """Turns extents that are all numbers into the block that they are."""
    if not shape.extents or not all(map(str.isdigit, shape.extents)):
        return shape
    block = parse_block(",".join(shape.extents))
    return msgspec.structs.replace(shape, block=block, extents=())


_SOURCE = "kx_values.cu"
_VALUE = re.compile(r"\bkx_value_(\d+)(?: = (-?\d+))?;")


def _evaluate(
    root: Path, variant: Variant, names: Sequence[str], using: Sequence[str], tools: Toolchain
) -> dict[str, int]:
    """Nothing where that does not compile."""
    own = root / variant.source
    source = own.with_name(_SOURCE)
    text = "\n".join([own.read_text("utf-8"), *using, *map(_declared, range(99), names)])
    try:
        source.write_text(text, "utf-8")
        place = source.relative_to(root).as_posix()
        own_variant = msgspec.structs.replace(variant, source=place)
        text = compiled("ptx", root, own_variant, tools).decode()
    finally:
        source.unlink(missing_ok=True)
    return {names[int(match[1])]: int(match[2] or 0) for match in _VALUE.finditer(text)}


def _declared(place: int, name: str) -> str:
    return f"__device__ long long kx_value_{place} = (long long)({spelled(name)});"
