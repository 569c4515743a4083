"""Mistakes planted in small kernels: each is found by name, and the right kernel has none."""

from __future__ import annotations

import numpy as np
import pytest
from harness import EARLY, LATE, found, ptx, run

from warpsim import Schedule
from warpsim.launch import Pointer, TensorMap

WRONG = "INCORRECT"
STAGE = """
{ .reg .b32 %a;
shl.b32 %r0, %t, 2; mov.u32 %r1, s; add.u32 %r2, %r1, %r0;
st.shared.b32 [%r2], %t;
SYNC
xor.b32 %r3, %r0, 4; add.u32 %r4, %r1, %r3;
ld.shared.b32 %r5, [%r4];
mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r5;
}
"""
SHARED = ".shared .align 128 .b8 s[1024];"


def exchange(sync: str, threads: int = 32) -> set[str]:
    text = ptx(STAGE.replace("SYNC", sync), ["out"], shared=SHARED)
    return found(run(text, {"out": np.zeros(threads, np.uint32)}, threads=threads))


def test_lanes_that_exchange_words_without_syncwarp_race():
    assert exchange("") == {"race"}
    assert exchange("bar.warp.sync -1;") == set()


def test_warps_that_exchange_words_without_a_barrier_race():
    swap = STAGE.replace("xor.b32 %r3, %r0, 4", "xor.b32 %r3, %r0, 128")
    out = {"out": np.zeros(64, np.uint32)}
    for sync, names in (("bar.warp.sync -1;", {"race"}), ("bar.sync 0;", set())):
        text = ptx(swap.replace("SYNC", sync), ["out"], shared=SHARED)
        result = found(run(text, out, threads=64))
        # Whichever warp comes first reads what the other has not written yet.
        assert result - {"uninitialised-read"} == names


def test_an_access_past_the_last_row_is_out_of_bounds():
    body = "mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1+4], %t;"
    result = run(ptx(body, ["out"]), {"out": np.zeros(32, np.uint32)})
    (finding,) = result.findings
    assert finding.name == "out-of-bounds"
    assert "thread (31, 0, 0)" in finding.sentence


def test_a_misaligned_vector_access_is_found():
    body = "ld.global.v2.b32 {%r0, %r1}, [%out+4];"
    assert found(run(ptx(body, ["out"]), {"out": np.zeros(32, np.uint32)})) == {"misaligned"}


def test_a_read_of_an_output_that_nobody_wrote_is_found():
    body = "ld.global.b32 %r0, [%out]; add.u32 %r0, %r0, 1; st.global.b32 [%out], %r0;"
    arrays = {"out": np.zeros(32, np.uint32)}
    result = run(ptx(body, ["out"]), arrays, threads=1, unwritten=["out"])
    assert found(result) == {"uninitialised-read"}


def test_a_barrier_that_one_warp_never_reaches_hangs_with_a_table():
    body = "setp.lt.u32 %p0, %t, 32; @%p0 bra OUT; bar.sync 0, 64; OUT:"
    result = run(ptx(body), {}, threads=64)
    assert found(result) == {"hang"}
    (waiter,) = result.hang
    assert (waiter.warp, waiter.waits_for) == (1, "barrier 0: 32 of 64 threads arrived (warp 1)")


MBARRIER = """
mov.u32 %r1, s;
setp.ne.u32 %p0, %t, 0;
@%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r1], COUNT;
READY: bar.sync 0;
BODY
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
@!%p1 bra WAIT;
"""


def mbarrier(count: int, body: str) -> set[str]:
    text = MBARRIER.replace("COUNT", str(count)).replace("BODY", body)
    return found(run(ptx(text, shared=SHARED), {}))


def test_missing_arrivals_hang_and_too_many_are_found():
    arrive = "mbarrier.arrive.shared::cta.b64 _, [%r1];"
    assert mbarrier(32, arrive) == set()
    assert mbarrier(33, arrive) == {"hang"}
    assert mbarrier(24, arrive) == {"over-arrival"}


def test_a_wait_without_a_loop_goes_on_too_early():
    body = """
    mov.u32 %r1, s; setp.ne.u32 %p0, %t, 0;
    @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [%r1], 1;
    READY: bar.sync 0;
    setp.lt.u32 %p2, %t, 32;
    @%p2 bra WAITS;
    st.shared.b32 [%r1+64], 7;
    setp.ne.u32 %p3, %t, 32;
    @!%p3 mbarrier.arrive.shared::cta.b64 _, [%r1];
    bra OUT;
    WAITS: LOOP: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
    BACK
    ld.shared.b32 %r2, [%r1+64];
    OUT:
    """
    for back, caught in (("@!%p1 bra LOOP;", False), ("", True)):
        text = ptx(body.replace("BACK", back), shared=SHARED)
        seeds = [Schedule(seed=seed) for seed in range(6)]
        names = [found(run(text, {}, threads=64, schedule=schedule)) for schedule in seeds]
        assert any(names) == caught


BOX = TensorMap(
    array="in", element="u32", shape=(32, 8), strides_bytes=(128,), box=(32, 8), swizzle="none"
)
STORE = """
shl.b32 %r0, %t, 2; mov.u32 %r1, s; add.u32 %r2, %r1, %r0;
st.shared.b32 [%r2], %t; st.shared.b32 [%r2+128], %t; st.shared.b32 [%r2+256], %t;
st.shared.b32 [%r2+384], %t; st.shared.b32 [%r2+512], %t; st.shared.b32 [%r2+640], %t;
st.shared.b32 [%r2+768], %t; st.shared.b32 [%r2+896], %t;
FENCE
SYNC
setp.ne.u32 %p0, %t, 0; @%p0 bra OUT;
mov.b64 %d0, k_map;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d0, {0, 0}], [%r1];
cp.async.bulk.commit_group;
WAIT
REUSE
OUT:
"""


