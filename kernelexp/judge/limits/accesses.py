"""Rules about accesses to memory: bank conflicts, sectors, spills, atomics."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.facts.metrics import Kind
from kernelexp.judge.limits import bounds, floors
from kernelexp.judge.limits.case import Case, Counts
from kernelexp.judge.limits.floors import Resource
from kernelexp.judge.limits.opportunity import (
    GLOBAL_ATOMICS,
    Opportunity,
    RuleResult,
    Suppressed,
    contention,
    excess_of_wavefronts,
    hidden,
    place,
    points,
    relief,
    shares,
)
from kernelexp.model.arm import EmulatedLine
from kernelexp.model.text import si

CONFLICTS_FROM = 0.05
"""Share of the wavefronts, or of the sectors, from which an excess is listed."""
SCATTERED = 2.0
"""Lines touched, over the least that hold the bytes, from which accesses are called scattered."""
SCATTERED_PER_ACCESS = 4.0
"""Lines per access of a warp: four hold what 32 threads load in 16 bytes each."""
_L1_BYTES = 256 << 10
"""The largest of an SM, that of sm_90 and sm_100."""
_SECTORS_OF_LINE = 4
_LINE_BYTES = 128
_WHOLE = (1, 2, 4, 8, 16, 32)
"""Sectors per request of a warp that stores 1 to 32 bytes per thread in a row."""
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
_OPS = ("ld", "st")
_WAVEFRONTS = "memory_l1_wavefronts_shared"
_TAGS = "memory_l1_tag_requests_global"
_SECTORS = "memory_l2_theoretical_sectors_global"
_PER_REQUEST = ("sectors", "requests")
_ACCESSES = {"loads": ("LDS", "LDSM", "LD"), "stores": ("STS", "STSM", "ST")}
_MATRIX = ("LDSM", "STSM")
_WIDE = {"64", "128"}
_ONE_MORE = 1.25
"""Sectors that 128 contiguous bytes touch where they are not aligned, of those that hold them."""
_GLOBAL_ATOMICS = frozenset({"RED", "REDG", "ATOM", "ATOMG"})
_VERBS = ("loads", "stores")
_OFTEN = 0.2


def bank_conflicts(case: Case) -> Iterator[RuleResult]:
    """Wavefronts beyond the least that the accesses need, of loads and of stores apart."""
    for words, op in (("loads", "ld"), ("stores", "st")):
        name = f"{_CONFLICTS}{op}"
        counted = case.counts(name, _WAVEFRONTS)
        if counted is None:
            continue
        conflicts, total = counted.values
        if counted.kind == "emulated":
            total = floors.wavefronts(case) or 0.0
        if not conflicts or not total or conflicts < CONFLICTS_FROM * total:
            continue
        excess, source = excess_of_wavefronts(case)
        if counted.kind == "profiled" and excess == 0:
            why = contention(case, words, conflicts, source)
            yield Suppressed(rule="SharedMemoryConflicts", why=why)
            continue
        percent, reckoning = _conflict_cost(case, conflicts, counted.kind)
        requests = case.counts(f"sass__inst_executed_shared_{words}")
        if requests and (requests.kind != counted.kind or _is_wide(case, words)):
            requests = None
        elif counted.kind == "profiled" and excess is not None:
            conflicts = min(conflicts, excess)  # without arbitration: no access takes 32.2
        yield Opportunity(
            rule="SharedMemoryConflicts",
            issue=f"shared {words}: {_ways(conflicts, requests)}bank conflicts, "
            f"{100 * conflicts / total:.0f}% of the shared-memory wavefronts"
            f"{_on_ptx(counted)}{_of_own(words, conflicts, requests)}",
            cause=f"{_ways(conflicts, requests)}bank conflicts of shared {words}",
            percent=percent,
            kind=counted.kind,
            reckoning=reckoning,
            figures={**counted.figures, **(requests.figures if requests else {})},
            line=place(case.dearest(name)),
            part=case.part(case.dearest(name), name),
            hidden=hidden(case),
        )


def _is_wide(case: Case, words: str) -> bool:
    """Whether some of these accesses take more than one wavefront without a conflict."""
    opcodes = case.arm.counted.opcodes_with_modifiers if case.arm.counted else {}
    own = [name for name in opcodes if name.split(".")[0] in _ACCESSES[words]]
    return any(_WIDE & {*name.split(".")} or name.startswith(_MATRIX) for name in own)


def _ways(conflicts: float, requests: Counts | None) -> str:
    """`4.0-way `; empty where it is not known of how many requests."""
    return (
        f"{1 + conflicts / requests.values[0]:.1f}-way "
        if requests and any(requests.values)
        else ""
    )


def _of_own(words: str, conflicts: float, requests: Counts | None) -> str:
    """`, 69% of those of stores`, where each request takes one wavefront without conflicts."""
    own = conflicts + (requests.values[0] if requests else 0.0)
    return f", {100 * conflicts / own:.0f}% of those of {words}" if requests and own else ""


def _on_ptx(counted: Counts) -> str:
    return " (PTX)" if counted.of_ptx else ""


def _conflict_cost(case: Case, conflicts: float, kind: Kind) -> tuple[float | None, str]:
    if kind == "emulated" and case.is_merged:
        return None, (
            "no estimate, because SASS accesses shared memory in other widths than the PTX that "
            "was counted: kernelexp profile counts SASS"
        )
    excess, _ = excess_of_wavefronts(case)
    wasted = conflicts if excess is None else min(conflicts, excess)
    pipe = case.figure("l1tex__data_pipe_lsu_wavefronts_mem_shared")
    near = {use.resource: use for use in bounds.uses(case)}["shared memory"]
    if kind == "profiled" and pipe and near.kind == "profiled" and near.percent:
        saved = near.percent * wasted / pipe
    else:
        saved = points(case, "shared memory", floors.shared_seconds(case, wasted))
    return relief(case, {"shared memory": saved, "L1 data pipe": saved})


def uncoalesced(case: Case) -> Iterator[RuleResult]:
    """Sectors and lines of global memory beyond the least that hold the bytes."""
    counted = case.counts(_SECTORS, f"{_SECTORS}_ideal", _TAGS)
    counted = counted or case.counts(_SECTORS, f"{_SECTORS}_ideal")
    if counted is None:
        return
    sectors, ideal, *rest = counted.values
    lines = rest[0] if rest else 0.0
    excess = sectors - ideal
    few = ideal / _SECTORS_OF_LINE
    scattered = lines > SCATTERED * few > 0 and _is_executed(case, lines)
    if not sectors or (excess < CONFLICTS_FROM * sectors and not scattered):
        return
    freed: dict[Resource, float] = {}
    known, _ = shares(case)
    if "L2" in known:
        freed["L2"] = known["L2"] * excess / sectors
    if "L1 tag stage" in known and lines > few:
        freed["L1 tag stage"] = known["L1 tag stage"] * (lines - few) / lines
        freed["L1 data pipe"] = points(
            case, "L1 data pipe", floors.shared_seconds(case, lines - few)
        )
    percent, reckoning = relief(case, freed or {"L2": 0.0, "L1 tag stage": 0.0})
    dear = (_SECTORS, f"{_SECTORS}_ideal", 1.0)
    is_of_lines = bool(freed) and max(freed, key=lambda item: freed[item]) != "L2"
    if is_of_lines or excess < CONFLICTS_FROM * sectors or not case.dearest(*dear):
        dear = (_TAGS, f"{_SECTORS}_ideal", _SECTORS_OF_LINE)
    line = case.dearest(*dear)
    words = "loads" if _loads(case, line) else "stores" if line else "accesses"
    filled = f"{100 * excess / sectors:.0f}% of the sectors in excess"
    if lines and few:
        filled = f"lines filled to {100 * _filled(case, line, few / lines):.0f}%"
    issue = f"{100 * excess / sectors:.0f}% of the sectors of global accesses are beyond what "
    issue += f"their bytes need{_on_ptx(counted)}"
    if lines and few:
        issue += f"; the lines that they touch are filled to {100 * few / lines:.0f}%"
    yield Opportunity(
        rule="UncoalescedGlobalAccess",
        issue=issue,
        cause=f"{'unaligned' if _is_unaligned(sectors, ideal, lines) else 'uncoalesced'} {words} "
        f"({filled})",
        percent=percent,
        kind=counted.kind,
        reckoning=reckoning,
        figures=counted.figures,
        line=place(line),
        part=case.part(line, *dear),
        hidden="loads that hit in L1 ask L2 for nothing"
        if _loads(case, line) and "L1 tag stage" not in freed
        else hidden(case),
    )


def _filled(case: Case, line: EmulatedLine | None, every: float) -> float:
    """Returns how much of the cache's lines the accesses at a source line use; that of all
    accesses, where it is not known."""
    counted = line.counters if line else {}
    lines = counted.get(case.named(_TAGS), 0)
    ideal = counted.get(case.named(f"{_SECTORS}_ideal"), 0)
    return ideal / _SECTORS_OF_LINE / lines if lines and ideal else every


def _is_unaligned(sectors: float, ideal: float, lines: float) -> bool:
    """Whether neighbours begin within a line: each access then touches one more at most."""
    few = ideal / _SECTORS_OF_LINE
    return sectors < _ONE_MORE * ideal and bool(few) and few < lines <= 2 * few


def _is_executed(case: Case, lines: float) -> bool:
    """Whether tag lookups are more than a few per instruction: of a handful nothing depends."""
    counted = case.counts(*(f"sass__inst_executed_global_{item}" for item in ("loads", "stores")))
    return bool(counted) and lines > SCATTERED_PER_ACCESS * sum(counted.values if counted else ())


def _loads(case: Case, line: EmulatedLine | None) -> bool:
    name = case.named("l1tex__t_sectors_pipe_lsu_mem_global_op_ld")
    return bool(line and line.counters.get(name))


def mixed_stores(case: Case) -> Iterator[RuleResult]:
    """Suppresses what only looks uncoalesced by sectors per request: stores of several widths."""
    counted = case.counts(*(f"l1tex__t_{item}_pipe_lsu_mem_global_op_st" for item in _PER_REQUEST))
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


def spills(case: Case) -> Iterator[RuleResult]:
    """Registers that ptxas keeps in local memory."""
    build = case.arm.build
    if build is None or not build.resources.spill_bytes:
        return
    used, held = build.resources, build.occupancy
    stores, loads = used.spill_store_bytes or 0, used.spill_load_bytes or 0
    executed = floors.local_accesses(case)
    percent, reckoning = None, "no estimate: kernelexp profile counts how often they are executed"
    if executed:
        saved = points(case, "LSU", floors.shared_seconds(case, executed))
        percent, reckoning = relief(case, {"LSU": saved, "L1 data pipe": saved})
        kept = used.threads * held.ctas_per_sm * stores
        if kept > _L1_BYTES and case.chip:
            percent, reckoning = _beyond_l1(case, executed, kept)
        reckoning = f"{executed:,} accesses of local memory are executed; {reckoning}"
    yield Opportunity(
        rule="Spills",
        issue=f"{stores} B of spill stores and {loads} B of spill "
        f"loads in the code, at {used.registers} registers per thread",
        cause=f"spills ({executed:,} accesses of local memory)" if executed else "",
        percent=percent,
        at_most=bool(executed),
        kind="emulated" if executed else "built",
        reckoning=reckoning,
        figures={
            "spill_store_bytes": float(stores),
            "spill_load_bytes": float(loads),
        },
        line=place(case.dearest("sass__inst_executed_local_loads")),
    )


def _beyond_l1(case: Case, executed: int, kept: int) -> tuple[float, str]:
    """Spills that an SM's L1 does not hold: at most what they take of device memory."""
    moved, rate = executed * _LINE_BYTES, case.chip.dram.value if case.chip else 1.0
    other = case.time_s or max(floor.seconds for floor in floors.floors(case))
    extra = moved / rate
    percent = 100 * extra / (other if case.time_s else other + extra)
    times = f", {moved / case.bytes:.1f} times the bytes that must move" if case.bytes else ""
    return min(percent, 100 - 100 * case.bytes / rate / other if case.time_s else percent), (
        f"the {kept / 1e6:.1f} MB that the threads of an SM spill are more than its L1 holds: "
        f"{si(moved, 'B')}{times}, {1e3 * extra:.3g} ms of device memory where L2 holds none"
    )


