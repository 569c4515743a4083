"""Accesses of global memory that only seem to be in order: right with a fence, wrong without."""

from __future__ import annotations

import numpy as np
import pytest
from harness import EARLY, LATE, found, ptx, run

from warpsim import Schedule
from warpsim.launch import Pointer

SCHEDULES = (LATE, Schedule(seed=1), EARLY)

FLAG = """
mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 0; @%p0 bra WRITER;
POLL: ld.volatile.global.b32 %r2, [%out]; setp.eq.u32 %p1, %r2, 0; @%p1 bra POLL;
LOAD
st.global.b32 [%out+8], %r5;
bra END;
WRITER: st.global.b32 [%out+4], 7;
FENCE
RAISE
END:
"""
VOLATILE = "st.volatile.global.b32 [%out], 1;"
RELEASE = "st.release.gpu.global.b32 [%out], 1;"
LOAD = "ld.global.b32 %r5, [%out+4];"


def handed_over(fence: str, flag: str, load: str = LOAD, schedule: Schedule = LATE) -> set[str]:
    text = FLAG.replace("FENCE", fence).replace("RAISE", flag).replace("LOAD", load)
    out = np.zeros(4, np.uint32)
    return found(run(ptx(text, ["out"]), {"out": out}, threads=1, grid=2, schedule=schedule))


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_data_that_a_flag_announces_needs_a_threadfence(schedule: Schedule) -> None:
    assert handed_over("fence.acq_rel.gpu;", VOLATILE, schedule=schedule) == set()
    assert handed_over("membar.gl;", VOLATILE, schedule=schedule) == set()
    assert handed_over("", RELEASE, schedule=schedule) == set()
    assert handed_over("", VOLATILE, schedule=schedule) == {"race"}
    assert handed_over("membar.cta;", VOLATILE, schedule=schedule) == {"race"}


def test_a_flag_may_be_polled_past_the_cache() -> None:
    text = FLAG.replace("ld.volatile.global", "ld.global.cg").replace("FENCE", "membar.gl;")
    text = ptx(text.replace("RAISE", VOLATILE).replace("LOAD", LOAD), ["out"])
    assert found(run(text, {"out": np.zeros(4, np.uint32)}, threads=1, grid=2)) == set()


@pytest.mark.parametrize("opcode", ["ld.global.nc", "ldu.global"])
def test_a_non_coherent_load_of_what_the_kernel_writes_is_found(opcode: str) -> None:
    load = f"{opcode}.b32 %r5, [%out+4];"
    assert handed_over("membar.gl;", VOLATILE, load) == {"non-coherent-read"}


def test_ctas_that_use_one_word_without_order_race() -> None:
    exchange = """
    mov.u32 %r1, %ctaid.x; mul.wide.u32 %d0, %r1, 4; add.u64 %d1, %out, %d0;
    st.global.b32 [%d1], %r1;
    xor.b32 %r2, %r1, OTHER; mul.wide.u32 %d0, %r2, 4; add.u64 %d1, %out, %d0;
    ld.global.b32 %r3, [%d1]; st.global.b32 [%d1+64], %r3;
    """
    for other, expected in (("0", set()), ("1", {"race"})):
        text = ptx(exchange.replace("OTHER", other), ["out"])
        assert found(run(text, {"out": np.zeros(32, np.uint32)}, threads=1, grid=2)) == expected


def test_global_scratch_of_a_cta_needs_a_barrier() -> None:
    body = """
    mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %t;
    BARRIER
    xor.b32 %r1, %t, 32; mul.wide.u32 %d0, %r1, 4; add.u64 %d1, %out, %d0;
    ld.global.b32 %r3, [%d1];
    """
    for barrier, expected in (("bar.sync 0;", set()), ("", {"race"})):
        text = ptx(body.replace("BARRIER", barrier), ["out"])
        out = {"out": np.zeros(64, np.uint32)}
        assert found(run(text, out, threads=64)) == expected


LOCK = """
LOCK: atom.global.cas.b32 %r1, [%out], 0, 1; setp.ne.u32 %p0, %r1, 0; @%p0 bra LOCK;
membar.gl;
ld.global.b32 %r2, [%out+4]; add.u32 %r2, %r2, 1;
EARLY
st.global.b32 [%out+4], %r2;
LATE
"""
UNLOCK = "membar.gl; atom.global.exch.b32 %r3, [%out], 0;"


def test_a_lock_released_before_the_last_store_is_found() -> None:
    for early, late, expected in (("", UNLOCK, set()), (UNLOCK, "", {"race"})):
        text = ptx(LOCK.replace("EARLY", early).replace("LATE", late), ["out"])
        out = np.zeros(4, np.uint32)
        result = run(text, {"out": out}, threads=1, grid=4)
        assert found(result) == expected


def test_ordinary_stores_that_tma_reads_need_a_proxy_fence() -> None:
    body = """
    mov.u32 %r1, s; mul.wide.u32 %d0, %t, 16; add.u64 %d1, %in, %d0; mov.u32 %r2, 1;
    st.global.v4.b32 [%d1], {%r2, %r2, %r2, %r2}; st.global.v4.b32 [%d1+512], {%r2, %r2, %r2, %r2};
    FENCE
    bar.warp.sync -1;
    setp.ne.u32 %p0, %t, 0; @%p0 bra OUT;
    mbarrier.init.shared::cta.b64 [%r1+1024], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+1024], 512;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%in], 512, [%r1+1024];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1+1024], 0; @!%p1 bra WAIT;
    OUT:
    """
    for fence, expected in (
        ("fence.proxy.async;", set()),
        ("fence.proxy.async.global;", set()),
        ("fence.proxy.async.shared::cta;", {"missing-proxy-fence"}),
        ("", {"missing-proxy-fence"}),
    ):
        text = ptx(body.replace("FENCE", fence), ["in"], shared=".shared .align 128 .b8 s[2048];")
        arrays = {"in": np.zeros(256, np.uint32)}
        assert found(run(text, arrays, arguments=[Pointer(array="in")])) == expected
