"""What could be gained in one variant, a function per rule: the issue, its figures, an estimate.

Where ncu's own rules looked at a launch, theirs are taken (advice.py); these are the same rules
over evidence that needs no GPU, and those that ncu does not have. An estimate is the share of the
time that would be saved if nothing else took its place: an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

from kernelexp.facts.counters import EXECUTED, PTX
from kernelexp.facts.metrics import Kind
from kernelexp.judge import advice, bounds
from kernelexp.judge.bounds import Resource
from kernelexp.judge.case import Case, Counts
from kernelexp.judge.opportunity import (
    Found,
    Opportunity,
    Suppressed,
    contention,
    excess_of_wavefronts,
    hidden,
    place,
)
from kernelexp.model.arm import EmulatedLine

CONFLICTS_FROM = 0.05
"""Share of the wavefronts, or of the sectors, from which an excess is listed."""
TAIL_FROM = 0.01
"""Share of the time from which an unfinished last wave is listed."""
LANES_FROM = 24.0
"""Active threads per warp below which divergence is listed: ncu's own threshold."""
_WARP = 32
_WHOLE = (1, 2, 4, 8, 16, 32)
"""Sectors per request of a warp that stores 1 to 32 bytes per thread in a row."""
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
_WAVEFRONTS = "memory_l1_wavefronts_shared"
_SECTORS = "memory_l2_theoretical_sectors_global"
_PER_REQUEST = ("sectors", "requests")
_GEMM_FLOPS_PER_BYTE = 16.0
"""FLOPs per byte from which work without tensor instructions is listed."""

Rule: TypeAlias = Callable[[Case], Iterator[Found]]


def relief(case: Case, resource: Resource, seconds: float) -> tuple[float | None, str]:
    """The share of the time that is saved at most if `resource` needs so much less, and why.

    With a measured time, what the resource no longer takes, down to what the next resource needs.
    Without, how much lower the longest of the floors becomes.
    """
    floors = {floor.resource: floor.seconds for floor in bounds.floors(case)}
    if not floors or resource not in floors:
        return None, "the chip's limits are not known"
    after = {**floors, resource: floors[resource] - seconds}
    longest = max(after, key=lambda each: after[each])
    rest = f"{longest} needs {1e3 * after[longest]:.4g} ms"
    saved = f"{1e3 * seconds:.4g} ms of {resource}"
    if case.time_s:
        share = max(min(seconds, case.time_s - after[longest]) / case.time_s, 0.0)
        return 100 * share, f"{saved} in {1e3 * case.time_s:.4g} ms {case.time()[1]}; then {rest}"
    before = max(floors.values())
    share = 1 - after[longest] / before
    return 100 * share, (
        f"{saved}; the longest floor falls from {1e3 * before:.4g} ms, as {rest}; not measured"
    )


def bank_conflicts(case: Case) -> Iterator[Found]:
    """Wavefronts beyond the least that the accesses need, of loads and of stores apart."""
    for words, op in (("loads", "ld"), ("stores", "st")):
        name = f"{_CONFLICTS}{op}"
        counted = case.counts(name, _WAVEFRONTS)
        if counted is None:
            continue
        conflicts, total = counted.values
        if counted.kind == "emulated":
            total = bounds.wavefronts(case) or 0.0
        if not conflicts or not total or conflicts < CONFLICTS_FROM * total:
            continue
        excess, source = excess_of_wavefronts(case)
        if counted.kind == "profiled" and excess == 0:
            why = contention(case, words, conflicts, source)
            yield Suppressed(rule="SharedMemoryConflicts", why=why)
            continue
        percent, reckoning = _conflict_cost(case, conflicts, counted.kind)
        requests = case.counts(f"sass__inst_executed_shared_{words}")
        if requests and requests.kind != counted.kind:
            requests = None
        yield Opportunity(
            rule="SharedMemoryConflicts",
            issue=f"shared {words}: {_ways(conflicts, requests)}bank conflicts, "
            f"{100 * conflicts / total:.0f}% of the shared-memory wavefronts"
            f"{_on_ptx(counted)}",
            percent=percent,
            kind=counted.kind,
            reckoning=reckoning,
            figures={**counted.figures, **(requests.figures if requests else {})},
            line=place(case.dearest(name)),
            hidden=hidden(case),
        )


