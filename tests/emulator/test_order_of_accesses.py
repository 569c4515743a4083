"""Accesses that only seem to be in order: right with what each test names, wrong without."""

from __future__ import annotations

import numpy as np
import pytest
from harness import EARLY, LATE, found, ptx, run

from warpsim import Schedule, compiled
from warpsim.launch import TensorMap

SHARED = ".shared .align 128 .b8 s[2048];"
SCHEDULES = (LATE, Schedule(seed=1), EARLY)
# What each thread stores goes to the word of its number, and each reads another's.
PLACES = """
mov.u32 %r1, s; shl.b32 %r0, %t, 2; add.u32 %r2, %r1, %r0;
xor.b32 %r3, %r0, 4; add.u32 %r4, %r1, %r3;
xor.b32 %r3, %r0, 128; add.u32 %r6, %r1, %r3;
mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0;
"""
KEEP = "st.global.b32 [%d1], %r5;"


def names(body: str, *, threads: int = 64, schedule: Schedule = LATE) -> set[str]:
    out = np.zeros(threads, np.uint32)
    text = ptx(PLACES + body + KEEP, ["out"], shared=SHARED)
    # Whichever comes first reads what the other has not written yet.
    result = run(text, {"out": out}, threads=threads, schedule=schedule)
    return found(result) - {"uninitialised-read"}


INIT = """
setp.ne.u32 %p0, %t, 0;
@%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r1+1024], COUNT;
READY: bar.sync 0;
"""
WAIT = """
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1+1024], 0;
@!%p1 bra WAIT;
"""
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%r1+1024];"


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_store_after_the_arrival_is_not_what_the_arrival_releases(schedule: Schedule) -> None:
    store, load = "st.shared.b32 [%r2], %t;", "ld.shared.b32 %r5, [%r6];"
    init = INIT.replace("COUNT", "64")
    assert names(init + store + ARRIVE + WAIT + load, schedule=schedule) == set()
    assert names(init + ARRIVE + store + WAIT + load, schedule=schedule) == {"race"}


def test_a_store_after_bar_arrive_is_not_what_it_releases() -> None:
    roles = "setp.lt.u32 %p2, %t, 32; @%p2 bra SECOND; {} bra END; SECOND: bar.sync 1, 64; {} END:"
    store, load = "st.shared.b32 [%r2], %t;", "ld.shared.b32 %r5, [%r6];"
    assert names(roles.format(store + "bar.arrive 1, 64;", load)) == set()
    assert names(roles.format("bar.arrive 1, 64;" + store, load)) == {"race"}


def test_a_slot_released_before_it_is_read_is_found() -> None:
    roles = (
        "st.shared.b32 [%r2], %t; bar.sync 0;"
        "setp.lt.u32 %p2, %t, 32; @%p2 bra SECOND; {} bra END;"
        "SECOND: bar.sync 1, 64; st.shared.b32 [%r6], %r0; END:"
    )
    load = "ld.shared.b32 %r5, [%r2];"
    assert names(roles.format(load + "bar.arrive 1, 64;")) == set()
    assert names(roles.format("bar.arrive 1, 64;" + load)) == {"race"}


def test_a_second_exchange_needs_a_second_syncwarp() -> None:
    first = "st.shared.b32 [%r2], %t; bar.warp.sync -1; ld.shared.b32 %r5, [%r4];"
    second = "st.shared.b32 [%r2], %r5; {} ld.shared.b32 %r5, [%r4];"
    sync = "bar.warp.sync -1;"
    assert names(first + sync + second.format(sync), threads=32) == set()
    assert names(first + sync + second.format(""), threads=32) == {"race"}
    assert names(first + second.format(sync), threads=32) == {"race"}


