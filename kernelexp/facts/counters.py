"""The table of ncu's counters: label, group, unit and better direction by the pattern of a name.

ncu names a metric `unit__counter.rollup.submetric`: `lts__t_sectors.sum.per_second`. Metrics with
the same label are views of one counter; preference() says which of them the field reads.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from warpsim.tables.opcodes import PIPE as PIPE

Better: TypeAlias = Literal["less", "more", ""]

PTX = "ptx__"
"""Begins the name of what an emulation counts on PTX; the rest is the counter of ncu's that counts
the same on the instructions that ptxas makes of it, if there is one.

ptxas merges, drops and adds instructions, so the two may differ, and are never the same figure.
"""

EXECUTED = {"ptx": f"{PTX}inst_executed", "sass": "smsp__inst_executed"}
"""What an emulation calls the executed warp instructions, by what it executed."""

SECTORS = (
    "memory_l2_theoretical_sectors_global",
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st",
)
"""Sectors of global memory: of loads, stores and atomics, then those that TMA moves."""

GROUPS = (
    "time",
    "build",
    "stalls",
    "memory throughput",
    "access efficiency",
    "instructions",
    "cache",
)
"""In the order in which a performance audit goes through them."""

OTHER = "other"


# What an audit states of every kernel, changed or not.
_HEADLINES = frozenset(
    (
        "time",
        "published time",
        "duration under ncu",
        "registers per thread",
        "published registers per thread",
        "spill stores",
        "spill loads",
        "spill instructions",
        "L1 throughput",
        "L2 throughput",
        "DRAM throughput",
        "excessive L2 sectors",
    )
)


class Counter(msgspec.Struct, frozen=True):
    """The description of a counter, found by its name."""

    label: str
    group: str = OTHER
    unit: str = ""
    """Where ncu's own unit is wrong or missing; else empty."""
    better: Better = ""
    rank: int = 0
    """The row of the table: of two metrics with the same label the earlier row is read."""


def is_headline(label: str) -> bool:
    """Whether a comparison shows a figure however little it changed."""
    return label in _HEADLINES


_PCT = r"(?:avg|sum)\.pct_of_peak_sustained_(?:elapsed|active)"
_OF_PEAK = r"avg\.pct_of_peak_sustained_(?:elapsed|active)"

