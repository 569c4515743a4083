"""How near a variant comes to each limit of its chip: from its profile, else reckoned.

What is reckoned is the least time that a resource needs for a launch (its floor), as a share of
the time. It is a lower bound of the use: whatever else the kernel moves comes on top.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from kernelexp.facts.counters import EXECUTED
from kernelexp.facts.metrics import Kind
from kernelexp.judge.case import Case

Resource: TypeAlias = Literal["tensor cores", "shared memory", "L2", "device memory", "issue slots"]
RESOURCES: tuple[Resource, ...] = (
    "tensor cores",
    "shared memory",
    "L2",
    "device memory",
    "issue slots",
)
NEAR = 60.0
"""Percent of a limit above which ncu speaks of a bottleneck; below it everywhere: latency."""

_PERCENT = "avg.pct_of_peak_sustained_elapsed"
_PROFILED: dict[Resource, tuple[str, ...]] = {
    "tensor cores": (f"sm__pipe_tensor_cycles_active.{_PERCENT}",),
    "shared memory": (f"l1tex__data_pipe_lsu_wavefronts.{_PERCENT}",),
    "L2": (f"lts__throughput.{_PERCENT}", f"lts__t_sectors.{_PERCENT}"),
    "device memory": (f"gpu__dram_throughput.{_PERCENT}",),
    "issue slots": (
        f"sm__inst_issued.{_PERCENT}",
        "smsp__issue_active.avg.pct_of_peak_sustained_active",
    ),
}
# SASS opcodes of tensor cores, by the type of their operands; UTC begins those of tcgen05.
_TYPES = (
    ("fp8", ("QGMMA", "QMMA", "UTCQMMA", "UTCOMMA")),
    ("int8", ("IGMMA", "IMMA", "UTCIMMA")),
    ("bf16", ("HGMMA", "HMMA", "UTCHMMA")),
)
_SCHEDULERS = 4


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The least time that one resource needs for a launch of the full problem."""

    resource: Resource
    seconds: float
    emulated: bool = False
    """The work was counted by the emulator; else problem.py states it."""
    reckoned: str
    """Formula and inputs."""
    source: str
    """Of the chip's limit."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one limit is used."""

    resource: Resource
    percent: float | None = None
    floor_ms: float | None = None
    """The least time that it needs; None where the limit or the work is not known."""
    time_ms: float | None = None
    """Of which it is the share; None where ncu reports the share itself."""
    kind: Kind | None = None
    """`emulated` where the work was counted so, else that of the time."""
    reckoned: str = ""
    """ncu's metric, or the formula with its inputs; where there is no figure, why."""
    source: str = ""
    """Of the limit."""


def uses(case: Case) -> tuple[Use, ...]:
    """One for each resource, in their order: as ncu reports it, else reckoned."""
    return tuple(_profiled(case, use.resource) or use for use in _reckoned(case))


def _reckoned(case: Case) -> tuple[Use, ...]:
    found = {floor.resource: floor for floor in floors(case)}
    return tuple(_use(case, resource, found.get(resource)) for resource in RESOURCES)


def uses_of_both(one: Case, other: Case) -> tuple[tuple[Use, ...], tuple[Use, ...]]:
    """Of two cases, of the same kind on both sides: profiled only where both have the share."""
    pairs = zip(uses(one), uses(other), _reckoned(one), _reckoned(other), strict=True)
    chosen = [
        (first, second) if first.kind == second.kind else (plain, plain_too)
        for first, second, plain, plain_too in pairs
    ]
    return tuple(pair[0] for pair in chosen), tuple(pair[1] for pair in chosen)


def nearest(found: tuple[Use, ...]) -> Use | None:
    """The use that is nearest to its limit; None where none is known."""
    known = [use for use in found if use.percent is not None]
    return max(known, key=lambda each: each.percent or 0.0, default=None)


def _profiled(case: Case, resource: Resource) -> Use | None:
    """The share as ncu reports it; None where it did not."""
    for name in _PROFILED[resource]:
        value = case.figure(name)
        if value is not None:
            return Use(
                resource=resource,
                percent=value,
                kind="profiled",
                reckoned=name,
                source="ncu's peak of this chip",
            )
    return None


def _use(case: Case, resource: Resource, floor: Floor | None) -> Use:
    if floor is None:
        return Use(resource=resource, reckoned=_unknown(case, resource))
    time, kind = case.time()
    return Use(
        resource=resource,
        percent=100 * floor.seconds / time if time else None,
        floor_ms=1e3 * floor.seconds,
        kind="emulated" if floor.emulated else kind if time else None,
        time_ms=1e3 * time if time else None,
        reckoned=floor.reckoned,
        source=floor.source,
    )


