"""Counts of a profile beside those that were emulated, and what of them a tile has.

Where both agree, the profile is of the launch that problem.py describes, and each count is tiles
times what one needs.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kernelexp.judge.limits.case import Case

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
