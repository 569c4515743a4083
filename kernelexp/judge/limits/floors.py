"""The least time that each part of a chip needs for a launch, from what is known of its work.

It is a lower bound, but where it is `rough`: whatever else the kernel moves comes on top. Where
counts were scaled from small sizes, that is so if a tile does the same work at every size; of what
a kernel keeps from tile to tile, such as a table in registers, loads() of counts.py says how often
it is loaded. Where two sizes have no solution for a count, what each tile adds is taken: in
proportion to the tiles, what a CTA does once would be in it for every tile (4.4 times the
instructions of a column sum). Peaks are those of the clock that was measured; a datasheet's are of
a clock of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from kernelexp.facts.chips import ARCHITECTURES, SCHEDULERS, Chip
from kernelexp.facts.counters import EXECUTED
from kernelexp.judge import executed
from kernelexp.judge.limits.case import Case
from kernelexp.model.text import si

Resource: TypeAlias = Literal[
    "tensor cores",
    "L1",
    "L1 data pipe",
    "shared memory",
    "L1 tag stage",
    "LSU",
    "L1 to L2",
    "FMA pipe",
    "ALU pipe",
    "XU pipe",
    "L2",
    "device memory",
    "issue slots",
]
OF_CHIP: tuple[Resource, ...] = ("L2", "device memory")
"""Resources that all SMs share, which fewer of them use as much, at clocks of their own."""
# SASS opcodes of tensor cores, by the type of their operands; UTC begins those of tcgen05.
_TYPES = (
    ("fp8", ("QGMMA", "QMMA", "UTCQMMA", "UTCOMMA")),
    ("int8", ("IGMMA", "IMMA", "UTCIMMA")),
    ("bf16", ("HGMMA", "HMMA", "UTCHMMA")),
)
_SHARED = ("memory_l1_wavefronts_shared", "l1tex__data_pipe_tc_wavefronts_mem_shared")
_TAGS = "memory_l1_tag_requests_global"
_VERBS = ("loads", "stores")
_PADDED = 1.002
"""Times the useful FLOPs from which those of the executed MMAs count."""
# Not ncu's theoretical sectors, which are more than are moved where a cp.async is misaligned.
SECTORS = (
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st",
)
_PIPES: tuple[tuple[Resource, str], ...] = (
    ("LSU", "lsu"),
    ("FMA pipe", "fma"),
    ("ALU pipe", "alu"),
    ("XU pipe", "xu"),
)


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The least time that one resource needs for a launch of the full problem."""

    resource: Resource
    seconds: float
    rough: bool = False
    """From what a tile adds between two sizes that do not solve its count: about so long."""
    emulated: bool = False
    """The work was counted by the emulator; else problem.py states it."""
    reckoned: str
    """Formula and inputs."""
    source: str
    """Of the chip's limit."""


def floors(case: Case) -> Iterator[Floor]:
    """Yields the floors of the resources whose work and limit are known."""
    chip = case.chip
    if chip is None:
        return
    if case.ratios_of:
        case = msgspec.structs.replace(case, counters={})
    unknown = dict.fromkeys(case.unsolved, 0)
    solved = msgspec.structs.replace(case, counters={**case.counters, **unknown})
    if not unknown or case.ratios_of:
        yield from _floors(case, chip)
        return
    exact = {floor.resource: floor.seconds for floor in _floors(solved, chip)}
    counters = {**solved.counters, **case.least}
    for floor in _floors(msgspec.structs.replace(case, counters=counters), chip):
        is_exact = floor.seconds == exact.get(floor.resource)
        yield floor if is_exact else msgspec.structs.replace(floor, rough=True)


def _floors(case: Case, chip: Chip) -> Iterator[Floor]:
    single = (_tensor, _shared, _data_pipe, _tags, _l2, _memory, _issue)
    yield from (floor for make in single if (floor := make(case, chip)))
    yield from _pipes(case, chip)


