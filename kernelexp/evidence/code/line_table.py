"""The line table of a cubin: from which source line ptxas made the code at an offset.

A cubin's .debug_line is a DWARF 2 line program with two opcodes of NVIDIA's own. They give the
rows after them a context, which is the number of the row that their function was inlined at, and
the function's name. nvdisasm -gi reads the same table, but does not show where only the context
changes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.model.errors import EnvironmentFault
from warpsim.lineinfo import Source

# Standard opcodes, then extended ones.
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS, _INLINED_CALL, _FUNCTION_NAME = 0x01, 0x02, 0x90, 0x91


class LineRow(msgspec.Struct, frozen=True, kw_only=True):
    """The code from `offset` to the next row's is of one line."""

    offset: int
    """Bytes from the entry's first instruction."""
    source: Source
    function: str
    """Mangled name of the inlined function that the line is in; empty in the entry itself."""


def read(cubin: Path, entry: str) -> tuple[LineRow, ...]:
    """The rows of `entry` in the order of their offsets, one each; none without -lineinfo.

    EnvironmentFault where the table does not have the form that is read here.
    """
    rows = {row.offset: row for row in _rows(cubin, entry)}
    return tuple(rows[offset] for offset in sorted(rows))


def functions(cubin: Path, entry: str) -> dict[tuple[str, int], str]:
    """The inlined function that each line of `entry` is in, by file and line; faults as of read.

    Lines without code of their own too, as those that only call what is inlined.
    """
    rows = _rows(cubin, entry)
    return {(row.source.file, row.source.line): row.function for row in rows if row.function}


def _rows(cubin: Path, entry: str) -> list[LineRow]:
    from elftools.elf.elffile import ELFFile

    with cubin.open("rb") as file:
        elf = ELFFile(file)
        table, names = (elf.get_section_by_name(name) for name in (".debug_line", ".debug_str"))
        if table is None:
            return []
        program = _Program(table.data(), names.data() if names else b"", _entries(elf))
    try:
        return [row for name, row in program.run() if name == entry]
    except (IndexError, ValueError) as error:
        place = f"{cubin.parent.name}/{cubin.name}"
        raise EnvironmentFault(f"the line table of {place} can't be read: {error}.") from None


def _entries(elf: Any) -> dict[int, str]:
    """The entries whose addresses the table has, by the places where it has them."""
    symbols = elf.get_section_by_name(".symtab")
    sections = {}
    for name in (".rel.debug_line", ".rela.debug_line"):  # before Hopper, and from there on
        relocations = elf.get_section_by_name(name)
        for relocation in relocations.iter_relocations() if relocations else ():
            section = symbols.get_symbol(relocation["r_info_sym"])["st_shndx"]
            sections[relocation["r_offset"]] = elf.get_section(section).name.removeprefix(".text.")
    return sections


@dataclass(slots=True)
class _LineState:
    """The registers of a line program."""

    entry: str = ""
    address: int = 0
    file: int = 1
    line: int = 1
    context: int = 0
    """The number of the row that this code was inlined at, from 1; 0 for none."""
    function: str = ""


@dataclass(slots=True)
class _Program:
    """A line program as it is executed, after section 6.2 of the DWARF standard."""

    data: bytes
    names: bytes
    """What the functions' names are offsets into."""
    entries: Mapping[int, str]
    sources: list[Source] = field(default_factory=list)
    """Of the entry's rows so far: contexts are their numbers."""
    files: list[str] = field(default_factory=list)
    state: _LineState = field(default_factory=_LineState)
    stream: io.BytesIO = field(default_factory=io.BytesIO)

    def run(self) -> Iterator[tuple[str, LineRow]]:
        """Every row with its entry, in the table's order."""
        self.stream = io.BytesIO(self.data)
        while self.stream.tell() < len(self.data):
            end = self.stream.tell() + 4 + self.number(4)
            yield from self.unit(end)
            self.stream.seek(end)

    def unit(self, end: int) -> Iterator[tuple[str, LineRow]]:
        version = self.number(2)
        if version != 2:
            raise ValueError(f"it is of DWARF version {version}, not 2")
        program = self.number(4) + self.stream.tell()
        minimum = self.number(1)
        self.number(1)  # default_is_stmt
        base = int.from_bytes(self.stream.read(1), "little", signed=True)
        line_range, opcode_base = self.number(1), self.number(1)
        operands = self.stream.read(opcode_base - 1)
        self.header()
        self.stream.seek(program)
        self.state, self.sources = _LineState(), []
        while self.stream.tell() < end:
            opcode, state = self.number(1), self.state
            if opcode >= opcode_base:
                advance, step = divmod(opcode - opcode_base, line_range)
                state.address += advance * minimum
                state.line += base + step
                yield self.row()
            elif opcode == 0:
                self.extended()
            elif opcode == _COPY:
                yield self.row()
            elif opcode == _CONST_ADD_PC:
                state.address += (255 - opcode_base) // line_range * minimum
            else:
                self.standard(opcode, operands[opcode - 1], minimum)

    def header(self) -> None:
        """The tables of folders and files."""
        folders = [""]
        while folder := self.text():
            folders.append(folder)
        self.files = ["?"]
        while name := self.text():
            folder = folders[self.unsigned()]
            self.unsigned(), self.unsigned()  # time and size
            self.files.append(f"{folder}/{name}" if folder else name)

    def standard(self, opcode: int, operands: int, minimum: int) -> None:
        state = self.state
        if opcode == _ADVANCE_PC:
            state.address += self.unsigned() * minimum
        elif opcode == _ADVANCE_LINE:
            state.line += self.signed()
        elif opcode == _SET_FILE:
            state.file = self.unsigned()
        elif opcode == _FIXED_ADVANCE_PC:
            state.address += self.number(2)
        else:  # columns, statements, blocks: nothing that is asked for
            for _ in range(operands):
                self.unsigned()

    def extended(self) -> None:
        end = self.unsigned() + self.stream.tell()
        opcode = self.number(1)
        if opcode == _END_SEQUENCE:
            self.state, self.sources = _LineState(), []
        elif opcode == _SET_ADDRESS:
            place = self.stream.tell()
            self.state.address = self.number(end - place)
            self.state.entry = self.entries.get(place, "")
        elif opcode == _INLINED_CALL:
            self.state.context = self.unsigned()
            self.state.function = self.name(self.unsigned()) if self.state.context else ""
        elif opcode == _FUNCTION_NAME:
            self.state.function = self.name(self.unsigned())
        self.stream.seek(end)

    def row(self) -> tuple[str, LineRow]:
        state = self.state
        caller = self.sources[state.context - 1] if state.context else None
        source = Source(self.files[state.file], state.line, caller)
        self.sources.append(source)
        row = LineRow(offset=state.address, source=source, function=state.function)
        return state.entry, row

    # Reading

    def number(self, size: int) -> int:
        read = self.stream.read(size)
        if len(read) < size:
            raise ValueError("it ends early")
        return int.from_bytes(read, "little")

    def unsigned(self) -> int:
        """LEB128."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        """LEB128 in two's complement."""
        start = self.stream.tell()
        value = self.unsigned()
        bits = 7 * (self.stream.tell() - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        """Up to the next zero byte."""
        start = self.stream.tell()
        end = self.data.index(b"\0", start)
        self.stream.seek(end + 1)
        return self.data[start:end].decode("utf-8", "surrogateescape")

    def name(self, offset: int) -> str:
        """A function's, from .debug_str."""
        return self.names[offset : self.names.index(b"\0", offset)].decode("utf-8", "replace")
