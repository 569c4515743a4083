"""Resources of a compiled entry: registers, memory, code size, exported figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.facts.arch import Arch
from kernelexp.model.arm import Occupancy, Resources
from kernelexp.model.errors import ConfigurationError
from kernelexp.system import toolchain

_TEXT_PREFIX = ".text."
_INFO = ".nv.info."
# From sm_90 on a cubin's shared memory begins with the 1 KB that the system reserves in each CTA;
# ncu shows that as the driver's, and so does not count it as static.
_RESERVED = ".nv.shared.reserved.0"
_RESERVED_BYTES = 1024
_SHARED_PREFIX = ".nv.shared."

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_ENTRY_PARTS = re.compile(r"(?=Compiling entry function ')")
_SPILLS = r"(\d+) bytes spill stores, (\d+) bytes spill loads"
# What costs time is said as info: "ptxas info : (C7510) Potential Performance Loss: ...".
_WARNING = re.compile(
    r"^ptxas (?:[^:]*warning\s*:|info\s*:(?=.*Potential Performance Loss))\s*(?:\(C\d+\)\s*)?"
    r"(?:Potential Performance Loss:\s*)?(.*)$",
    re.MULTILINE,
)
_USAGE = r"Function {}:\s+REG:(\d+) STACK:(\d+)"


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that a launch requests and the compiled code does not fix."""

    threads: int
    dynamic_smem_bytes: int
    cluster: int


def entries(cubin: Path, ptxas_report: str) -> tuple[str, ...]:
    """The symbols of a cubin's __global__ functions, in the order of the report if there is one."""
    if matches := _ENTRY.findall(ptxas_report):
        return tuple(matches)
    from elftools.elf.elffile import ELFFile

    with cubin.open("rb") as file:
        names = [section.name for section in ELFFile(file).iter_sections()]
    return tuple(name.removeprefix(_INFO) for name in names if name.startswith(_INFO))


def read(cubin: Path, dump: str, ptxas_report: str, entry: str, footprint: Footprint) -> Resources:
    """Resources of an entry of a cubin.

    All is the cubin's own, read from it or by `cuobjdump -res-usage` (`dump`), but for the spills,
    which only `ptxas -v` reports, and for what the launch decides. The report is empty where ptxas
    was not started.
    """
    sass_bytes, smem = _read_elf(cubin, entry)
    registers, stack = _numbers(_USAGE.format(re.escape(entry)), dump)
    stores, loads = _spills(ptxas_report, entry, stack)
    return Resources(
        registers=registers,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        stack_bytes=stack,
        static_smem_bytes=smem,
        dynamic_smem_bytes=footprint.dynamic_smem_bytes,
        threads=footprint.threads,
        cluster=footprint.cluster,
        sass_bytes=sass_bytes,
    )


def _spills(ptxas_report: str, entry: str, stack: int) -> tuple[int | None, int | None]:
    """Even without a report, code that has no stack certainly does not spill."""
    if not ptxas_report:
        return (None, None) if stack else (0, 0)
    report = next(part for part in _ENTRY_PARTS.split(ptxas_report) if _names(part, entry))
    stores, loads = _numbers(_SPILLS, report)
    return stores, loads


def _names(part: str, entry: str) -> bool:
    match = _ENTRY.match(part)
    return match is not None and match[1] == entry


def warnings(ptxas_report: str) -> tuple[str, ...]:
    """Returns the warnings of ptxas, each sentence once."""
    return tuple(dict.fromkeys(_WARNING.findall(ptxas_report)))


def reserved_bytes(arch: str) -> int:
    """Returns the shared memory reserved for the system; kernels that use any count it in."""
    return _RESERVED_BYTES if int(arch.removeprefix("sm_").rstrip("af")) >= 90 else 0


def _numbers(pattern: str, text: str) -> tuple[int, ...]:
    match = re.search(pattern, text)
    if match is None:
        raise ConfigurationError(f"the compiler's report has no line that matches {pattern!r}.")
    return tuple(int(group) for group in match.groups())


def _read_elf(cubin: Path, entry: str) -> tuple[int, int]:
    """Bytes of code and of static shared memory."""
    from elftools.elf.elffile import ELFFile

    with cubin.open("rb") as file:
        elf: Any = ELFFile(file)
        text = elf.get_section_by_name(_TEXT_PREFIX + entry)
        shared = elf.get_section_by_name(_SHARED_PREFIX + entry)
        smem = int(shared["sh_size"]) if shared else 0
        if shared and elf.get_section_by_name(_RESERVED):
            smem -= _RESERVED_BYTES
        return int(text["sh_size"]), smem


def read_exports(cubin: Path) -> dict[str, int]:
    """The exported figures; ConfigurationError where one is what it can't be."""
    figures = toolchain.exports_of(cubin)
    for name in ("threads", "cluster"):
        if figures.get(name) == 0:
            raise ConfigurationError(f"the source exports 0 as {name}: it is at least 1.")
    return figures


WARP = 32
# Registers belong to the four schedulers, each of which serves a quarter of the warps.
_PARTITIONS = 4


def occupancy(arch: Arch, resources: Resources) -> Occupancy:
    """The rules of the CUDA occupancy calculator (cuda_occupancy.h): warps, CTAs, registers,
    shared memory; a cluster changes where CTAs are placed, not how many one SM holds."""
    warps = -(-resources.threads // WARP)
    limits = {
        "CTAs": arch.ctas_per_sm,
        "warps": arch.warps_per_sm // warps,
        "registers": _by_registers(arch, resources.registers, warps),
        "shared memory": _by_smem(arch, resources.static_smem_bytes + resources.dynamic_smem_bytes),
    }
    ctas = min(limits.values())
    return Occupancy(
        ctas_per_sm=ctas,
        warps_per_sm=ctas * warps,
        warps_limit=arch.warps_per_sm,
        limited_by=tuple(name for name, limit in limits.items() if limit == ctas),
    )


def _by_registers(arch: Arch, registers: int, warps: int) -> int:
    a_warp = _round_up(max(registers, 1) * WARP, arch.register_unit)
    warps_fit = arch.registers_per_sm // _PARTITIONS // a_warp * _PARTITIONS
    return warps_fit // warps


def _by_smem(arch: Arch, smem_bytes: int) -> int:
    if smem_bytes > arch.smem_per_cta_bytes:
        return 0
    a_cta = _round_up(smem_bytes + arch.smem_reserved_bytes, arch.smem_unit_bytes)
    return arch.smem_per_sm_bytes // a_cta


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
