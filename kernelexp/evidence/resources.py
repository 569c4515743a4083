"""What the compiler made of an entry: registers, memory, code size, exported figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kernelexp.arm import Resources
from kernelexp.errors import ConfigurationError

EXPORT_PREFIX = "kx_"
_TEXT_PREFIX = ".text."
# From sm_90 on a cubin's shared memory begins with the 1 KB that the system reserves in each CTA;
# ncu shows that as the driver's, and so does not count it as static.
_RESERVED = ".nv.shared.reserved.0"
_RESERVED_BYTES = 1024
_SHARED_PREFIX = ".nv.shared."

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_SPILLS = r"(\d+) bytes spill stores, (\d+) bytes spill loads"
# What costs time is said as info: "ptxas info : (C7510) Potential Performance Loss: ...".
_WARNING = re.compile(
    r"^ptxas (?:[^:]*warning\s*:|info\s*:(?=.*Potential Performance Loss))\s*(?:\(C\d+\)\s*)?"
    r"(?:Potential Performance Loss:\s*)?(.*)$",
    re.MULTILINE,
)
_USAGE = r"Function {}:\s+REG:(\d+) STACK:(\d+)"


def read(cubin: Path, dump: str, ptxas_report: str) -> tuple[str, Resources, dict[str, int]]:
    """Entry, resources and exports of a cubin that holds one entry.

    All is the cubin's own, read from it or by `cuobjdump -res-usage` (`dump`), but for the spills,
    which only `ptxas -v` reports. ConfigurationError where a cubin has not just one entry.
    """
    entries = _ENTRY.findall(ptxas_report)
    if len(entries) != 1:
        names = ", ".join(entries) or "none"
        raise ConfigurationError(
            f"a variant must have exactly one __global__ function, but this one has "
            f"{len(entries)} ({names})."
        )
    entry = entries[0]
    sass_bytes, smem, exports = _read_elf(cubin, entry)
    for name in ("threads", "dynamic_smem_bytes"):
        if name not in exports:
            raise ConfigurationError(
                f'the source exports no {name}: add #include "export.cuh" and '
                f"KX_EXPORT({name}, ...)."
            )
    for name in ("threads", "cluster"):
        if exports.get(name) == 0:
            raise ConfigurationError(f"the source exports 0 as {name}: it is at least 1.")
    stores, loads = _numbers(_SPILLS, ptxas_report)
    registers, stack = _numbers(_USAGE.format(re.escape(entry)), dump)
    resources = Resources(
        registers=registers,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        stack_bytes=stack,
        static_smem_bytes=smem,
        dynamic_smem_bytes=exports["dynamic_smem_bytes"],
        threads=exports["threads"],
        cluster=exports.get("cluster", 1),
        sass_bytes=sass_bytes,
    )
    return entry, resources, exports


def warnings(ptxas_report: str) -> tuple[str, ...]:
    """What ptxas warned of, each sentence once."""
    return tuple(dict.fromkeys(_WARNING.findall(ptxas_report)))


def reserved_bytes(arch: str) -> int:
    """What a target's kernels with shared memory have of it for the system; they count it in."""
    return _RESERVED_BYTES if int(arch.removeprefix("sm_").rstrip("af")) >= 90 else 0


def _numbers(pattern: str, text: str) -> tuple[int, ...]:
    match = re.search(pattern, text)
    if match is None:
        raise ConfigurationError(f"the compiler's report has no line that matches {pattern!r}.")
    return tuple(int(group) for group in match.groups())


def _read_elf(cubin: Path, entry: str) -> tuple[int, int, dict[str, int]]:
    """Bytes of code and of static shared memory, and the exported figures."""
    from elftools.elf.elffile import ELFFile

    with cubin.open("rb") as file:
        elf: Any = ELFFile(file)
        text = elf.get_section_by_name(_TEXT_PREFIX + entry)
        shared = elf.get_section_by_name(_SHARED_PREFIX + entry)
        exports = {}
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            if symbol.name.startswith(EXPORT_PREFIX) and symbol["st_size"] == 4:
                section = elf.get_section(symbol["st_shndx"])
                first = symbol["st_value"]
                # A figure of 0 is placed in .nv.global, which has no bytes in the file.
                data = b"" if section["sh_type"] == "SHT_NOBITS" else section.data()
                value = int.from_bytes(data[first : first + 4], "little")
                exports[symbol.name.removeprefix(EXPORT_PREFIX)] = value
        smem = int(shared["sh_size"]) if shared else 0
        if shared and elf.get_section_by_name(_RESERVED):
            smem -= _RESERVED_BYTES
        return int(text["sh_size"]), smem, dict(sorted(exports.items()))
