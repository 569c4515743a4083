"""Efficiency of accesses to global memory in sectors and lines, by an emulation's counts."""

from __future__ import annotations

from typing import Literal

import msgspec

from kernelexp.facts.counters import PTX
from kernelexp.model.arm import Arm, EmulatedEvidence

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
