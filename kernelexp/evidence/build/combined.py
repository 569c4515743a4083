"""The code of several cubins in one, to be disassembled by one process, and their listings apart.

nvdisasm takes 0.7 s to read the description of an architecture, and 0.02 s to print a kernel. What
it prints of an instruction that has no relocation depends on nothing but its bits and its address;
only the column of the encodings is that of the file's longest line, and is put back here to where
it is in a listing of the cubin alone.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_TEXT, _RELOCATIONS = ".text.", (".rel.text.", ".rela.text.")
# nvdisasm refuses a cubin without the first; the second is the architecture.
_KEPT = (".nv.compat", ".note.nv.cuinfo")
_DEBUG = re.compile(r"(?:\.nv\.merc)?(?:\.rela?)?\.(?:nv_)?debug_")
_TOOL = ".note.nv.tkinfo"
"""Names ptxas, its version and its options."""
_ALIGNED = 128
_STRTAB, _SYMTAB, _NOBITS = 3, 2, 8
_GLOBAL_FUNCTION, _ENTRY = 0x12, 0x10
_Row: TypeAlias = tuple[int, ...]
"""A section header: name, type, flags, address, offset, size, link, info, alignment, entry size."""

_BY_TABLE = ("BRX", "JMX")
"""Opcodes whose targets are in a section that is left out."""
_TARGET = re.compile(r"^\t\.target\t(\S+)$", re.M)
_CODE_FOR = re.compile(r"^\tcode for \S+$", re.M)
_FUNCTION = re.compile(r"\t\tFunction : (\d+)$", re.M)
_BITS = len("/* 0x0123456789abcdef */")


class CubinFunction(msgspec.Struct, frozen=True, kw_only=True):
    """The only function of a cubin."""

    name: str
    header: tuple[bytes | int, ...]
    row: _Row
    content: bytes
    kept: tuple[tuple[str, _Row, bytes], ...]
    """Sections that say what the code is for."""

    @property
    def target(self) -> tuple[object, ...]:
        """Format and architecture: equal for cubins whose code may be in one."""
        return self.header[0], self.header[7]


def is_whole(content: bytes) -> bool:
    """Whether an ELF64 file has all the bytes that its headers speak of.

    ptxas does not notice that its output could not be written.
    """
    if content[:5] != b"\x7fELF\x02":
        return False
    try:
        header, rows = _headers(content)
    except (struct.error, OverflowError):
        return False
    ends = [row[4] + row[5] for row in rows if row[1] != _NOBITS]
    return bool(rows) and max(ends, default=0) <= len(content) >= header[5] + header[9] * header[10]


def read(cubin: bytes) -> CubinFunction | None:
    """Reads a cubin's function; None for a cubin that has to be disassembled alone: of several
    functions, with relocations in its code, or of a form that is not known."""
    try:
        header, named = _sections(cubin)
    except (struct.error, IndexError, ValueError):
        return None
    texts = [(name, row) for name, row in named if name.startswith(_TEXT)]
    if len(texts) != 1 or any(name.startswith(_RELOCATIONS) and row[5] for name, row in named):
        return None
    ((name, row),) = texts
    return CubinFunction(
        name=name.removeprefix(_TEXT),
        header=header,
        row=row,
        content=_bytes(cubin, row),
        kept=tuple(
            (name, (0, *row[1:4], 0, *row[5:]), _bytes(cubin, row))
            for name, row in named
            if name in _KEPT
        ),
    )


def without_debug(cubin: bytes) -> tuple[object, ...]:
    """All of a cubin that its listing and its resource usage are printed from: without the line
    tables, which a comment or a moved line changes."""
    try:
        header, named = _sections(cubin)
    except (struct.error, IndexError, ValueError):
        return (cubin,)
    return header[:6], *(
        (name, row[1:4], row[5:], _bytes(cubin, row))
        for name, row in named
        if not _DEBUG.match(name)
    )


def code_digest(cubin: bytes) -> str:
    """SHA-256 of what a GPU is given to execute: instructions, constants, attributes of the entries
    and of the file, symbols; without line tables, and without the compiler's name and options.

    Two cubins of one digest are executed alike. Of a file that is no cubin all bytes count.
    """
    try:
        header, named = _sections(cubin)
        segments = [
            _SEGMENT.unpack_from(cubin, header[5] + i * header[9]) for i in range(header[10])
        ]
        parts = (
            header[:5],  # the rest but the flags are places in the file
            header[7],
            *(
                (name, row[1:4], row[5:], _bytes(cubin, row))
                for name, row in named
                if not _DEBUG.match(name) and name != _TOOL
            ),
            *(("segment", *_loaded(row, named)) for row in segments),
        )
    except (struct.error, IndexError, ValueError):
        parts = (cubin,)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _loaded(segment: _Row, sections: Sequence[tuple[str, _Row]]) -> tuple[object, ...]:
    """Which sections a segment loads, and how, but neither where it begins in the file nor its
    size: that has padding, and both move with the line tables before it."""
    kind, flags, offset, *addresses, in_file, in_memory, alignment = segment
    names = (
        name
        for name, row in sections
        if row[1] != _NOBITS and row[5] and offset <= row[4] and row[4] + row[5] <= offset + in_file
    )
    return kind, flags, *addresses, in_memory - in_file, alignment, *names


def _sections(cubin: bytes) -> tuple[tuple[Any, ...], list[tuple[str, _Row]]]:
    """A file's header, and its sections by name; struct.error, IndexError or ValueError where that
    is not its form."""
    header, rows = _headers(cubin)
    return header, [(_string(cubin, rows[header[13]][4] + row[0]), row) for row in rows]


def _headers(content: bytes) -> tuple[tuple[Any, ...], list[_Row]]:
    """A file's header, and those of its sections."""
    header = _HEADER.unpack_from(content)
    rows = (_SECTION.unpack_from(content, header[6] + i * header[11]) for i in range(header[12]))
    return header, list(rows)


