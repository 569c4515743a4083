"""Built evidence, from what the compiler made of a kernel or of a program: instructions by pipe,
resources from the cubin and from ptxas's report, occupancy."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from kernelexp.facts.chips import Arch, find_arch
from kernelexp.model.arm import (
    Arm,
    BuildEvidence,
    Occupancy,
    OtherEntry,
    ProgramEvidence,
    ProgramKernel,
    Resources,
)
from kernelexp.model.errors import ConfigurationError
from kernelexp.model.experiment import FULL, Program
from kernelexp.system import toolchain
from warpsim.launch import Launch, main_launch, of_entries
from warpsim.tables.opcodes import GROUPS, PADDING, group

if TYPE_CHECKING:  # an emulation reads SASS with this module, and builds nothing
    from kernelexp.evidence.build import Artefacts, ProgramArtefacts

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


# They begin with characters that are looked for: with `^\s+` each of 10,000 lines would be tried.
_INSTRUCTION = re.compile(
    r"/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)((?:\.\w+)*)([^;]*)"
)
_SM = re.compile(r"^\s*(?:code for|arch =) sm_(\d+)", re.M)
_FUNCTION = re.compile(r"Function : (\S+)\s*$", re.M)


def count_opcodes(dump: str, entry: str) -> dict[str, int]:
    """Instructions of `entry` in cuobjdump's SASS, by opcode, most frequent first."""
    counts = Counter(opcode for opcode, _, _ in _INSTRUCTION.findall(body(dump, entry)))
    for opcode in PADDING:
        counts.pop(opcode, None)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def count_all(dump: str, entry: str) -> int:
    """Instructions of `entry` in cuobjdump's SASS, what only pads the code included."""
    return len(_INSTRUCTION.findall(body(dump, entry)))


def count_pipes(dump: str, entries: Iterable[str]) -> dict[str, int]:
    """Instructions of entries by the first of their pipes, in the order of opcodes.GROUPS; groups
    without any are left out."""
    counts: Counter[str] = Counter()
    sm = sm_of(dump)
    for entry in entries:
        for opcode, modifiers, operands in _INSTRUCTION.findall(body(dump, entry)):
            if opcode not in PADDING:
                counts[group(opcode + modifiers, operands, sm)] += 1
    return {name: counts[name] for name in GROUPS if counts[name]}


def sm_of(dump: str) -> int:
    """The architecture in the head of a dump; 90, as of sm_90a, in one without."""
    match = _SM.search(dump)
    return int(match[1]) if match else 90


def body(dump: str, entry: str) -> str:
    """The part of a dump between this function's header and the next one's."""
    starts = list(_FUNCTION.finditer(dump))
    for start, after in zip(starts, [*starts[1:], None], strict=True):
        if start.group(1) == entry:
            return dump[start.end() : after.start() if after else len(dump)]
    return ""


Launches: TypeAlias = Mapping[str, Sequence[Launch]]
"""What launch() of problem.py gives, by the name of the size."""


def collect(
    arm: Arm, artefacts: Artefacts, exports: dict[str, int], launches: Launches
) -> BuildEvidence:
    """Returns what a built arm's cubin says of the entries that are launched.

    `launches` is empty where launch() could not be called: a source with one entry that exports its
    threads and dynamic shared memory is then judged by those. ConfigurationError where nothing says
    which entry, or how it is launched.
    """
    symbols = entries(artefacts.cubin, artefacts.ptxas_report)
    jobs = [[_named(arm, launch, symbols) for launch in job] for job in _full_first(launches)]
    if jobs:
        main = main_launch(jobs[0])
        entry, footprint = main.entry, _footprint(main, exports)
    else:
        entry, footprint = _only(symbols), _exported(exports)
    used = read(artefacts.cubin, artefacts.sass, artefacts.ptxas_report, entry, footprint)
    opcodes = count_opcodes(artefacts.sass, entry)
    arch = find_arch(arm.arch)
    return BuildEvidence(
        entry=entry,
        resources=used,
        occupancy=occupancy(arch, used),
        pipes=count_pipes(artefacts.sass, [entry]),
        opcodes=opcodes,
        exports=exports,
        warnings=warnings(artefacts.ptxas_report),
        others=_others(arch, artefacts, entry, [launch for job in jobs for launch in job]),
    )


