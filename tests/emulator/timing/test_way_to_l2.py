"""Modelled cycles of what stands between the warps of an SM and L2: L1's room, the port to L2."""

from __future__ import annotations

import numpy as np
import pytest
from small import B200, H200, cycles_per, modelled, modelled_each

STORE = "mad.wide.u32 %d1, %t, 4, %out; st.global.u32 [%d1], %r0;"
LINES = "mov.u32 %r0, 0; mad.wide.u32 %d1, %t, 128, %words;"
WORDS = np.zeros(128 * 32, np.uint32)


def test_a_stored_line_takes_the_data_stage_as_long_as_the_parameter_says():
    store = "st.volatile.global.u32 [%d1], %r0;"
    slow = B200.altered(store_extra=9)
    cycles = cycles_per(store, LINES, "", arrays={"words": WORDS}, chip=slow)
    assert cycles == pytest.approx(32 * (1 + 9), rel=0.05)


def test_a_line_that_is_asked_for_takes_a_turn_of_the_port_to_l2():
    load = "ld.relaxed.gpu.global.u32 %r2, [%d1]; add.u32 %r0, %r0, %r2;"
    slow = B200.altered(request_interval=40)
    cycles = cycles_per(load, LINES, STORE, arrays={"words": WORDS}, chip=slow)
    assert cycles == pytest.approx(32 * 40, rel=0.05)


def test_so_does_each_sector_that_is_written():
    store = "st.volatile.global.v4.u32 [%d1], {%r0, %r0, %r0, %r0};"
    own = "mov.u32 %r0, 0; mad.wide.u32 %d1, %t, 16, %words;"
    slow = B200.altered(request_interval=40)
    cycles = cycles_per(store, own, "", arrays={"words": WORDS}, chip=slow)
    assert cycles == pytest.approx(16 * 40, rel=0.05)


def test_what_was_stored_is_in_l1():
    start = """mov.u32 %r0, 7; mad.wide.u32 %d1, %t, 4, %words; xor.b32 %r1, %t, 1;
    mad.wide.u32 %d2, %r1, 4, %words;"""
    load = "ld.global.ca.u32 %r0, [%d2];" + STORE
    bodies = [start + before + load for before in ("st.global.u32 [%d1], %r0;", "")]
    stored, not_stored = modelled_each(bodies, {"words": WORDS})
    assert not_stored.cycles - stored.cycles > H200["l2_latency"] * H200.clock_hz / 1e9 / 2


def test_l1_has_what_the_next_larger_size_of_shared_memory_leaves():
    again = "".join(
        f"ld.global.ca.v4.u32 {{%r0, %r1, %r2, %r3}}, [%d1+{16384 * at}]; add.u32 %r4, %r4, %r0;"
        for at in range(13)
    )
    body = "mov.u32 %r4, 0; mad.wide.u32 %d1, %t, 16, %words;" + 3 * (again + "bar.sync 0;")
    fits, does_not = (
        modelled(
            body + "mad.wide.u32 %d2, %t, 4, %out; st.global.u32 [%d2], %r4;",
            {"words": np.zeros(13 * 4096, np.uint32)},
            threads=1024,
            shared=f".shared .align 16 .b8 room[{size}];",
        ).cycles
        for size in (30 * 1024, 34 * 1024)
    )
    assert does_not > fits