def test_an_atomic_is_no_syncwarp() -> None:
    body = "st.shared.b32 [%r2], %t; atom.shared.add.u32 %r9, [%r1+512], 1; {} " + (
        "ld.shared.b32 %r5, [%r4];"
    )
    clear = "st.shared.b32 [%r1+512], 0; bar.warp.sync -1;"
    assert names(clear + body.format("bar.warp.sync -1;"), threads=32) == set()
    assert names(clear + body.format(""), threads=32) == {"race"}


def test_an_earlier_reader_is_remembered() -> None:
    body = (
        "st.shared.b32 [%r2], %t; bar.sync 0;"
        "ld.shared.b32 %r5, [%r1+4];"
        "setp.ge.u32 %p2, %t, 64; @%p2 bra THIRD; setp.ge.u32 %p2, %t, 32; @%p2 bra SECOND;"
        "FIRST bra END; SECOND: bar.arrive 1, 64; bra END;"
        "THIRD: bar.sync 1, COUNT; st.shared.b32 [%r1+4], 9; END:"
    )
    right = body.replace("FIRST", "bar.arrive 1, 96;").replace("1, 64", "1, 96")
    assert names(right.replace("COUNT", "96"), threads=96) == set()
    assert names(body.replace("FIRST", "").replace("COUNT", "64"), threads=96) == {"race"}


REFILL = "cp.async.ca.shared.global [%r2], [%d1], 4; cp.async.commit_group;"
LANDED = "cp.async.wait_group 0; bar.sync 0;"


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_copy_by_threads_begins_after_all_have_read_what_it_overwrites(
    schedule: Schedule,
) -> None:
    read = "st.shared.b32 [%r2], %t; bar.sync 0; ld.shared.b32 %r9, [%r6];"
    then = REFILL + "bar.sync 0;" + LANDED + "ld.shared.b32 %r5, [%r6]; add.u32 %r5, %r5, %r9;"
    assert names(read + "bar.sync 0;" + then, schedule=schedule) == set()
    assert names(read + then, schedule=schedule) == {"race"}


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_copy_by_threads_may_overwrite_what_its_own_thread_has_read(schedule: Schedule) -> None:
    read = "st.shared.b32 [%r2], %t; ld.shared.b32 %r9, [%r2];"
    then = REFILL + "cp.async.wait_group 0; ld.shared.b32 %r5, [%r2];"
    assert names(read + then, schedule=schedule) == set()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_copy_by_threads_begins_after_its_source_is_written(schedule: Schedule) -> None:
    store = "xor.b32 %r7, %t, 32; mul.wide.u32 %d0, %r7, 4; add.u64 %d2, %out, %d0;"
    store += "st.global.b32 [%d2], %r7;"
    then = REFILL + "bar.sync 0;" + LANDED + "ld.shared.b32 %r5, [%r2];"
    assert names(store + "bar.sync 0;" + then, schedule=schedule) == set()
    assert names(store + then, schedule=schedule) == {"race"}


BOX = TensorMap(
    array="in", element="u32", shape=(32, 8), strides_bytes=(128,), box=(32, 8), swizzle="none"
)


def stored_by_tma(body: str) -> set[str]:
    """Eight rows staged as `body` says, then stored by thread 0."""
    issue = """
    setp.ne.u32 %p0, %t, 0; @%p0 bra OUT;
    mov.b64 %d0, k_map;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d0, {0, 0}], [%r1];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    OUT:
    """
    places = "shl.b32 %r0, %t, 2; mov.u32 %r1, s; add.u32 %r2, %r1, %r0;"
    text = ptx(places + body + issue, shared=SHARED)
    text = text.replace("k()", "k(.param .align 128 .b8 k_map[128])")
    return found(run(text, {"in": np.zeros((8, 32), np.uint32)}, arguments=[BOX]))


ROWS = "".join(f"st.shared.b32 [%r2+{128 * row}], %t;" for row in range(8))
FENCE = "fence.proxy.async.shared::cta;"


