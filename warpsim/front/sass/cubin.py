"""A cubin: what its sections say of an entry, apart from the code."""

from __future__ import annotations

import functools
import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import msgspec

from warpsim.front.sass import shared_arrays
from warpsim.front.sass.faults import CubinError, UnknownCard
from warpsim.launch import Dim3
from warpsim.machine.core.image import Pointed, Variable
from warpsim.machine.memory.layout import SHARED_RESERVED

F = TypeVar("F", bound=Callable[..., Any])

ARCHITECTURES = (*range(80, 91), 100, 120)
"""Those whose SASS is executed."""
MOVED = 8
"""The version of the ABI from which on e_flags has the architecture in its second byte."""
HOPPER = 90
"""From there on a CTA's shared memory begins with the system's kilobyte, and says so."""
BLACKWELL = 100
"""From there on the kernel finds what the driver says elsewhere in constant bank 0."""
CONSTANTS = 3
"""The constant bank with the program's own variables."""
_ABS_64, _GENERIC_64 = 2, 4
"""R_CUDA_64, R_CUDA_G64: an address of 8 bytes, which may be a generic one."""
# Attributes of .nv.info, by the names that cuobjdump -elf gives them.
_MAX_THREADS, _PARAM_CBANK, _REQNTID = 0x05, 0x0A, 0x10
_FRAME_SIZE, _MIN_STACK_SIZE, _KPARAM_INFO = 0x11, 0x12, 0x17
_REGCOUNT, _CTA_PER_CLUSTER = 0x2F, 0x3D
_NO_VALUE, _BYTE, _HALF, _SIZED = 1, 2, 3, 4
"""Formats of attributes."""


class CubinParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of an entry."""

    offset: int
    """Bytes from the first one's place."""
    size: int


class CubinEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a cubin: its code, and what the loader has to know of it."""

    name: str
    sm: int
    """90 for sm_90 and sm_90a."""
    parameters: tuple[CubinParameter, ...]
    parameter_base: int
    """Where they begin in constant bank 0."""
    registers: int
    frame_bytes: int
    """Of a thread's stack."""
    shared_bytes: int
    """Of static shared memory, without what belongs to the system."""
    shared_align: int
    """Of the dynamic array behind it."""
    ptx: str
    """That it was assembled from, as far as the cubin has it."""
    block: Dim3 | None
    cluster: Dim3 | None
    max_threads: int | None
    variables: tuple[Variable, ...]
    """In global memory."""
    constants: dict[str, tuple[int, int]]
    """Variables in constant memory: offset and bytes of each in its bank."""
    banks: dict[int, bytes]
    """Constant banks other than 0."""
    addresses: dict[int, tuple[Pointed, ...]]
    """By bank: the places of it where the loader puts addresses."""
    code: bytes
    """Its instructions, 16 bytes each."""
    relocated: tuple[int, ...]
    """Addresses of instructions that the loader changes."""


def _guarded(function: F) -> F:
    """Whatever a damaged file makes its reader raise, as a CubinError."""

    @functools.wraps(function)
    def guarded(*arguments: Any) -> Any:
        from elftools.common.exceptions import ELFError

        try:
            return function(*arguments)
        except CubinError:
            raise
        except (
            *(ELFError, struct.error, ArithmeticError, AttributeError, LookupError, MemoryError),
            *(TypeError, ValueError, zlib.error),
        ) as fault:
            words = f"{type(fault).__name__}: {fault}".rstrip(".")
            raise CubinError(f"the cubin is damaged: {words}.") from None

    return cast("F", guarded)


@_guarded
def entries(content: bytes) -> tuple[str, ...]:
    """The symbols of a cubin's entries."""
    elf = _elf(content)
    names = (section.name for section in elf.iter_sections())
    return tuple(n.removeprefix(".nv.info.") for n in names if n.startswith(".nv.info."))