def _ways(conflicts: float, requests: Counts | None) -> str:
    """`4.0-way `; empty where it is not known of how many requests."""
    return (
        f"{1 + conflicts / requests.values[0]:.1f}-way "
        if requests and any(requests.values)
        else ""
    )


def _on_ptx(counted: Counts) -> str:
    return " (PTX)" if counted.of_ptx else ""


def _conflict_cost(case: Case, conflicts: float, kind: Kind) -> tuple[float | None, str]:
    use = case.figure("l1tex__throughput.avg.pct_of_peak_sustained_active")
    pipe = case.figure("l1tex__data_pipe_lsu_wavefronts_mem_shared")
    if kind == "profiled" and use and pipe:
        return use * conflicts / pipe, (
            f"{100 * conflicts / pipe:.1f}% of the wavefronts x {use:.1f}% L1 throughput, as ncu"
        )
    if kind == "emulated" and case.is_merged:
        return None, (
            "no estimate, because SASS accesses shared memory in other widths than the PTX that "
            "was counted: kernelexp profile counts SASS"
        )
    return relief(case, "shared memory", bounds.shared_seconds(case, conflicts))


def uncoalesced(case: Case) -> Iterator[Found]:
    """Sectors of global memory beyond the least that hold the bytes."""
    name = _SECTORS
    counted = case.counts(name, f"{name}_ideal")
    if counted is None:
        return
    sectors, ideal = counted.values
    if not sectors or sectors - ideal < CONFLICTS_FROM * sectors:
        return
    line = case.dearest(name, f"{name}_ideal")
    use = next((each for each in bounds.uses(case) if each.resource == "L2"), None)
    percent, reckoning = None, "no use of L2 is known: kernelexp profile counts it"
    if use and use.percent is not None:
        share = (sectors - ideal) / sectors
        percent = share * use.percent
        reckoning = f"{100 * share:.1f}% of the sectors x {use.percent:.1f}% of L2's peak"
    yield Opportunity(
        rule="UncoalescedGlobalAccess",
        issue=f"{100 * (sectors - ideal) / sectors:.0f}% of the sectors of global accesses are "
        f"beyond what their bytes need{_on_ptx(counted)}",
        percent=percent,
        kind=counted.kind,
        reckoning=reckoning,
        figures=counted.figures,
        line=place(line),
        hidden="what L1 holds costs no sector of L2" if _loads(case, line) else hidden(case),
    )


def _loads(case: Case, line: EmulatedLine | None) -> bool:
    name = case.named("l1tex__t_sectors_pipe_lsu_mem_global_op_ld")
    return bool(line and line.counters.get(name))


def mixed_stores(case: Case) -> Iterator[Found]:
    """What looks uncoalesced by sectors per request, and is not: stores of several widths."""
    counted = case.counts(*(f"l1tex__t_{each}_pipe_lsu_mem_global_op_st" for each in _PER_REQUEST))
    sectors, requests = counted.values if counted else (0.0, 0.0)
    executed = case.named("sass__inst_executed_global_stores")
    stores = [line for line in case.lines if line.counters.get(executed)]
    name = case.named(_SECTORS)
    excess = sum(
        store.counters.get(name, 0) - store.counters.get(f"{name}_ideal", 0) for store in stores
    )
    if sectors and requests and stores and not excess and sectors / requests not in _WHOLE:
        yield Suppressed(
            rule="sectors per store",
            why=f"{sectors / requests:.2f} sectors per request are an average over stores of "
            "several widths; no store asks for a sector that it does not fill",
        )