def test_a_proxy_fence_before_the_stores_is_none() -> None:
    assert stored_by_tma(ROWS + FENCE + "bar.warp.sync -1;") == set()
    assert stored_by_tma(FENCE + ROWS + "bar.warp.sync -1;") == {"missing-proxy-fence"}


def test_the_proxy_fence_after_stmatrix_is_every_lanes() -> None:
    rows = "".join(
        f"shl.b32 %r3, %t, 4; add.u32 %r4, %r1, %r3;"
        f"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r4+{512 * part}], {{%t, %t, %t, %t}};"
        for part in range(2)
    )
    assert stored_by_tma(rows + FENCE + "bar.warp.sync -1;") == set()
    first = f"setp.eq.u32 %p1, %t, 0; @%p1 {FENCE} bar.warp.sync -1;"
    assert stored_by_tma(rows + first) == {"missing-proxy-fence"}


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_row_of_a_transposed_stmatrix_is_that_of_several_lanes(schedule: Schedule) -> None:
    store = (
        "and.b32 %r3, %t, 7; shl.b32 %r3, %r3, 4; add.u32 %r4, %r1, %r3;"
        "stmatrix.sync.aligned.m8n8.x1{}.shared.b16 [%r4], {{%t}};"
    )
    load, sync = "ld.shared.b32 %r5, [%r2];", "bar.warp.sync -1;"
    for form, without in (("", set()), (".trans", {"race"})):
        body = store.format(form)
        assert names(body + sync + load, threads=32, schedule=schedule) == set()
        assert names(body + load, threads=32, schedule=schedule) == without


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_store_onto_a_live_mbarrier_is_found(schedule: Schedule) -> None:
    init = INIT.replace("COUNT", "64")
    for at, expected in ((1032, set()), (1024, {"mbarrier-misuse"}), (1028, {"mbarrier-misuse"})):
        store = f"setp.eq.u32 %p3, %t, 5; @%p3 st.shared.b32 [%r1+{at}], %t;"
        body = init + store + ARRIVE + WAIT + "mov.u32 %r5, 0;"
        assert names(body, schedule=schedule) >= expected
        assert bool(expected) == bool(names(body, schedule=schedule))


@pytest.mark.parametrize(("at", "expected"), [(1536, set()), (896, {"mbarrier-misuse"})])
def test_a_copy_onto_a_live_mbarrier_is_found(at: int, expected: set[str]) -> None:
    body = INIT.replace("COUNT", "1") + (
        "setp.ne.u32 %p0, %t, 0; @%p0 bra WAIT;"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+1024], 256;"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
        f"[%r1+{at}], [%out], 256, [%r1+1024];"
    )
    assert names(body + WAIT + "mov.u32 %r5, 0;") == expected


def test_an_mbarrier_used_before_anything_orders_its_init_is_found() -> None:
    init = INIT.replace("COUNT", "64")
    body = ARRIVE + WAIT + "mov.u32 %r5, 0;"
    assert names(init + body) == set()
    unordered = init.replace("bar.sync 0;", "")
    assert names(unordered + body) == {"mbarrier-misuse"}


def test_the_tail_of_a_cp_async_pipeline_is_waited_for() -> None:
    copy = "add.u32 %r7, %r2, {0}; cp.async.ca.shared.global [%r7], [%d1], 4;"
    copy += "cp.async.commit_group;"
    body = copy.format(0) + copy.format(512) + "cp.async.wait_group {};bar.warp.sync -1;"
    body += "ld.shared.b32 %r5, [%r4+512]; bar.warp.sync -1;"
    assert names(body.format(0), threads=32) == set()
    out = {"out": np.zeros(32, np.uint32)}
    text = ptx(PLACES + body.format(1) + KEEP, ["out"], shared=SHARED)
    for seed in range(3):
        result = run(text, out, schedule=Schedule(seed=seed))
        assert found(result) & {"race", "uninitialised-read"}