@_guarded
def architecture(content: bytes) -> int:
    """90 for sm_90 and sm_90a."""
    return _architecture(_elf(content))


def _architecture(elf: Any) -> int:
    # ptxas 13 has another ABI, in which the number moved up by a byte.
    moved = elf.header["e_ident"]["EI_ABIVERSION"] >= MOVED
    sm: int = elf.header["e_flags"] >> (8 if moved else 0) & 0xFF
    return sm


@_guarded
def read(content: bytes, entry: str) -> CubinEntry:
    """What a cubin says of `entry`; CubinError for a file that is none, or for an architecture that
    is not covered."""
    elf = _elf(content)
    code = elf.get_section_by_name(f".text.{entry}")
    if code is None:
        known = ", ".join(entries(content)) or "none"
        raise CubinError(f"the cubin has no entry {entry!r}; its entries are {known}.")
    sm = _architecture(elf)
    if sm not in ARCHITECTURES:
        first, *_, last, blackwell, rtx = ARCHITECTURES
        covered = f"sm_{first} to sm_{last}, sm_{blackwell} and sm_{rtx}"
        raise UnknownCard(f"the cubin is for sm_{sm}; the emulator executes the SASS of {covered}.")
    own = dict(_grouped(_attributes(elf, f".nv.info.{entry}")))
    sizes = _of_functions(elf, entry)
    parameters = sorted(struct.unpack("<IHHI", record) for record in own.get(_KPARAM_INFO, []))
    reserved = SHARED_RESERVED if sm >= HOPPER else 0
    shared = elf.get_section_by_name(f".nv.shared.{entry}")
    most = _three(own, _MAX_THREADS)
    return CubinEntry(
        name=entry,
        sm=sm,
        parameters=tuple(CubinParameter(offset=p[2], size=p[3] >> 18) for p in parameters),
        parameter_base=_parameter_base(own),
        registers=sizes.get(_REGCOUNT, 0),
        frame_bytes=max(sizes.get(_FRAME_SIZE, 0), sizes.get(_MIN_STACK_SIZE, 0)),
        shared_align=max(16, shared["sh_addralign"]) if shared is not None else 16,
        shared_bytes=max(0, shared["sh_size"] - reserved) if shared is not None else 0,
        ptx=_text(elf, shared_arrays.SECTION),
        block=_three(own, _REQNTID),
        cluster=_three(own, _CTA_PER_CLUSTER),
        max_threads=most[0] * most[1] * most[2] if most else None,
        variables=tuple(_variables(elf)),
        constants=dict(_constants(elf)),
        banks=dict(_banks(elf, entry)),
        addresses={bank: tuple(_pointers(elf, entry, bank)) for bank, _ in _banks(elf, entry)},
        code=code.data(),
        relocated=tuple(
            relocation["r_offset"] for relocation in _relocations(elf, f".text.{entry}")
        ),
    )


def _elf(content: bytes) -> Any:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        return ELFFile(io.BytesIO(content))
    except (ELFError, struct.error) as fault:
        raise CubinError(f"the file is not a cubin: {fault}.") from None


def _text(elf: Any, section: str) -> str:
    """Lines that end with zeros; empty without the section."""
    lines = elf.get_section_by_name(section)
    return lines.data().replace(b"\0", b"\n").decode("utf-8", "replace") if lines else ""


def _attributes(elf: Any, section: str) -> Iterator[tuple[int, bytes]]:
    """(attribute, value) of a section of .nv.info."""
    table = elf.get_section_by_name(section)
    data, at = table.data() if table is not None else b"", 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _SIZED:
            yield attribute, data[at : at + size]
            at += size
        elif form in (_NO_VALUE, _BYTE, _HALF):
            yield attribute, size.to_bytes(2, "little")
        else:
            raise CubinError(f"{section} has an attribute of unknown format {form:#x}.")


