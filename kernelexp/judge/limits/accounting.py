"""Counts of a profile beside those that were emulated, and what of them a tile has; how
well accesses use sectors and lines.

Where both agree, the profile is of the launch that problem.py describes, and each count is tiles
times what one needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from kernelexp.facts.counters import PTX
from kernelexp.judge.limits.case import Case
from kernelexp.model.arm import Arm, EmulatedEvidence

# Label, emulated counter, ncu's other name of it.
_COUNTS = (
    ("MMAs", "smsp__sass_inst_executed_op_utcmma", "sm__inst_executed_pipe_tensor"),
    (
        "wgmma instructions of warps",  # four to an MMA
        "smsp__sass_inst_executed_op_shared_gmma",
        "sm__inst_executed_pipe_tensor",
    ),
    (
        "loads of tensor memory",
        "smsp__sass_inst_executed_op_tmem_ldt",
        "sm__inst_executed_pipe_tmem",
    ),
    ("sectors loaded by TMA", "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld", ""),
    ("sectors stored by TMA", "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st", ""),
    ("global loads", "sass__inst_executed_global_loads", ""),
    ("global stores", "sass__inst_executed_global_stores", ""),
    ("shared loads", "sass__inst_executed_shared_loads", ""),
    ("shared stores", "sass__inst_executed_shared_stores", ""),
    ("sectors of global accesses (LSU)", "memory_l2_theoretical_sectors_global", ""),
    ("wavefronts of shared memory", "memory_l1_wavefronts_shared", ""),
)


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One count of a launch of the full problem."""

    label: str
    counter: str
    profiled: int
    emulated: int
    per_tile: int | None
    """None where it is not a whole number."""


def accounts(case: Case) -> Iterator[Account]:
    """Those that the profile and the emulation of the full problem both have, and not 0."""
    profile = case.arm.profiled
    if case.ratios_of or not case.counters or not profile or profile.size not in ("", case.size):
        return
    for label, name, other in _COUNTS:
        emulated = case.counter(name)
        profiled = case.figure(name, *([other] if other else []))
        if emulated and profiled:
            per_tile, rest = divmod(emulated, case.tiles) if case.tiles else (0, 1)
            yield Account(
                label=label,
                counter=name,
                profiled=round(profiled),
                emulated=emulated,
                per_tile=None if rest else per_tile,
            )


_SECTORS_OF_LINE = 4
_TAGS = "memory_l1_tag_requests_global"
_IDEAL = "memory_l2_theoretical_sectors_global_ideal"


class AccessEfficiency(msgspec.Struct, frozen=True, kw_only=True):
    """The efficiency of the loads or of the stores of a launch."""

    op: Literal["loads", "stores"]
    requests: int
    sectors_per_request: float
    line_fill_percent: float | None
    """Of the 128 bytes of each line that a request touches, how many it asks for; None where no
    source line is known for them."""
    on_ptx: bool


def of(arm: Arm, op: Literal["loads", "stores"]) -> AccessEfficiency | None:
    """Returns the emulated efficiency, on SASS where that was executed; None without accesses."""
    taken = arm.counted or arm.emulated
    if taken is None:
        return None
    prefix = PTX if taken.isa == "ptx" else ""
    stem, suffix = "pipe_lsu_mem_global_op", "ld" if op == "loads" else "st"
    requests = taken.counters.get(f"{prefix}l1tex__t_requests_{stem}_{suffix}", 0)
    sectors = taken.counters.get(f"{prefix}l1tex__t_sectors_{stem}_{suffix}", 0)
    if not requests:
        return None
    return AccessEfficiency(
        op=op,
        requests=requests,
        sectors_per_request=sectors / requests,
        line_fill_percent=_fill(taken, f"{prefix}sass__inst_executed_global_{op}", prefix),
        on_ptx=bool(prefix),
    )


def _fill(taken: EmulatedEvidence, executed: str, prefix: str) -> float | None:
    lines = [line for line in taken.lines if line.counters.get(executed)]
    tags = sum(line.counters.get(prefix + _TAGS, 0) for line in lines)
    ideal = sum(line.counters.get(prefix + _IDEAL, 0) for line in lines)
    return 100 * ideal / _SECTORS_OF_LINE / tags if tags else None