REMOTE = """
mov.u32 %r1, s; mov.u32 %r10, %cluster_ctarank; xor.b32 %r11, %r10, 1;
mapa.shared::cluster.u32 %r12, %r1, %r11;
st.shared.b32 [%r1], %r10;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
setp.eq.u32 %p0, %r10, 0; @%p0 bra SECOND;
ld.shared::cluster.b32 %r5, [%r12];
SECOND: LAST
"""


def test_shared_memory_of_a_cta_that_has_ended_is_gone() -> None:
    stay = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    for last, expected in ((stay, set()), ("", {"remote-cta-exited"})):
        text = ptx(REMOTE.replace("LAST", last), shared=SHARED)
        runs = [run(text, {}, grid=2, cluster=2, schedule=Schedule(seed=seed)) for seed in range(8)]
        assert set().union(*(found(result) for result in runs)) == expected


def test_one_missing_syncwarp_is_one_finding_with_a_count() -> None:
    body = "".join(
        f"st.shared.b32 [%r2+{128 * i}], %t; ld.shared.b32 %r5, [%r4+{128 * i}];" for i in range(8)
    )
    out = np.zeros(32, np.uint32)
    (finding,) = run(ptx(PLACES + body + KEEP, ["out"], shared=SHARED), {"out": out}).findings
    assert (finding.name, finding.count) == ("race", 8)


# Half of the lanes of each of two warps store to the same words.
MEETING = """
st.shared.b32 [%r2], %t; bar.sync 0;
and.b32 %r7, %t, 31; setp.lt.u32 %p3, %r7, 16; shl.b32 %r8, %r7, 2; add.u32 %r8, %r1, %r8;
mov.u32 %r9, {value};
@%p3 st.shared.b32 [%r8], %r9; bar.sync 0;
ld.shared.b32 %r5, [%r2];
"""


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_storing_what_another_warp_has_stored_is_no_race(schedule: Schedule) -> None:
    same, others = MEETING.format(value="%r7"), MEETING.format(value="%t")
    assert names(same, schedule=schedule) == set()
    assert names(others, schedule=schedule) == {"race"}


# One warp stores, a second hears of it and has the tensor core signal a third.
COMMITTED = """
mov.u32 %r0, s; mov.u32 %r1, bar; mov.u32 %r9, 0;
setp.ne.u32 %p0, %t, 0; setp.ne.u32 %p1, %t, 32; setp.ne.u32 %p2, %t, 64;
@%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r1], 1; mbarrier.init.shared::cta.b64 [%r1+8], 1;
fence.mbarrier_init.release.cluster;
READY: bar.sync 0;
@%p0 bra SECOND;
FIRST
mbarrier.arrive.shared::cta.b64 _, [%r1];
SECOND: @%p1 bra THIRD;
HEARD: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0; @!%p3 bra HEARD;
OWN
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1+8];
THIRD: @%p2 bra END;
DONE: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1+8], 0; @!%p3 bra DONE;
ld.shared.b32 %r2, [%r0];
END:
"""


@pytest.mark.parametrize(("stores", "races"), [("FIRST", set()), ("OWN", {"race"})])
def test_a_commit_hands_over_what_its_thread_had_heard_of_and_not_what_it_stored(stores, races):
    store = "st.shared.b32 [%r0], %r9;"
    body = COMMITTED.replace(stores, store).replace("FIRST\n", "\n").replace("OWN\n", "\n")
    shared = ".shared .align 8 .b8 s[8]; .shared .align 8 .b8 bar[16];"
    assert found(run(ptx(body, shared=shared), {}, threads=96)) == races


# A CTA of a pair arrives at the other one's mbarrier.
PAIR = """
mov.u32 %r1, bar; mov.u32 %r2, %cluster_ctarank;
setp.ne.u32 %p0, %t, 0; @%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r1], 1;
FENCE
READY: barrier.cluster.arrive.relaxed; barrier.cluster.wait;
@%p0 bra END;
xor.b32 %r3, %r2, 1; mapa.shared::cluster.u32 %r4, %r1, %r3;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 0; @!%p3 bra WAIT;
END: barrier.cluster.arrive; barrier.cluster.wait;
"""