# Counter, view (empty: any), label, unit where ncu's is wrong or missing, better.
# `{x}` is the named group x of the pattern.
_TABLE: dict[str, tuple[tuple[str, str, str, str, Better], ...]] = {
    "time": (
        ("gpu__time_duration", "", "duration under ncu", "", "less"),
        ("gpc__cycles_elapsed", "max|avg|", "elapsed cycles", "", "less"),
        ("smsp__cycles_elapsed|sm__cycles_elapsed", "avg|max|", "elapsed cycles", "", "less"),
        ("smsp__cycles_active|sm__cycles_active", "avg|max|", "active cycles", "", "less"),
        ("smsp__cycles_elapsed|sm__cycles_elapsed|gpc__cycles_elapsed", r"avg\.per_second",
         "SM clock", "", ""),
    ),
    "build": (
        ("launch__registers_per_thread", "", "registers per thread", "", "less"),
        ("launch__shared_mem_per_block_(?P<x>dynamic|static)", "", "{x} shared memory", "", "less"),
        ("launch__shared_mem_per_block", "", "shared memory per CTA", "", "less"),
        ("launch__shared_mem_config_size", "", "shared memory configured per SM", "", ""),
        ("launch__block_size", "", "threads per CTA", "", ""),
        ("launch__grid_size", "", "CTAs", "", ""),
        ("launch__cluster_size", "", "CTAs per cluster", "", ""),
        ("launch__waves_per_multiprocessor", "", "waves per SM", "", ""),
        ("launch__occupancy_limit_(?P<x>\\w+)", "", "CTAs per SM, limit by {x}", "", ""),
        ("sm__maximum_warps_per_active_cycle_pct", "", "theoretical occupancy", "", ""),
        ("sm__warps_active", _OF_PEAK, "achieved occupancy", "", ""),
        ("sass__inst_executed_register_spilling", "", "spill instructions", "", "less"),
        ("derived__local_spilling_requests", "", "spill requests", "", "less"),
    ),
    "stalls": (
        ("issue_slots_busy_percent", "", "selected (issuing)", "%", "more"),
        ("smsp__issue_active", r"avg\.pct\w+_active", "selected (issuing)", "", "more"),
        ("sm__inst_issued", r"avg\.pct\w+_active", "selected (issuing)", "", "more"),
        ("smsp__warps_issue_stalled_selected", _PCT, "selected (issuing)", "", "more"),
        ("smsp__warps_issue_stalled_(?P<x>\\w+?)s?", r"avg\.pct\w+_active", "{x}", "", ""),
        ("stall_(?P<x>\\w+?)s?_percent", "", "{x}", "%", ""),
        ("smsp__average_warps_issue_stalled_selected_\\w+", "", "selected per issue", "", ""),
        ("smsp__average_warps_issue_stalled_(?P<x>\\w+?)s?_per_issue_active", "", "{x}", "", ""),
        ("smsp__average_warp_latency_issue_stalled_(?P<x>\\w+?)s?", "", "{x}, per warp",
         "cycles", ""),
        ("smsp__pcsamp_warps_issue_stalled_selected(?:_not_issued)?", "", "selected (issuing)",
         "", ""),
        ("smsp__pcsamp_warps_issue_stalled_(?P<x>\\w+?)s?(?:_not_issued)?", "", "{x}", "", ""),
        ("smsp__warps_eligible", r"avg\.per_cycle_active", "eligible warps per cycle", "", "more"),
    ),
    "memory throughput": (
        ("l1tex__throughput", r"avg\.pct\w+_elapsed", "L1 throughput", "", ""),
        ("l1_throughput_percent", "", "L1 throughput", "%", ""),
        ("l1tex__throughput", _PCT, "L1 throughput", "", ""),
        ("lts__throughput", _OF_PEAK, "L2 throughput", "", ""),
        ("dram__cycles_active", r"avg\.pct\w+_elapsed", "DRAM cycles active", "", ""),
        ("dram__throughput|gpu__dram_throughput", _OF_PEAK, "DRAM throughput", "", ""),
        ("gpu__compute_memory_throughput", _OF_PEAK, "busiest memory unit", "", ""),
        ("l1tex__data_pipe_lsu_wavefronts", _PCT, "L1 data pipe, loads and stores", "", ""),
        ("l1tex__data_pipe_(?P<x>lsu|tc)_wavefronts_mem_shared", _PCT,
         "L1 data pipe, shared memory ({x})", "", ""),
        ("sm__mem_tensor_cycles_active", _OF_PEAK, "tensor memory active", "", ""),
        ("dram__bytes", r"sum\.per_second", "DRAM bandwidth", "", ""),
        ("dram__bytes_(?P<x>read|write)", "sum", "DRAM bytes, {x}", "", "less"),
        ("l1tex__m_l1tex2xbar_req_cycles_active", _OF_PEAK, "L1 to L2 requests", "", ""),
        ("l1tex__m_xbar2l1tex_read_bytes", "sum", "bytes from L2 to L1", "", "less"),
        ("lts__t_sectors", "sum", "L2 sectors", "sectors", "less"),
        ("lts__t_sectors_op_(?P<x>read|write)", "sum", "L2 sectors, {x}", "sectors", ""),
    ),
    "access efficiency": (
        ("excessive_l2_sectors_percent", "", "excessive L2 sectors, of all", "%", "less"),
        # ncu gives these sectors a unit of bytes.
        ("derived__memory_l2_theoretical_sectors_global_excessive", "",
         "excessive L2 sectors", "sectors", "less"),
        ("memory_l2_theoretical_sectors_global", "", "L2 sectors, global (LSU)", "sectors", ""),
        ("memory_l2_theoretical_sectors_global_ideal", "",
         "L2 sectors, ideal (LSU)", "sectors", ""),
        ("derived__memory_l1_wavefronts_shared_excessive", "",
         "excessive shared memory wavefronts", "wavefronts", "less"),
        ("memory_l1_wavefronts_shared", "", "shared memory wavefronts", "wavefronts", ""),
        ("memory_l1_wavefronts_shared_ideal", "",
         "shared memory wavefronts, ideal", "wavefronts", ""),
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_(?P<x>\\w+)", "sum",
         "bank conflicts, shared {x}", "", "less"),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_(?P<x>\\w+)", "sum",
         "shared memory wavefronts, {x}", "wavefronts", ""),
        ("l1tex__average_t_sectors_per_request_pipe_lsu_mem_(?P<x>\\w+)", "",
         "sectors per request, {x}", "", ""),
        ("memory_l1_tag_requests_global", "", "L1 tag requests, global", "requests", ""),
        ("l1tex__t_requests_pipe_lsu_mem_global_op_(?P<x>ld|st)", "sum|",
         "requests of global memory, {x}", "requests", ""),
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_(?P<x>ld|st)", "sum|",
         "L1 sectors, global {x}", "sectors", ""),
        ("l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld", "sum|",
         "sectors that TMA reads", "sectors", ""),
        ("l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st", "sum|",
         "sectors that TMA writes", "sectors", ""),
        ("l1tex__data_pipe_tc_wavefronts_mem_shared", "sum|",
         "wavefronts of MMAs' operands", "wavefronts", ""),
        ("smsp__thread_inst_executed_per_inst_executed", "", "active threads per warp", "", "more"),
    ),
    "instructions": (
        ("sm__inst_executed", r"sum\.per_cycle_active", "instructions per active cycle",
         "", "more"),
        ("sm__inst_executed", r"avg\.per_cycle_active", "instructions per active cycle",
         "", "more"),
        ("smsp__inst_executed|sm__inst_executed|inst_executed", "sum", "instructions executed",
         "", ""),
        ("(?:smsp__)?thread_inst_executed", "sum|", "instructions of threads", "", ""),
        ("smsp__thread_inst_executed_pred_on", "sum|",
         "instructions of threads, guard true", "", ""),
        ("smsp__sass_inst_executed_op_(?P<x>global|shared|local)_ld", "sum",
         "{x} load instructions", "", ""),
        ("smsp__sass_inst_executed_op_(?P<x>global|shared|local)_st", "sum",
         "{x} store instructions", "", ""),
        ("sass__inst_executed_(?P<x>global|shared|local)_loads", "",
         "{x} load instructions", "", ""),
        ("sass__inst_executed_(?P<x>global|shared|local)_stores", "",
         "{x} store instructions", "", ""),
        ("smsp__inst_executed_op_(?P<x>shared|local)_ld", "", "{x} loads, predicated off too",
         "", ""),
        ("smsp__inst_executed_op_(?P<x>shared|local)_st", "", "{x} stores, predicated off too",
         "", ""),
        ("smsp__inst_executed_op_ldsm", "", "matrix loads (ldmatrix)", "", ""),
        ("smsp__inst_executed_op_shared_stsm", "", "matrix stores (stmatrix)", "", ""),
        ("smsp__inst_executed_op_tma_ld", "", "TMA loads", "", ""),
        ("smsp__inst_executed_op_tma_st", "", "TMA stores", "", ""),
        ("smsp__inst_executed_op_ldgsts", "", "cp.async instructions", "", ""),
        ("smsp__sass_inst_executed_op_tmem_ldt", "", "tensor memory loads", "", ""),
        ("smsp__sass_inst_executed_op_utcmma", "", "MMAs (tcgen05)", "", ""),
        ("smsp__sass_inst_executed_op_shared_gmma", "", "MMAs (wgmma)", "", ""),
        ("(?:sass__)?inst_executed_mma", "", "MMAs (mma)", "", ""),
        ("(?:sass__)?inst_executed_shuffle", "", "shuffles", "", ""),
        ("(?:sass__)?inst_executed_atomic", "", "atomics", "", ""),
        ("(?:sass__)?inst_executed_barrier", "", "CTA and named barriers", "", ""),
        ("(?:sass__)?inst_executed_warp_barrier", "", "warp barriers", "", ""),
        ("(?:sass__)?inst_executed_mbarrier", "", "mbarrier operations", "", ""),
        ("(?:sass__)?inst_executed_mbarrier_wait", "", "mbarrier waits", "", ""),
        ("(?:sass__)?inst_executed_branch", "", "branches", "", ""),
        ("sm__inst_executed_pipe_tensor", "sum", "tensor pipe, instructions", "", ""),
        ("sm__throughput", _OF_PEAK, "SM throughput", "", ""),
        ("sm__pipe_tc_cycles_active", r"avg\.pct\w+_elapsed", "tensor pipe (tc) active", "", ""),
        ("sm__pipe_(?P<x>tensor|alu|fma|fp64)_cycles_active", _OF_PEAK, "{x} pipe active", "", ""),
        ("sm__inst_executed_pipe_(?P<x>lsu|tma|tmem|uniform|xu|cbu|adu)", _OF_PEAK,
         "{x} pipe, instructions", "", ""),
        ("sm__inst_executed_pipe_tensor_op_hmma", "sum|", "tensor pipe, as HMMA", "", ""),
        ("sm__inst_executed_pipe_(?P<x>\\w+)", "sum|", "{x} pipe, instructions", "", ""),
        ("smsp__inst_executed_op_branch", "sum", "branch instructions", "", "less"),
        ("sass_instructions(?:_\\w+)?", "", "", "", "less"),
    ),
    "cache": (
        ("l1tex__t_sector_hit_rate", "", "L1 hit rate", "", ""),
        ("lts__t_sector_hit_rate", "", "L2 hit rate", "", ""),
        ("lts__t_sectors_srcunit_tex_lookup_miss", "sum", "L2 misses of L1's sectors",
         "sectors", "less"),
        ("lts__t_sectors_srcunit_tex_op_read_lookup_hit", "sum", "L2 sectors read by L1, hit",
         "sectors", ""),
        ("lts__t_sectors_srcunit_tex_op_read_lookup_miss", "sum", "L2 sectors read by L1, miss",
         "sectors", "less"),
        ("gcc__cache_requests_type_instruction", "sum", "instruction cache requests (L1.5)",
         "requests", "less"),
        ("sm__icc_requests", "sum", "instruction cache requests (SM)", "requests", "less"),
        ("sm__icc_request_hit_rate", "", "instruction cache hit rate (SM)", "", ""),
        ("gcc__average_cache_request_hit_rate", "", "cache hit rate (L1.5)", "", ""),
        ("idc__request_hit_rate", "", "constant cache hit rate", "", ""),
    ),
}  # fmt: skip