def _unknown(case: Case, resource: Resource) -> str:
    if case.chip is None:
        return "the chip's limits are not known"
    if resource == "tensor cores":
        if not tensor_type(case):
            return "no tensor instructions"
        return "the problem does not state its FLOPs" if not case.flops else "no such peak known"
    if resource == "shared memory" and case.counters and case.is_merged:
        return "counted on PTX, and SASS accesses shared memory in other widths"
    if resource == "L2":
        return "no source gives its peak"
    if resource == "device memory":
        return "the problem does not state its bytes"
    return "not counted"


def floors(case: Case) -> Iterator[Floor]:
    """Of the resources of which the work and the limit are known."""
    if case.chip is None:
        return
    for floor in (_tensor(case), _shared(case), _l2(case), _memory(case), _issue(case)):
        if floor:
            yield floor


def tensor_type(case: Case) -> str:
    """The type of the operands that its tensor instructions take; empty where it has none."""
    opcodes = case.arm.build.opcodes if case.arm.build else {}
    return next((name for name, known in _TYPES if any(each in opcodes for each in known)), "")


def _tensor(case: Case) -> Floor | None:
    kind = tensor_type(case)
    peak = case.chip.tensor.get(kind) if case.chip else None
    if not case.flops or peak is None:
        return None
    return Floor(
        resource="tensor cores",
        seconds=case.flops / peak.value,
        reckoned=f"{case.flops:.4g} FLOPs / {peak.value / 1e12:,.4g} TFLOPS ({kind}, dense)",
        source=peak.source,
    )


def wavefronts(case: Case) -> float | None:
    """Of shared memory: loads, stores, operands of MMAs; None where not counted."""
    if not case.counters:
        return None
    names = ("memory_l1_wavefronts_shared", "l1tex__data_pipe_tc_wavefronts_mem_shared")
    return sum(map(case.counter, names))


def shared_seconds(case: Case, count: float) -> float:
    """How long the SMs take for so many wavefronts: each a cycle of one SM."""
    clock, _ = case.clock()
    return count / (case.chip.sms.value * clock) if case.chip and clock else 0.0


def _shared(case: Case) -> Floor | None:
    count = wavefronts(case)
    if count is None or case.chip is None or case.is_merged:
        return None
    return Floor(
        resource="shared memory",
        seconds=shared_seconds(case, count),
        emulated=True,
        reckoned=f"{count:,.0f} wavefronts{_on_ptx(case)} / ({case.chip.sms.value:.0f} SMs x "
        f"{case.clock()[1]})",
        source=f"a wavefront per clock and SM: {case.chip.smem.source}",
    )


# Not ncu's theoretical sectors, which are more than are moved where a cp.async is misaligned.
_SECTORS = (
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st",
)


def _on_ptx(case: Case) -> str:
    return "" if case.counts_sass else " (PTX)"


def _l2(case: Case) -> Floor | None:
    if case.chip is None or case.chip.l2 is None or not case.counters:
        return None
    sectors = sum(map(case.counter, _SECTORS))
    clock, spelled = case.clock()
    limit = case.chip.l2
    return Floor(
        resource="L2",
        seconds=32 * sectors / (limit.value * clock),
        emulated=True,
        reckoned=f"{sectors:,} sectors{_on_ptx(case)} x 32 B / "
        f"({limit.value:,.0f} {limit.unit} x {spelled})",
        source=limit.source,
    )


def _memory(case: Case) -> Floor | None:
    if not case.bytes or case.chip is None:
        return None
    limit = case.chip.dram
    return Floor(
        resource="device memory",
        seconds=case.bytes / limit.value,
        reckoned=f"{case.bytes:.4g} B that must move / {limit.value / 1e12:.3g} TB/s",
        source=limit.source,
    )


def _issue(case: Case) -> Floor | None:
    clock, spelled = case.clock()
    isa = "sass" if case.counts_sass else "ptx"
    count = case.counters.get(EXECUTED[isa], 0)
    if not count or case.chip is None:
        return None
    sms = case.chip.sms.value
    return Floor(
        resource="issue slots",
        seconds=count / (_SCHEDULERS * sms * clock),
        emulated=True,
        reckoned=f"{count:,} {isa.upper()} instructions / "
        f"({_SCHEDULERS} x {sms:.0f} SMs x {spelled})",
        source="an instruction per clock and scheduler"
        + ("" if case.counts_sass else "; ptxas makes other instructions of PTX"),
    )