def store(
    fence: str,
    sync: str,
    wait: str = "cp.async.bulk.wait_group 0;",
    reuse: str = "",
    schedule: Schedule = LATE,
    elect: bool = True,
) -> set[str]:
    body = STORE.replace("FENCE", fence).replace("SYNC", sync).replace("WAIT", wait)
    body = body if elect else body.replace("@%p0 bra OUT;", "")
    text = ptx(body.replace("REUSE", reuse), shared=SHARED)
    text = text.replace("k()", "k(.param .align 128 .b8 k_map[128])")
    arrays = {"in": np.zeros((8, 32), np.uint32)}
    result = run(text, arrays, arguments=[BOX], schedule=schedule)
    want = np.tile(np.arange(32, dtype=np.uint32), (8, 1))
    warnings = {warning.name for warning in result.warnings}
    return found(result) | warnings | (set() if (arrays["in"] == want).all() else {WRONG})


FENCE, SYNC = "fence.proxy.async.shared::cta;", "bar.warp.sync -1;"


def test_a_store_without_proxy_fence_is_found():
    assert store(FENCE, SYNC) == set()
    assert store("", SYNC) == {"missing-proxy-fence"}


def test_a_store_without_syncwarp_before_it_races():
    assert store(FENCE, "") == {"race"}


def test_a_store_that_nobody_waits_for_is_a_warning():
    assert store(FENCE, SYNC, wait="") == {"exit-with-pending-store"}


@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
def test_a_store_that_a_whole_warp_asks_for_is_one(schedule):
    assert store(FENCE, SYNC, elect=False, schedule=schedule) == set()


AGAIN = "st.shared.b32 [%r1], 77; cp.async.bulk.wait_group 0;"


@pytest.mark.parametrize(
    "wait", ["cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group 0;"]
)
def test_staging_may_be_overwritten_when_its_store_has_read_it(wait):
    assert store(FENCE, SYNC, wait=wait, reuse=AGAIN) == set()


@pytest.mark.parametrize("wait", ["", "cp.async.bulk.wait_group.read 1;"])
def test_staging_overwritten_before_its_store_was_waited_for_is_found(wait):
    assert WRONG in store(FENCE, SYNC, wait=wait, reuse=AGAIN)
    assert store(FENCE, SYNC, wait=wait, reuse=AGAIN, schedule=EARLY) == {"race"}


def test_waiting_for_the_read_does_not_wait_for_the_write():
    look = "ld.global.b32 %r9, [%in]; setp.ne.u32 %p1, %r9, 0; @%p1 trap;"
    for wait, expected in (("0", {"trap"}), (".read 0", set())):
        body = STORE.replace("FENCE", FENCE).replace("SYNC", SYNC).replace("REUSE", look)
        body = body.replace("WAIT", f"cp.async.bulk.wait_group{wait};".replace("group0", "group 0"))
        text = ptx(body.replace("[%r2], %t;", "[%r2], 5;", 1), ["in"], shared=SHARED)
        text = text.replace("k(", "k(.param .align 128 .b8 k_map[128], ")
        arrays = {"in": np.zeros((8, 32), np.uint32)}
        result = run(text, arrays, arguments=[BOX, Pointer(array="in")])
        assert found(result) == expected


def test_the_wrong_lane_group_of_tensor_memory_is_found():
    body = """
    mov.u32 %r1, s;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;
    bar.warp.sync -1;
    ld.shared.b32 %r2, [%r1];
    add.u32 %r3, %r2, 2097152;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [ADDRESS], {%t};
    tcgen05.wait::st.sync.aligned;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;
    """
    right = ptx(body.replace("ADDRESS", "%r2"), shared=SHARED)
    wrong = ptx(body.replace("ADDRESS", "%r3"), shared=SHARED)
    assert found(run(right, {})) == set()
    assert found(run(wrong, {})) == {"tmem-lanes"}


def test_bar_sync_in_a_divergent_branch_is_found():
    body = "setp.lt.u32 %p0, %t, 16; @%p0 bra OUT; bar.sync 0; OUT: bar.sync 1;"
    assert "divergent-aligned" in found(run(ptx(body), {}))


def test_a_lane_that_polls_for_ever_is_a_hang_and_no_divergent_barrier():
    body = """
    setp.ne.u32 %p0, %t, 0; @%p0 bra MEET;
    POLL: ld.volatile.global.u32 %r0, [%flag]; setp.eq.u32 %p1, %r0, 0; @%p1 bra POLL;
    MEET: bar.sync 0;
    """
    result = run(ptx(body, ["flag"]), {"flag": np.zeros(1, np.uint32)}, threads=64)
    assert found(result) == {"hang"}


def test_a_pointer_argument_is_not_taken_for_a_tensor_map():
    body = """
    mov.u32 %r1, s;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%in, {0, 0}], [%r1];
    """
    arrays = {"in": np.zeros((8, 32), np.uint32)}
    text = ptx(body, ["in"], shared=SHARED)
    assert found(run(text, arrays, arguments=[Pointer(array="in")])) == {"out-of-bounds"}
