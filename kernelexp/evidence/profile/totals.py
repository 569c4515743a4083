"""Totals of a source page's columns: ncu's figures of the launch, where no other page has them."""

from __future__ import annotations

from collections.abc import Sequence

from kernelexp.model.arm import ProfiledInstruction

_COLUMNS = {
    "Instructions Executed": "smsp__inst_executed.sum",
    "Thread Instructions Executed": "smsp__thread_inst_executed.sum",
    "L1 Wavefronts Shared": "memory_l1_wavefronts_shared",
    "L1 Wavefronts Shared Ideal": "memory_l1_wavefronts_shared_ideal",
    "L1 Wavefronts Shared Excessive": "derived__memory_l1_wavefronts_shared_excessive",
    "L2 Theoretical Sectors Global": "memory_l2_theoretical_sectors_global",
    "L2 Theoretical Sectors Global Ideal": "memory_l2_theoretical_sectors_global_ideal",
    "L2 Theoretical Sectors Global Excessive": (
        "derived__memory_l2_theoretical_sectors_global_excessive"
    ),
    "L1 Tag Requests Global": "memory_l1_tag_requests_global",
}
_STALLS = {
    "long_sb": "long_scoreboard",
    "short_sb": "short_scoreboard",
    "mio": "mio_throttle",
    "lg": "lg_throttle",
    "tex": "tex_throttle",
    "math": "math_pipe_throttle",
    "no_inst": "no_instructions",
    "imc": "imc_miss",
    "dispatch": "dispatch_stall",
}
"""Reasons to wait that a source page shortens."""
_SAMPLES = "smsp__pcsamp_warps_issue_stalled_"


def of(instructions: Sequence[ProfiledInstruction]) -> dict[str, float | str]:
    """Sums over the instructions, by ncu's names."""
    sums: dict[str, float | str] = {}
    for instruction in instructions:
        for column, value in instruction.figures.items():
            if name := _name(column):
                before = sums.get(name, 0.0)
                sums[name] = value + (before if isinstance(before, float) else 0.0)
    return sums


def _name(column: str) -> str:
    if column in _COLUMNS:
        return _COLUMNS[column]
    reason = column.removeprefix("stall_")
    if reason == column or not reason.isidentifier():
        return ""
    return f"{_SAMPLES}{_STALLS.get(reason, reason)}"