def shared_atomics(case: Case) -> Iterator[RuleResult]:
    """Wavefronts that atomics of shared memory take beyond the least, where lanes meet in banks."""
    opcodes = case.arm.counted.opcodes if case.arm.counted else {}
    counted = case.counts(_WAVEFRONTS, f"{_WAVEFRONTS}_ideal", *(_CONFLICTS + op for op in _OPS))
    if "ATOMS" not in opcodes or counted is None or counted.kind != "emulated":
        return
    total, ideal, *others = counted.values
    excess = total - ideal - sum(others)
    if excess < CONFLICTS_FROM * total:
        return
    saved = points(case, "shared memory", floors.shared_seconds(case, excess))
    percent, reckoning = relief(case, {"shared memory": saved, "L1 data pipe": saved})
    yield Opportunity(
        rule="SharedAtomics",
        issue=f"shared atomics: lanes that meet in a bank take {100 * excess / total:.0f}% of the "
        "shared-memory wavefronts",
        cause="shared atomics whose lanes meet in a bank",
        percent=percent,
        kind="emulated",
        reckoning=reckoning,
        figures=counted.figures,
        hidden=hidden(case),
    )


def global_atomics(case: Case) -> Iterator[RuleResult]:
    """Atomics of global memory that are no rarity beside its loads and stores."""
    names = ("sass__inst_executed_atomic", *map("sass__inst_executed_global_{}".format, _VERBS))
    counted, opcodes = case.counts(*names), case.arm.build.opcodes if case.arm.build else {}
    if counted is None or counted.kind != "emulated" or not _GLOBAL_ATOMICS & opcodes.keys():
        return
    count, loads, stores = counted.values
    if not count or count < _OFTEN * (loads + stores) or "ATOMS" in opcodes:
        return
    line = case.dearest(names[0])
    yield Opportunity(
        rule=GLOBAL_ATOMICS,
        issue=f"global atomics: {count / (count + loads + stores):.0%} of the instructions that "
        "access global memory",
        kind="emulated",
        reckoning="no estimate: those to one address are executed one after another in L2, and "
        "how many meet there was not counted; a sum in the warp and the CTA first leaves one for "
        "each CTA",
        figures=counted.figures,
        line=place(line),
        part=case.part(line, names[0]),
    )