class _Row(msgspec.Struct, frozen=True):
    rank: int
    start: str
    """What every counter of the row begins with: that costs a tenth of a regular expression."""
    counter: str
    view: str
    label: str
    group: str
    unit: str
    better: Better

    def match(self, counter: str) -> dict[str, str] | None:
        """The named groups of the pattern; None where the counter is another one."""
        matched = counter.startswith(self.start) and re.fullmatch(self.counter, counter)
        return matched.groupdict() if matched else None


# Up to the first part that is a pattern; a repeated character is part of it.
_LITERAL = re.compile(r"(?:\w(?![?*+{]))*")


def _rows() -> Iterator[_Row]:
    rows = ((group, row) for group, rows in _TABLE.items() for row in rows)
    for rank, (group, (counter, view, label, unit, better)) in enumerate(rows):
        start = _LITERAL.match(counter)[0]  # type: ignore[index]
        yield _Row(rank, start, counter, view, label, group, unit, better)


_PATTERNS: list[_Row] = []
_EXACT: dict[str, list[_Row]] = {}
"""Rows without a pattern are looked up: compiling one of each would take as long as all else."""
for _row in _rows():
    if _row.counter.replace("|", "").isidentifier():
        for _name in _row.counter.split("|"):
            _EXACT.setdefault(_name, []).append(_row)
    else:
        _PATTERNS.append(_row)