def tensor_type(case: Case) -> str:
    """The type of the operands that its tensor instructions take; empty where it has none."""
    if case.arm.counted and (executed_types := executed.flops_of_mma(case.arm.counted)):
        return next(iter(executed_types))  # TF32 is a modifier of the opcode
    opcodes = case.arm.build.opcodes if case.arm.build else {}
    return next((name for name, known in _TYPES if any(item in opcodes for item in known)), "")


def _tensor(case: Case, chip: Chip) -> Floor | None:
    kind = tensor_type(case)
    executed_flops = 0.0 if case.ratios_of else mma_flops(case, kind)
    if not (case.flops or executed_flops) or kind not in chip.tensor:
        return None
    clock, spelled = case.clock()
    per_clock = chip.flops_per_clock(kind)
    flops, words = float(case.flops), si(case.flops, "FLOP")
    if is_padded := executed_flops > _PADDED * flops:
        useful = f", {words} of them useful," if flops else ""
        flops = executed_flops
        words = f"{si(flops, 'FLOP')} of the MMAs that are executed{useful}"
    return Floor(
        resource="tensor cores",
        seconds=flops / (per_clock * chip.sms.value * clock),
        emulated=is_padded,
        reckoned=f"{words} ({kind}, dense) / ({per_clock:,} per clock x "
        f"{chip.sms.value:.0f} SMs x {spelled})",
        source=chip.tensor[kind].source,
    )


def mma_flops(case: Case, kind: str) -> float:
    """Returns the FLOPs of the MMAs that a launch executes, on rows and columns beyond the problem
    too; 0 where they are not known."""
    if case.arm.counted is None or executed.MMAS in case.unsolved:
        return 0.0
    flops = executed.flops_of_mma(case.arm.counted).get(kind, 0.0)
    return flops * case.counters.get(executed.MMAS, 0)


def wavefronts(case: Case) -> float | None:
    """Returns the wavefronts of shared memory: loads, stores, MMA operands; None if not counted."""
    return sum(map(case.counter, _SHARED)) if case.counters else None


def shared_seconds(case: Case, count: float) -> float:
    """Returns the seconds that the SMs take for so many wavefronts: each a cycle of one SM."""
    clock, _ = case.clock()
    return count / (case.chip.sms.value * clock) if case.chip and clock else 0.0


def _of_sms(
    case: Case, chip: Chip, resource: Resource, count: float, words: str, source: str
) -> Floor:
    """Returns the floor of what each SM does once per clock."""
    return Floor(
        resource=resource,
        seconds=shared_seconds(case, count),
        emulated=True,
        reckoned=f"{words}{_on_ptx(case)} / ({chip.sms.value:.0f} SMs x {case.clock()[1]})",
        source=source,
    )


def _shared(case: Case, chip: Chip) -> Floor | None:
    count = wavefronts(case)
    if count is None or case.is_merged:
        return None
    source = f"a wavefront per clock and SM: {chip.smem.source}"
    return _of_sms(case, chip, "shared memory", count, f"{count:,.0f} wavefronts", source)


def _data_pipe(case: Case, chip: Chip) -> Floor | None:
    """Wavefronts of shared memory, and one at least for each line of global or local memory."""
    lines, own = case.counter(_TAGS) + local_accesses(case), case.counter(_SHARED[0])
    if not case.counters or case.is_merged or not (lines or own):
        return None
    words = f"({own:,} wavefronts of shared memory + {lines:,} of lines of {_whose(case)} memory)"
    source = (
        "a wavefront per clock and SM, and one at least for each line: on an H200 ncu counts 8.8 "
        "million for 8.4 million lines"
    )
    return _of_sms(case, chip, "L1 data pipe", own + lines, words, source)


def _tags(case: Case, chip: Chip) -> Floor | None:
    count = case.counter(_TAGS) + local_accesses(case) if case.counters else 0
    source = "a line per clock and SM"
    words = f"{count:,} lines of {_whose(case)} memory"
    return _of_sms(case, chip, "L1 tag stage", count, words, source) if count else None