def _string(content: bytes, at: int) -> str:
    return content[at : content.index(b"\0", at)].decode()


def _bytes(content: bytes, row: _Row) -> bytes:
    return b"" if row[1] == _NOBITS else content[row[4] : row[4] + row[5]]


def combine(codes: Sequence[CubinFunction]) -> bytes:
    """A cubin with these functions, named by their numbers; all have one target."""
    file = _File(codes[0].header)
    numbers = range(1, len(codes) + 1)
    table = len(codes) + 1  # the sections are: none, functions, their names, symbols, the rest
    for number, code in zip(numbers, codes, strict=True):
        row = (0, *code.row[1:6], table + 1, number, _ALIGNED, 0)
        file.add(f"{_TEXT}{number}", row, code.content)
    strings, symbols = b"\0", _SYMBOL.pack(0, 0, 0, 0, 0, 0)
    for number, code in zip(numbers, codes, strict=True):
        symbols += _SYMBOL.pack(
            len(strings), _GLOBAL_FUNCTION, _ENTRY, number, 0, len(code.content)
        )
        strings += f"{number}\0".encode()
    file.add(".strtab", (0, _STRTAB, 0, 0, 0, 0, 0, 0, 1, 0), strings)
    file.add(".symtab", (0, _SYMTAB, 0, 0, 0, 0, table, 1, 8, _SYMBOL.size), symbols)
    for name, row, content in codes[0].kept:
        file.add(name, (*row[:6], 0, 0, *row[8:]), content)
    return file.finish()


class _File:
    """An ELF file as it grows."""

    def __init__(self, header: tuple[bytes | int, ...]) -> None:
        self._header = header
        self._body = bytearray(_HEADER.size)
        self._names = bytearray(b"\0")
        self._rows: list[_Row] = [(0,) * 10]

    def add(self, name: str, row: _Row, content: bytes) -> None:
        """A section, of which place, size and the place of its name are found here."""
        self._body += bytes(-len(self._body) % _ALIGNED)
        self._rows.append((len(self._names), *row[1:4], len(self._body), len(content), *row[6:]))
        self._names += f"{name}\0".encode()
        self._body += content

    def finish(self) -> bytes:
        name = ".shstrtab"
        whole = bytes(self._names) + f"{name}\0".encode()
        self.add(name, (0, _STRTAB, 0, 0, 0, 0, 0, 0, 1, 0), whole)
        self._body += bytes(-len(self._body) % _ALIGNED)
        header = list(self._header)
        header[4:7] = 0, 0, len(self._body)  # no entry, no program headers
        header[9:11] = 0, 0
        header[12:14] = len(self._rows), len(self._rows) - 1
        self._body[: _HEADER.size] = _HEADER.pack(*header)
        return bytes(self._body) + b"".join(_SECTION.pack(*row) for row in self._rows)


def separate(listing: str, codes: Sequence[CubinFunction]) -> list[str] | None:
    """Splits the output of `cuobjdump -sass` for combined cubins into that of each cubin alone.

    None where the output is incomplete or not certain.
    """
    parts = _FUNCTION.split(listing)
    target = _TARGET.search(parts[0])
    numbers = [int(number) for number in parts[1::2]]
    if target is None or sorted(numbers) != list(range(1, len(codes) + 1)):
        return None
    if any(opcode in listing for opcode in _BY_TABLE):
        return None
    head = _CODE_FOR.sub(f"\tcode for {target[1]}", parts[0])
    bodies = dict(zip(numbers, parts[2::2], strict=True))
    return [
        f"{head}\t\tFunction : {code.name}{_aligned(bodies[number])}"
        for number, code in enumerate(codes, 1)
    ]


def _aligned(body: str) -> str:
    """Puts the encodings two columns behind the longest line, in which a guard counts twice: it is
    printed in the margin, and nvdisasm leaves room for it; not so that of a uniform predicate."""
    lines = body.split("\n")
    texts = {
        number: line[:-_BITS].rstrip(" ")
        for number, line in enumerate(lines)
        if line.startswith("/* 0x", -_BITS)
    }
    column = max((_width(text) for text in texts.values() if text), default=0) + 2
    for number, text in texts.items():
        lines[number] = text.ljust(column) + lines[number][-_BITS:]
    return "\n".join(lines)


def _width(text: str) -> int:
    if "@" not in text:
        return len(text)
    _address, _, instruction = text.partition("*/")
    guard, space, _ = instruction.lstrip().partition(" ")
    return len(text) + len(guard + space if guard.startswith(("@P", "@!P")) else "")
