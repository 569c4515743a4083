"""Figures that a compiled source exports: constants named kx_NAME, of an object file or a cubin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_PREFIX = "kx_"


def read(path: Path) -> dict[str, int]:
    """Returns the constants of 4 bytes by NAME, in alphabetical order."""
    from elftools.elf.elffile import ELFFile

    exports = {}
    with path.open("rb") as file:
        elf: Any = ELFFile(file)
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            if symbol.name.startswith(_PREFIX) and symbol["st_size"] == 4:
                section = elf.get_section(symbol["st_shndx"])
                first = symbol["st_value"]
                # A figure of 0 is placed in .nv.global, which has no bytes in the file.
                data = b"" if section["sh_type"] == "SHT_NOBITS" else section.data()
                value = int.from_bytes(data[first : first + 4], "little")
                exports[symbol.name.removeprefix(_PREFIX)] = value
    return dict(sorted(exports.items()))