def is_named(name: str) -> bool:
    """Whether the table names this view of its counter, so that its label and unit are right."""
    return describe(name).rank <= _LAST


def _split(name: str) -> tuple[str, str]:
    """Counter and view; what an internal unit's name precedes (`SM_A.x.sm__y`) is left whole."""
    counter, _, view = name.partition(".")
    return (counter, view) if "__" in counter or not view else (name, "")


@functools.cache
def describe(name: str) -> Counter:
    """Returns the table's entry for a metric; without one, its counter's own name as a label.

    A view that no row names belongs to the counter's first row, after the views that it names.
    """
    counter, view = _split(name)
    result = _find(counter)
    if not result:
        return _describe_ptx(name) if name.startswith(PTX) else Counter(counter, rank=_LAST)
    for row, words in result:
        if not row.view or re.fullmatch(row.view, view):
            return _counter(name, row, words, row.rank)
    row, words = result[0]
    return _counter(name, row, words, row.rank + _LAST)


_LAST = 1000


def _describe_ptx(name: str) -> Counter:
    """Describes a counter of PTX as ncu's, with a label that says what was counted."""
    ncu = name.removeprefix(PTX)
    known = describe(ncu)
    label = name if known.label == ncu else f"{known.label} (PTX)"
    return msgspec.structs.replace(known, label=label)


@functools.cache
def _find(counter: str) -> list[tuple[_Row, dict[str, str]]]:
    """The rows of a counter; an exact name goes before patterns."""
    if counter in _EXACT:
        return [(row, {}) for row in _EXACT[counter]]
    matches = ((row, row.match(counter)) for row in _PATTERNS)
    return [(row, words) for row, words in matches if words is not None]


# ncu counts warps that wait for a warpgroup's MMAs as `gmma` and samples them as this; the s of a
# plural is not in a label.
_SAME = {"warpgroup_arrive": "gmma", "imc_mis": "imc_miss"}


def _counter(name: str, row: _Row, words: dict[str, str], rank: int) -> Counter:
    spelled = {key: _SAME.get(text, text).replace("_", " ") for key, text in words.items()}
    return Counter(row.label.format(**spelled) or name, row.group, row.unit, row.better, rank)


# Of a counter's views that the table does not choose between: activity as a part of its peak, all
# else as a total.
_ACTIVITY = re.compile(r"throughput|_active$|_utilization")
_TOTAL = ("sum", "", "pct", "ratio", "avg.per_cycle_active", "sum.per_cycle_active", "avg")
_PART = tuple(
    f"{rollup}.pct_of_peak_sustained_{cycles}"
    for rollup in ("avg", "sum")
    for cycles in ("elapsed", "active")
)


@functools.cache
def preference(name: str) -> tuple[int, int, str]:
    """The least of a counter's metrics by this key is the one to show."""
    counter, view = _split(name)
    order = (*_PART, *_TOTAL) if _ACTIVITY.search(counter) else (*_TOTAL, *_PART)
    place = order.index(view) if view in order else len(order)
    return describe(name).rank, place, name