def occupancy(case: Case) -> Iterator[Found]:
    """Fewer warps per SM than it holds, and what limits them."""
    build = case.arm.build
    if build is None or build.occupancy.warps_per_sm >= build.occupancy.warps_limit:
        return
    held, used = build.occupancy, build.resources
    share = held.warps_per_sm / held.warps_limit
    near = bounds.nearest(bounds.uses(case))
    percent, reckoning = None, "it needs a measured time: no use of a resource is known"
    if near and near.percent is not None:
        percent = max(min(100 * (1 - share), 100 - near.percent), 0.0)
        reckoning = (
            f"the smaller of 100% - {100 * share:.1f}% of the warps and 100% - {near.percent:.1f}% "
            f"use of {near.resource}, as ncu"
        )
    smem = used.static_smem_bytes + used.dynamic_smem_bytes
    yield Opportunity(
        rule="TheoreticalOccupancy",
        issue=f"{held.warps_per_sm} of {held.warps_limit} warps per SM, limited by "
        f"{' and '.join(held.limited_by)}: "
        f"{used.registers} registers per thread, {smem:,} B of shared memory, "
        f"{used.threads} threads",
        percent=percent,
        kind="built",
        reckoning=reckoning,
        figures={"warps_per_sm": held.warps_per_sm, "ctas_per_sm": held.ctas_per_sm},
        hidden="asynchronous copies and MMAs need few warps to be in flight"
        if case.is_specialised
        else "",
    )


def grid(case: Case) -> Iterator[Found]:
    """SMs without a CTA, and SMs that are idle in the last wave."""
    if case.chip is None or case.arm.build is None or not case.ctas:
        return
    sms, per_sm = case.chip.sms.value, case.arm.build.occupancy.ctas_per_sm
    if not per_sm:
        return
    figures = {"launch__grid_size": float(case.ctas), "ctas_per_sm": float(per_sm), "SMs": sms}
    if case.ctas < sms:
        idle = 1 - case.ctas / sms
        yield Opportunity(
            rule="SmallGrid",
            issue=f"{case.ctas:,} CTAs leave {sms - case.ctas:.0f} of {sms:.0f} SMs without work",
            percent=100 * idle,
            kind="built",
            reckoning=f"1 - {case.ctas:,} CTAs / {sms:.0f} SMs",
            figures=figures,
        )
        return
    waves = case.ctas / (sms * per_sm)
    idle = (math.ceil(waves) - waves) / math.ceil(waves)
    if waves > 1 and idle >= TAIL_FROM:
        yield Opportunity(
            rule="TailWave",
            issue=f"{waves:.2f} waves of {sms * per_sm:.0f} CTAs: the last one is not full",
            percent=100 * idle,
            kind="built",
            reckoning=f"({math.ceil(waves)} - {waves:.2f}) / {math.ceil(waves)} waves, if all CTAs "
            "take the same time",
            figures=figures,
        )


def divergence(case: Case) -> Iterator[Found]:
    """Instructions that few threads of a warp execute."""
    lanes, kind = case.figure("smsp__thread_inst_executed_per_inst_executed.ratio"), "profiled"
    taken = case.arm.counted or case.arm.emulated
    name = EXECUTED[taken.isa] if taken else ""
    if lanes is None and taken and taken.counters.get(name):
        threads = taken.counters[name.replace("inst", "thread_inst")]
        lanes, kind = threads / taken.counters[name], "emulated"
    if lanes is None or lanes >= LANES_FROM:
        return
    use = next(each for each in bounds.uses(case) if each.resource == "issue slots")
    percent, reckoning = None, "no use of the issue slots is known: it needs a measured time"
    if use.percent is not None:
        percent = (1 - lanes / _WARP) * use.percent
        reckoning = f"(1 - {lanes:.1f} / {_WARP}) x {use.percent:.1f}% of the issue slots"
    yield Opportunity(
        rule="ThreadDivergence",
        issue=f"{lanes:.1f} of {_WARP} threads per warp are active on average",
        percent=percent,
        kind="profiled" if kind == "profiled" else "emulated",
        reckoning=reckoning,
        figures={"active threads per warp": lanes},
        hidden="single threads issue copies and MMAs by design" if case.is_specialised else "",
    )