def _full_first(launches: Launches) -> list[Sequence[Launch]]:
    return [launches[size] for size in sorted(launches, key=lambda size: size != FULL)]


def _named(arm: Arm, launch: Launch, symbols: Sequence[str]) -> Launch:
    launches_named = of_entries(launch, symbols)
    if launches_named.entry not in symbols:
        raise ConfigurationError(
            f"variants/{arm.kernel}/problem.py: launch() names the entry {launch.entry!r}; "
            f"{arm.source} has {', '.join(symbols) or 'none'}."
        )
    return launches_named


def _others(
    arch: Arch, artefacts: Artefacts, entry: str, launches: Sequence[Launch]
) -> dict[str, OtherEntry]:
    """The other entries that are launched, each as at its first launch."""
    entries: dict[str, OtherEntry] = {}
    for launch in launches:
        if launch.entry != entry and launch.entry not in entries:
            footprint = _footprint(launch, {})
            used = read(
                artefacts.cubin, artefacts.sass, artefacts.ptxas_report, launch.entry, footprint
            )
            entries[launch.entry] = OtherEntry(resources=used, occupancy=occupancy(arch, used))
    return entries


def _footprint(launch: Launch, exports: Mapping[str, int]) -> Footprint:
    """Returns the footprint as exported, else as launched."""
    launched = {
        "threads": math.prod(launch.block),
        "dynamic_smem_bytes": launch.dynamic_smem_bytes,
        "cluster": math.prod(launch.cluster),
    }
    return Footprint(**{name: exports.get(name, value) for name, value in launched.items()})


def _exported(exports: Mapping[str, int]) -> Footprint:
    for name in ("threads", "dynamic_smem_bytes"):
        if name not in exports:
            raise ConfigurationError(
                f'the source exports no {name}: add #include "export.cuh" and '
                f"KX_EXPORT({name}, ...)."
            )
    return Footprint(
        threads=exports["threads"],
        dynamic_smem_bytes=exports["dynamic_smem_bytes"],
        cluster=exports.get("cluster", 1),
    )


def _only(symbols: Sequence[str]) -> str:
    if len(symbols) != 1:
        raise ConfigurationError(
            f"the source has {len(symbols)} __global__ functions ({', '.join(symbols)}), and "
            "launch() does not say which one."
        )
    return symbols[0]


INSTRUCTION_BYTES = 16
_PROGRAM_USAGE = re.compile(r"^ Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", re.M)
_PROGRAM_SPILLS = re.compile(
    r"Function properties for (\S+)\s+\d+ bytes stack frame, "
    r"(\d+) bytes spill stores, (\d+) bytes spill loads"
)


def collect_program(
    program: Program, arch: str, program_artefacts: ProgramArtefacts
) -> ProgramEvidence:
    """Reads the evidence of a program's executable; spills are as ptxas reported of its source."""
    spills = {
        name: (int(stores), int(loads))
        for name, stores, loads in _PROGRAM_SPILLS.findall(program_artefacts.ptxas_report)
    }
    reserved = reserved_bytes(arch)
    kernels = []
    opcodes: Counter[str] = Counter()
    for name, registers, stack, shared in _PROGRAM_USAGE.findall(program_artefacts.sass):
        stores, loads = spills.get(name, (0, 0))
        opcodes.update(count_opcodes(program_artefacts.sass, name))
        kernels.append(
            ProgramKernel(
                name=name,
                registers=int(registers),
                spill_store_bytes=stores,
                spill_load_bytes=loads,
                stack_bytes=int(stack),
                static_smem_bytes=max(0, int(shared) - reserved),
                sass_bytes=INSTRUCTION_BYTES * count_all(program_artefacts.sass, name),
            )
        )
    ordered = dict(sorted(opcodes.items(), key=lambda item: (-item[1], item[0])))
    return ProgramEvidence(
        spec=program,
        kernels=tuple(kernels),
        pipes=count_pipes(program_artefacts.sass, [kernel.name for kernel in kernels]),
        opcodes=ordered,
        warnings=warnings(program_artefacts.ptxas_report),
    )
