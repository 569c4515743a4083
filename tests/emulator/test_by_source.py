"""Which warps of a CTA ran an instruction, and what each source line cost."""

from __future__ import annotations

import numpy as np
import pytest
from harness import ptx, run

from warpsim import Schedule
from warpsim.lineinfo import Source

FILES = '.file 1 "k/kernel.cu"\n.file 2 "include/helper.cuh"'
# Warp 0 goes one way, warps 2 and 3 another, and all end in one line.
BODY = """
.loc 1 10 0
shr.u32 %r1, %t, 5;
setp.eq.u32 %p0, %r1, 0;
setp.gt.u32 %p1, %r1, 1;
setp.eq.u32 %p2, %r1, 3;
@%p0 bra FIRST;
@!%p1 bra END;
.loc 1 20 0
.loc 2 5 0, function_name $name, inlined_at 1 20 0
add.u32 %r2, %t, 1;
@%p2 add.u32 %r2, %r2, 1;
@%p0 add.u32 %r2, %r2, 1;
bra END;
FIRST:
.loc 1 30 0
add.u32 %r2, %t, 2;
END:
.loc 1 40 0
mul.wide.u32 %d0, %t, 4;
add.u64 %d1, %out, %d0;
st.global.b32 [%d1], %r2;
"""


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("grid", [1, 3])
def test_each_line_has_the_warps_that_ran_it(seed: int, grid: int) -> None:
    out = np.zeros(128, np.uint32)
    text = ptx(BODY, ["out"], extra=FILES)
    result = run(text, {"out": out}, threads=128, grid=grid, schedule=Schedule(seed=seed))
    lines = result.counters.by_source()
    answer = {(line.source.line, line.warps): line.counters["ptx__inst_executed"] for line in lines}
    assert {key: count / grid for key, count in answer.items()} == {
        (10, 0b1111): 5 * 4,
        (10, 0b1110): 3,
        (5, 0b1100): 2 * 2 + 1,  # guarded: both warps came to it, one executed it
        (30, 0b0001): 1,
        (40, 0b1111): 4 * 4,
    }


def test_all_that_has_a_line_is_counted_for_one() -> None:
    out = np.zeros(128, np.uint32)
    result = run(ptx(BODY, ["out"], extra=FILES), {"out": out}, threads=128)
    lines = sum(item.counters["ptx__inst_executed"] for item in result.counters.by_source())
    others = [
        instruction
        for instruction in result.counters.instructions
        if not instruction.instruction.source
    ]
    whole = result.counters.kernel["ptx__inst_executed"]
    assert lines + sum(other.executed for other in others) == whole


def test_a_line_is_told_with_what_it_was_inlined_at() -> None:
    out = np.zeros(128, np.uint32)
    result = run(ptx(BODY, ["out"], extra=FILES), {"out": out}, threads=128)
    inlined = next(item for item in result.counters.by_source() if item.source.line == 5)
    assert inlined.source == Source("include/helper.cuh", 5, Source("k/kernel.cu", 20))
    assert inlined.source.own() == Source("k/kernel.cu", 20)
