"""What SASS is counted as, where the hardware counts more than what takes effect."""

from __future__ import annotations

import numpy as np
from harness import ptx, run_sass

from warpsim import Result

_BARRIERS = """
setp.lt.u32 %p0, %t, 32;
@%p0 bar.arrive 1, 64;
@!%p0 bar.sync 1, 64;
"""
_DIFFERENCE = """
ld.global.u32 %r0, [%in]; mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0;
sub.u32 %r1, %r0, %t; shl.b32 %r2, %r1, 5; st.global.u32 [%d1], %r2;
"""


def executed(result: Result, opcode: str) -> tuple[int, int]:
    """(warp instructions, threads for which the guard held) of one opcode."""
    answer = [c for c in result.counters.instructions if c.instruction.opcode == opcode]
    return sum(c.executed for c in answer), sum(c.threads for c in answer)


def test_a_barrier_is_executed_by_a_warp_that_its_guard_keeps_from_it() -> None:
    result = run_sass(ptx(_BARRIERS, target="sm_90a"), "sm_90a", {}, threads=64)
    assert not result.findings
    assert executed(result, "BAR.ARV") == (2, 32)
    assert result.counters.kernel["sm__inst_executed_pipe_adu"] >= 3


def test_a_scaled_difference_is_shifted_with_its_sign() -> None:
    arrays = {"in": np.array([7], np.uint32), "out": np.zeros(32, np.uint32)}
    result = run_sass(ptx(_DIFFERENCE, list(arrays), target="sm_90a"), "sm_90a", arrays)
    assert not result.findings
    assert (arrays["out"].view(np.int32) == (7 - np.arange(32)) * 32).all()