def _idle(case: Case) -> int:
    """Loads and stores of shared and local memory that no lane executes, as ptxas puts before the
    end of a group of copies: whether they take the LSU is not known."""
    return sum(
        max(0, case.counter(f"smsp__inst_executed_op_{space}_{op}") - by_lanes)
        for space in ("shared", "local")
        for op, verb in (("ld", "loads"), ("st", "stores"))
        for by_lanes in (case.counters.get(f"sass__inst_executed_{space}_{verb}", 0),)
    )


def local_accesses(case: Case) -> int:
    """Loads and stores of local memory, spills among them: a warp's 32 words are one line."""
    return sum(case.counters.get(f"sass__inst_executed_local_{verb}", 0) for verb in _VERBS)


def _whose(case: Case) -> str:
    return "global and local" if local_accesses(case) else "global"


def _on_ptx(case: Case) -> str:
    return "" if case.counts_sass else " (PTX)"


def _l2(case: Case, chip: Chip) -> Floor | None:
    if chip.l2 is None or not case.counters:
        return None
    sectors = sum(map(case.counter, SECTORS))
    clock, spelled = case.clock()
    return Floor(
        resource="L2",
        seconds=32 * sectors / (chip.l2.value * clock),
        emulated=True,
        reckoned=f"{sectors:,} sectors{_on_ptx(case)} x 32 B / "
        f"({chip.l2.value:,.0f} {chip.l2.unit} x {spelled})",
        source=chip.l2.source,
    )


def _memory(case: Case, chip: Chip) -> Floor | None:
    if not case.bytes:
        return None
    return Floor(
        resource="device memory",
        seconds=case.bytes / chip.dram.value,
        reckoned=f"{si(case.bytes, 'B')} that must move / {chip.dram.value / 1e12:.3g} TB/s",
        source=chip.dram.source,
    )


def _issue(case: Case, chip: Chip) -> Floor | None:
    clock, spelled = case.clock()
    isa = "sass" if case.counts_sass else "ptx"
    executed_all = case.counters.get(EXECUTED[isa], 0)
    if not executed_all:
        return None
    polled = case.polled(EXECUTED["sass"] if isa == "sass" else "inst_executed")
    count, sms = round(executed_all * (1 - polled)), chip.sms.value
    but = f" without {100 * polled:.1f}% at lines that wait at mbarriers" if polled else ""
    return Floor(
        resource="issue slots",
        seconds=count / (SCHEDULERS * sms * clock),
        emulated=True,
        reckoned=f"{count:,} {isa.upper()} instructions{but} / "
        f"({SCHEDULERS} x {sms:.0f} SMs x {spelled})",
        source="an instruction per clock and scheduler"
        + ("" if case.counts_sass else "; ptxas makes other instructions of PTX"),
    )


def _pipes(case: Case, chip: Chip) -> Iterator[Floor]:
    """Yields the floors of pipes by what the SASS sends to each; PTX does not tell."""
    arch = ARCHITECTURES.get(chip.arch)
    clock, spelled = case.clock()
    for resource, pipe in _PIPES if arch and case.counts_sass else ():
        name = f"sm__inst_executed_pipe_{pipe}"
        count = round(case.counters.get(name, 0) * (1 - case.polled(name)))
        count -= _idle(case) if pipe == "lsu" else 0
        per_clock = arch.per_clock(pipe) if arch else 0.0
        if count:
            yield Floor(
                resource=resource,
                seconds=count / (per_clock * chip.sms.value * clock),
                emulated=True,
                reckoned=f"{count:,} instructions / ({per_clock:g} x {chip.sms.value:.0f} SMs x "
                f"{spelled})",
                source=f"{32 * per_clock:g} lanes per SM: CUDA C++ Programming Guide 13.0, "
                "throughput of native arithmetic instructions"
                if pipe != "lsu"
                else "an instruction per clock and SM",
            )
