"""Control flow: lanes that part come together again, and nothing is lost or run twice."""

from __future__ import annotations

import random

import numpy as np
import pytest
from harness import EARLY, LATE, found, ptx, run
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsim import Schedule

STORE = "mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r1;"
MASK = 0xFFFF_FFFF


class Program:
    """A random structured program over one word per lane, as PTX and as a Python function."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.labels = 0
        self.ptx, self.tree = self.block(3)

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def block(self, depth: int):
        parts = [self.statement(depth) for _ in range(self.chance.randint(1, 3))]
        return "\n".join(p for p, _ in parts), [t for _, t in parts]

    def statement(self, depth: int):
        kind = self.chance.choice(["step", "if", "loop", "leave"] if depth else ["step"])
        if kind == "step":
            factor = self.chance.choice([3, 5, 1664525])
            return f"mad.lo.u32 %r1, %r1, {factor}, 7;", ("step", factor)
        bit = self.chance.randint(0, 7)
        test = f"shr.u32 %r2, %r1, {bit}; and.b32 %r2, %r2, 1; setp.eq.u32 %p0, %r2, 1;"
        inner, tree = self.block(depth - 1)
        if kind == "leave":
            return f"{test}\n@%p0 bra END;\n{inner}", ("leave", bit, tree)
        if kind == "if":
            other, other_tree = self.block(depth - 1)
            first, end = self.label(), self.label()
            text = f"{test}\n@%p0 bra {first};\n{other}\nbra {end};\n{first}:\n{inner}\n{end}:"
            return text, ("if", bit, tree, other_tree)
        start = self.label()
        counter = f"%r{10 + depth}"
        text = f"""
        and.b32 {counter}, %r1, 3;
        {start}:
        {inner}
        sub.u32 {counter}, {counter}, 1;
        setp.lt.s32 %p0, {counter}, 0;
        @!%p0 bra {start};
        """
        return text, ("loop", tree)

    def evaluate(self, value: int) -> int:
        try:
            return self.execute(self.tree, value)
        except StopIteration as left:
            return int(left.value)

    def execute(self, tree, value: int) -> int:
        for item in tree:
            if item[0] == "step":
                value = (value * item[1] + 7) & MASK
            elif item[0] == "leave":
                if value >> item[1] & 1:
                    raise StopIteration(value)
                value = self.execute(item[2], value)
            elif item[0] == "if":
                value = self.execute(item[2] if value >> item[1] & 1 else item[3], value)
            else:
                for _ in range((value & 3) + 1):
                    value = self.execute(item[1], value)
        return value


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([LATE, Schedule(seed=3)]))
def test_random_programs_compute_what_each_lane_alone_would(seed, schedule):
    program = Program(seed)
    text = ptx(f"mul.lo.u32 %r1, %t, 2654435761;\n{program.ptx}\nEND:\n{STORE}", ["out"])
    out = np.zeros(80, np.uint32)
    result = run(text, {"out": out}, threads=80, schedule=schedule)
    assert result.findings == ()
    assert out.tolist() == [program.evaluate(t * 2654435761 & MASK) for t in range(80)]


def test_lanes_meet_again_after_a_branch():
    text = """
    and.b32 %r2, %t, 1; setp.eq.u32 %p0, %r2, 0;
    @%p0 bra EVEN;
    mov.u32 %r1, 5; bra JOIN;
    EVEN: mov.u32 %r1, 6;
    JOIN: add.u32 %r1, %r1, 1;
    """
    counters = run(ptx(text + STORE, ["out"]), {"out": np.zeros(32, np.uint32)}).counters
    (join,) = (c for c in counters.instructions if c.instruction.text == "add.u32 %r1, %r1, 1;")
    assert (join.executed, join.lanes) == (1, 32)


def test_a_lane_may_wait_for_another_of_its_warp():
    """Independent thread scheduling: lane 0 spins until lane 1 has written."""
    text = """
    mov.u32 %r3, s; mov.u32 %r1, 9;
    setp.eq.u32 %p0, %t, 0; setp.eq.u32 %p1, %t, 1;
    @%p1 st.volatile.shared.b32 [%r3+4], %t;
    @%p0 st.volatile.shared.b32 [%r3], %t;
    bar.warp.sync -1;
    @%p0 bra SPIN;
    @%p1 st.volatile.shared.b32 [%r3], %t;
    bra OUT;
    SPIN: ld.volatile.shared.b32 %r1, [%r3];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra SPIN;
    OUT:
    """
    out = np.zeros(32, np.uint32)
    result = run(ptx(text + STORE, ["out"], shared=".shared .b8 s[8];"), {"out": out})
    assert result.findings == ()
    assert out[0] == 1


def test_a_loop_that_never_ends_is_given_up():
    text = ptx(
        "mov.u32 %r3, s; st.volatile.shared.b32 [%r3], 0;"
        "SPIN: ld.volatile.shared.b32 %r1, [%r3]; setp.eq.u32 %p2, %r1, 0; @%p2 bra SPIN;",
        shared=".shared .b8 s[8];",
    )
    assert found(run(text, {})) & {"hang", "step-limit"}


def test_a_warp_that_exits_early_is_not_waited_for():
    text = "setp.ge.u32 %p0, %t, 32; @%p0 bra OUT; bar.sync 0; mov.u32 %r1, 1;" + STORE + "OUT:"
    out = np.zeros(64, np.uint32)
    assert run(ptx(text, ["out"]), {"out": out}, threads=64).findings == ()
    assert out.tolist() == [1] * 32 + [0] * 32


def test_shuffles_wait_for_the_lanes_of_both_sides():
    text = """
    setp.lt.u32 %p0, %t, 16; mov.u32 %r2, 1;
    @%p0 bra LOW;
    mov.u32 %r2, 2;
    LOW: shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;
    """
    out = np.zeros(32, np.uint32)
    assert run(ptx(text + STORE, ["out"]), {"out": out}).findings == ()
    assert out.tolist() == [2] * 16 + [1] * 16


@pytest.mark.parametrize("schedule", [LATE, EARLY, Schedule(seed=7)])
def test_brx_idx_goes_where_its_index_says(schedule):
    text = """
    and.b32 %r2, %t, 3;
    T: .branchtargets A, B, C, D;
    brx.idx %r2, T;
    A: mov.u32 %r1, 10; bra END;
    B: mov.u32 %r1, 11; bra END;
    C: mov.u32 %r1, 12; bra END;
    D: mov.u32 %r1, 13;
    END:
    """
    out = np.zeros(32, np.uint32)
    assert run(ptx(text + STORE, ["out"]), {"out": out}, schedule=schedule).findings == ()
    assert out.tolist() == [10, 11, 12, 13] * 8