def test_an_init_that_a_relaxed_cluster_barrier_carries_without_a_fence_is_a_warning():
    shared = ".shared .align 8 .b8 bar[8];"
    for fence, warnings in (
        ("fence.mbarrier_init.release.cluster;", set()),
        ("", {"missing-init-fence"}),
    ):
        text = ptx(PAIR.replace("FENCE", fence), shared=shared)
        result = run(text, {}, grid=2, cluster=2)
        assert found(result) == set()
        assert {warning.name for warning in result.warnings} == warnings


# Warp 0 writes, fences and arrives; warp 1 waits and stores in bulk.
HANDED = """
mov.u32 %r1, s; mov.u32 %r2, bar; shl.b32 %r3, %t, 2; add.u32 %r3, %r1, %r3;
setp.ne.u32 %p0, %t, 32; @%p0 bra READY;
mbarrier.init.shared.b64 [%r2], 32;
READY: bar.sync 0;
setp.ge.u32 %p1, %t, 32; @%p1 bra COPY;
st.shared.b32 [%r3], %t;
{}
bra END;
COPY: @%p0 bra END;
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;
cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:
"""


@pytest.mark.parametrize("compile_", [True, False], ids=["compiled", "Python"])
def test_a_proxy_fence_after_the_arrival_comes_too_late(compile_: bool) -> None:
    fence, arrive = "fence.proxy.async.shared::cta;", "mbarrier.arrive.shared.b64 _, [%r2];"
    if not compile_:
        compiled.unload()

    def names_of(body: str) -> set[str]:
        shared = ".shared .align 16 .b8 s[128]; .shared .align 8 .b8 bar[8];"
        text = ptx(HANDED.replace("{}", body), ["out"], shared=shared)
        return found(run(text, {"out": np.zeros(32, np.uint32)}, threads=64))

    assert names_of(fence + arrive) == set()
    assert names_of(fence + arrive + 9 * fence) == set()
    assert names_of(arrive + fence) == {"missing-proxy-fence"}


COUNTED = """
mov.u64 %d1, s; setp.ne.u32 %p0, %t, 0; @!%p0 st.shared.b32 [%d1], 0;
{}
and.b32 %r1, %t, 31; setp.ne.u32 %p1, %r1, 0; @!%p1 atom.shared.add.u32 %r2, [%d1], 1;
"""


@pytest.mark.parametrize(
    ("order", "expected"), [("bar.sync 0;", set()), ("bar.warp.sync -1;", {"race"})]
)
def test_an_atomic_comes_after_the_store_that_clears_its_word(
    order: str, expected: set[str]
) -> None:
    text = ptx(COUNTED.replace("{}", order), shared=".shared .align 4 .b8 s[4];")
    assert found(run(text, {}, threads=64)) == expected


@pytest.mark.parametrize("compile_", [True, False], ids=["compiled", "Python"])
def test_a_store_that_two_threads_issue_names_the_two(compile_: bool) -> None:
    if not compile_:
        compiled.unload()
    issue = (
        "st.shared.b32 [%r2], %t; fence.proxy.async.shared::cta; bar.warp.sync -1;"
        "and.b32 %r7, %t, 3; setp.ne.u32 %p0, %r7, 1; @%p0 bra END;"
        "setp.gt.u32 %p0, %t, 8; @%p0 bra END;"
        "cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 128;"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"
    )
    text = ptx(PLACES + issue, ["out"], shared=SHARED)
    (finding,) = run(text, {"out": np.zeros(32, np.uint32)}).findings
    assert finding.name == "overwritten-in-use"
    assert "that thread (1, 0, 0) and thread (5, 0, 0) of block (0, 0, 0) both" in finding.sentence