def barriers(case: Case) -> Iterator[Found]:
    """CTA barriers with no second CTA on the SM to fill the wait."""
    name = f"{'sass' if case.counts_sass else 'ptx'}__inst_executed_barrier"
    count, build = case.counters.get(name, 0), case.arm.build
    if not count or build is None or build.occupancy.ctas_per_sm >= 2 or not case.tiles:
        return
    warps = -(-build.resources.threads // _WARP)
    per_tile = count / case.tiles / warps
    line = case.dearest(name.removeprefix(PTX))
    yield Opportunity(
        rule="LaunchConfiguration",
        issue=f"{per_tile:.2g} CTA barriers per tile and warp with one CTA per SM: while its warps "
        "wait, the SM has no other",
        kind="emulated",
        reckoning="no estimate: kernelexp profile counts the stalls at barriers",
        figures={name: float(count), "tiles": float(case.tiles)},
        line=place(line),
        hidden="a named barrier may be of a part of the warps" if case.is_specialised else "",
    )


def no_tensor_cores(case: Case) -> Iterator[Found]:
    """The FLOPs of a matrix product without one tensor instruction."""
    if case.arm.build is None or bounds.tensor_type(case) or not case.bytes:
        return
    intensity = case.flops / case.bytes
    if intensity >= _GEMM_FLOPS_PER_BYTE:
        yield Opportunity(
            rule="NoTensorInstructions",
            issue=f"{intensity:.0f} FLOPs per byte that must move, and no tensor instruction",
            kind="built",
            reckoning="no estimate: it depends on the type of operands that the problem allows",
            figures={"flops": float(case.flops), "bytes": float(case.bytes)},
        )


def spills(case: Case) -> Iterator[Found]:
    """Registers that ptxas keeps in local memory."""
    used = case.arm.build.resources if case.arm.build else None
    if used is None or not used.spill_bytes:
        return
    stores, loads = used.spill_store_bytes or 0, used.spill_load_bytes or 0
    yield Opportunity(
        rule="Spills",
        issue=f"{stores} B of spill stores and {loads} B of spill "
        f"loads in the code, at {used.registers} registers per thread",
        kind="built",
        reckoning="no estimate: kernelexp profile counts how often they are executed",
        figures={
            "spill_store_bytes": float(stores),
            "spill_load_bytes": float(loads),
        },
    )


# Rules that ncu has too, and its names of them; where ncu looked, its word is taken.
_ALSO_NCU: tuple[tuple[Rule, str], ...] = (
    (bank_conflicts, "SharedMemoryConflicts"),
    (uncoalesced, "UncoalescedGlobalAccess"),
    (mixed_stores, "MemoryCacheAccessPattern"),
    (occupancy, "TheoreticalOccupancy"),
    (divergence, "ThreadDivergence"),
    (barriers, "LaunchConfiguration"),
)
_OWN: tuple[Rule, ...] = (grid, no_tensor_cores, spills)


def find(case: Case) -> tuple[list[Opportunity], list[Suppressed]]:
    """Largest estimate first, those without one after them; and what was suppressed."""
    looked = bool(case.arm.profiled and case.arm.profiled.advice)
    rules = [*(() if looked else (rule for rule, _ in _ALSO_NCU)), *_OWN]
    found = [*advice.take(case), *(each for rule in rules for each in rule(case))]
    opportunities = [each for each in found if isinstance(each, Opportunity)]
    opportunities.sort(key=lambda each: 1.0 if each.percent is None else -each.percent)
    return opportunities, [each for each in found if isinstance(each, Suppressed)]