def _grouped(attributes: Iterator[tuple[int, bytes]]) -> dict[int, list[bytes]]:
    groups: dict[int, list[bytes]] = {}
    for attribute, value in attributes:
        groups.setdefault(attribute, []).append(value)
    return groups


def _of_functions(elf: Any, entry: str) -> dict[int, int]:
    """The attributes that .nv.info has of the entry, by number."""
    symbols = elf.get_section_by_name(".symtab")
    sizes = {}
    for attribute, value in _attributes(elf, ".nv.info"):
        if len(value) == 8:
            symbol, number = struct.unpack("<II", value)
            if symbol < symbols.num_symbols() and symbols.get_symbol(symbol).name == entry:
                sizes[attribute] = number
    return sizes


def _parameter_base(own: dict[int, list[bytes]]) -> int:
    """0 for an entry without parameters."""
    if _PARAM_CBANK not in own:
        return 0
    base: int = struct.unpack("<II", own[_PARAM_CBANK][0])[1]
    return base & 0xFFFF


def _three(own: dict[int, list[bytes]], attribute: int) -> Dim3 | None:
    if attribute not in own:
        return None
    x, y, z = struct.unpack("<III", own[attribute][0][:12])
    return x, y, z


def _objects(elf: Any, *names: str) -> Iterator[tuple[Any, Any]]:
    """(symbol, section) of what lies in sections of these names."""
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol["st_info"]["type"] != "STT_OBJECT" or not isinstance(symbol["st_shndx"], int):
            continue
        section = elf.get_section(symbol["st_shndx"])
        if section.name in names:
            yield symbol, section


def _constants(elf: Any) -> Iterator[tuple[str, tuple[int, int]]]:
    for symbol, _ in _objects(elf, f".nv.constant{CONSTANTS}"):
        yield symbol.name, (symbol["st_value"], symbol["st_size"])


def _variables(elf: Any) -> Iterator[Variable]:
    for symbol, section in _objects(elf, ".nv.global", ".nv.global.init"):
        first, size = symbol["st_value"], symbol["st_size"]
        data = section.data()[first : first + size] if section["sh_type"] != "SHT_NOBITS" else b""
        pointers = _relocated(elf, section.name)
        yield Variable(
            name=symbol.name,
            space="global",
            type="b8",
            align=max(1, section["sh_addralign"]),
            size=size,
            data=data,
            addresses=tuple(
                Pointed(pointer.offset - first, pointer.name, pointer.addend)
                for pointer in pointers
                if first <= pointer.offset < first + size
            ),
        )


def _banks(elf: Any, entry: str) -> Iterator[tuple[int, bytes]]:
    """Constant banks that the entry sees, but for bank 0."""
    for section in elf.iter_sections():
        name, _, function = section.name.removeprefix(".nv.constant").partition(".")
        own = section.name.startswith(".nv.constant") and function in ("", entry)
        if own and name.isdigit() and name != "0":
            yield int(name), section.data()


def _relocations(elf: Any, section: str) -> Iterator[Any]:
    for prefix in (".rel", ".rela"):
        table = elf.get_section_by_name(prefix + section)
        if table is not None:
            yield from table.iter_relocations()


def _pointers(elf: Any, entry: str, bank: int) -> Iterator[Pointed]:
    """Addresses in a bank."""
    for section in (f".nv.constant{bank}", f".nv.constant{bank}.{entry}"):
        yield from _relocated(elf, section)


def _relocated(elf: Any, section: str) -> Iterator[Pointed]:
    """The addresses that the loader puts into a section of data."""
    symbols = elf.get_section_by_name(".symtab")
    for relocation in _relocations(elf, section):
        if relocation["r_info_type"] not in (_ABS_64, _GENERIC_64):
            raise CubinError(f"{section} has a relocation of kind {relocation['r_info_type']}.")
        name = symbols.get_symbol(relocation["r_info_sym"]).name
        addend = relocation["r_addend"] if relocation.is_RELA() else 0
        yield Pointed(relocation["r_offset"], name, addend)
