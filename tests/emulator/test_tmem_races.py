"""Tensor memory that MMAs, loads and stores of several warps use: what orders them, what not."""

from __future__ import annotations

import numpy as np
import pytest
from harness import EARLY, LATE, ptx, run

from warpsim import Result, Schedule

SHARED = (
    ".shared .align 1024 .b8 a[16384]; .shared .align 1024 .b8 b[16384]; "
    ".shared .align 8 .b8 bar[24];"
)
DESCRIPTOR = 64 << 32 | 1 << 46 | 2 << 61
SHAPE = 1 << 4 | 128 >> 3 << 17 | 128 >> 4 << 24
WAIT = "{name}: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r2{at}], %r50; @!%p5 bra {name};"
# Four warps read an accumulator that the first thread of a fifth one fills three times.
PIPELINE = """
mov.u32 %r0, a; mov.u32 %r1, b; mov.u32 %r2, bar; mov.u32 %r9, 0;
setp.lt.u32 %p0, %t, 128; setp.ne.u32 %p2, %t, 128;
@%p0 bra FILL;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2+16], 128;
@%p2 bra FILLED;
mbarrier.init.shared::cta.b64 [%r2], 1;
mbarrier.init.shared::cta.b64 [%r2+8], 128;
INIT_FENCE
bra FILLED;
FILL:
shl.b32 %r3, %t, 7; mov.u32 %r5, 0;
ZERO: add.u32 %r8, %r0, %r3; add.u32 %r8, %r8, %r5;
st.shared.v4.b32 [%r8], {%r9, %r9, %r9, %r9};
add.u32 %r8, %r1, %r3; add.u32 %r8, %r8, %r5;
st.shared.v4.b32 [%r8], {%r9, %r9, %r9, %r9};
add.u32 %r5, %r5, 16; setp.lt.u32 %p1, %r5, 128; @%p1 bra ZERO;
fence.proxy.async.shared::cta;
FILLED:
bar.sync 0;
ld.shared.b32 %r20, [%r2+16];
mov.u32 %r50, 0; mov.u32 %r51, 0;
@%p0 bra EPILOGUE;
@%p2 bra END;
shr.u32 %r21, %r0, 4; cvt.u64.u32 %d10, %r21; or.b64 %d10, %d10, DESCRIPTOR;
shr.u32 %r22, %r1, 4; cvt.u64.u32 %d11, %r22; or.b64 %d11, %d11, DESCRIPTOR;
TILE:
xor.b32 %r50, %r50, 1;
FREE
xor.b32 %r50, %r50, 1;
AFTER_FREE
mov.b32 %r23, 0; setp.ne.u32 %p3, %r23, 0;
tcgen05.mma.cta_group::1.kind::f16 [%r20], %d10, %d11, SHAPE, {%r9, %r9, %r9, %r9}, %p3;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];
xor.b32 %r50, %r50, 1; add.u32 %r51, %r51, 1; setp.lt.u32 %p4, %r51, 3; @%p4 bra TILE;
bra END;
EPILOGUE:
and.b32 %r30, %t, 96; shl.b32 %r31, %r30, 16; add.u32 %r31, %r31, %r20;
NEXT:
FULL
AFTER_FULL
tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r40, %r41, %r42, %r43}, [%r31];
EARLY_ARRIVAL
tcgen05.wait::ld.sync.aligned;
BEFORE_FREE
LATE_ARRIVAL
xor.b32 %r50, %r50, 1; add.u32 %r51, %r51, 1; setp.lt.u32 %p4, %r51, 3; @%p4 bra NEXT;
END:
MEETING
@%p0 bra OUT;
LAST
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 128;
OUT:
"""
ARRIVE = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r2+8];"
AFTER = "tcgen05.fence::after_thread_sync;"
RIGHT = {
    "INIT_FENCE": "fence.mbarrier_init.release.cluster;",
    "FREE": WAIT.format(name="EMPTY", at="+8"),
    "AFTER_FREE": AFTER,
    "FULL": WAIT.format(name="READY", at=""),
    "AFTER_FULL": AFTER,
    "EARLY_ARRIVAL": "",
    "BEFORE_FREE": "tcgen05.fence::before_thread_sync;",
    "LATE_ARRIVAL": ARRIVE,
    "MEETING": "bar.sync 0;",
    "LAST": "",
}
SCHEDULES = (LATE, Schedule(seed=1), EARLY)
FIRST_AND_SLOW = (
    LATE,
    *(pytest.param(schedule, marks=pytest.mark.slow) for schedule in SCHEDULES[1:]),
)


def pipeline(schedule: Schedule = LATE, **changed: str) -> Result:
    body = PIPELINE
    for place in sorted(RIGHT, key=len, reverse=True):
        body = body.replace(place, changed.get(place, RIGHT[place]))
    body = body.replace("DESCRIPTOR", str(DESCRIPTOR)).replace("SHAPE", str(SHAPE))
    return run(ptx(body, shared=SHARED), {}, threads=160, schedule=schedule)


def names(schedule: Schedule = LATE, **changed: str) -> set[str]:
    return {finding.name for finding in pipeline(schedule, **changed).findings}


def warnings(**changed: str) -> set[str]:
    result = pipeline(**changed)
    assert result.findings == ()
    return {warning.name for warning in result.warnings}


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_an_epilogue_that_frees_what_it_has_read_is_right(schedule: Schedule) -> None:
    result = pipeline(schedule)
    assert (result.findings, result.warnings) == ((), ())


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_cluster_barrier_orders_a_dealloc_behind_warps_that_exited(schedule: Schedule) -> None:
    barrier = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
    assert names(schedule, MEETING="", LAST=barrier) == set()
    assert names(schedule, MEETING="", LAST="") >= {"tmem-race"}


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_an_accumulator_freed_before_its_loads_are_waited_for_is_found(schedule: Schedule) -> None:
    assert names(schedule, EARLY_ARRIVAL=ARRIVE, LATE_ARRIVAL="") == {"tmem-race"}


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_an_mma_that_does_not_wait_for_the_epilogue_is_found(schedule: Schedule) -> None:
    # Early MMAs are two phases ahead before the epilogue asks for the first.
    assert names(schedule, FREE="") >= {"hang" if schedule == EARLY else "tmem-race"}


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_an_accumulator_read_before_its_mma_is_complete_is_found(schedule: Schedule) -> None:
    # Read before the first MMA has landed, it was never written.
    assert names(schedule, FULL="") & {"tmem-race", "tmem-uninitialised"}


def test_a_missing_tcgen05_fence_is_a_warning() -> None:
    assert warnings(AFTER_FULL="") == {"missing-tcgen05-fence"}
    assert warnings(AFTER_FREE="") == {"missing-tcgen05-fence"}
    assert warnings(BEFORE_FREE="") == {"missing-tcgen05-fence"}


STORED = """
mov.u32 %r0, bar; setp.ge.u32 %p0, %t, 32; mov.u32 %r1, 7;
@%p0 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;
ALLOCATED: bar.sync 0;
ld.shared.b32 %r2, [%r0];
@%p0 bra SECOND;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r1};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
SECOND: BARRIER
setp.lt.u32 %p1, %t, 128; @%p1 bra END;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r2];
tcgen05.wait::ld.sync.aligned;
END: bar.sync 2;
@%p0 bra OUT;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;
OUT:
"""


@pytest.mark.parametrize(("barrier", "found"), [("bar.sync 1;", set()), ("", {"tmem-race"})])
def test_a_warp_that_loads_what_another_stores_has_to_wait_for_it(
    barrier: str, found: set[str]
) -> None:
    text = ptx(STORED.replace("BARRIER", barrier), shared=SHARED)
    result = run(text, {}, threads=160)
    assert {finding.name for finding in result.findings} - {"tmem-uninitialised"} == found


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_columns_are_freed_after_their_last_use(schedule: Schedule) -> None:
    text = STORED.replace("BARRIER", "bar.sync 1;").replace("bar.sync 2;", "")
    result = run(ptx(text, shared=SHARED), {}, threads=160, schedule=schedule)
    # A warp may also come too late, and load from columns that are free again.
    assert {finding.name for finding in result.findings} & {"tmem-race", "tmem-bounds"}


@pytest.mark.parametrize("group", [1, 2])
def test_lanes_that_an_mma_disables_keep_what_they_hold(group: int) -> None:
    from warpsim.machine.core.instruction_descriptor import DescriptorFields
    from warpsim.machine.tensor.tensor_core import Mma

    words = tuple(1 << 5 if index == 4 * (group - 1) + 1 else 0 for index in range(4 * group))
    shape = DescriptorFields(SHAPE, "f16", group)
    mma = Mma(shape=shape, d=0, a=0, a_in_tmem=False, b=0, accumulate=False, disabled=words)
    kept = mma.kept(group - 1)
    assert kept is not None
    assert np.flatnonzero(~kept).tolist() == [37]


# One warp asks for a copy of scale factors, another for the MMA that uses them, and four read D.
SCALED = """
mov.u32 %r0, a; mov.u32 %r1, b; mov.u32 %r2, bar; mov.u32 %r9, 2139062143; mov.u32 %r50, 0;
setp.ge.u32 %p0, %t, 32; setp.ne.u32 %p2, %t, 0; setp.ne.u32 %p3, %t, 32; setp.ne.u32 %p4, %t, %t;
@%p0 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2+16], 128;
ALLOCATED:
shl.b32 %r3, %t, 5; add.u32 %r4, %r0, %r3; add.u32 %r5, %r1, %r3; mov.b32 %r8, 0;
st.shared.v4.b32 [%r4], {%r8, %r8, %r8, %r8}; st.shared.v4.b32 [%r4+16], {%r8, %r8, %r8, %r8};
st.shared.v4.b32 [%r5], {%r9, %r9, %r9, %r9}; st.shared.v4.b32 [%r5+16], {%r9, %r9, %r9, %r9};
fence.proxy.async.shared::cta;
@%p2 bra FILLED;
mbarrier.init.shared::cta.b64 [%r2], 1;
fence.mbarrier_init.release.cluster;
FILLED: bar.sync 0;
ld.shared.b32 %r20, [%r2+16];
@%p2 bra ASKED;
shr.u32 %r21, %r1, 4; cvt.u64.u32 %d10, %r21; or.b64 %d10, %d10, ROWS;
tcgen05.cp.cta_group::1.32x128b.warpx4 [%r20+96], %d10;
COPIED
tcgen05.fence::before_thread_sync;
ASKED: BARRIER
@%p3 bra READ;
tcgen05.fence::after_thread_sync;
shr.u32 %r21, %r0, 4; cvt.u64.u32 %d11, %r21; or.b64 %d11, %d11, MATRIX;
tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale
    [%r20], %d11, %d11, SHAPE, [%r20+96], [%r20+96], %p4;
MULTIPLIED
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];
READ: WAIT
tcgen05.fence::after_thread_sync;
and.b32 %r30, %t, 96; shl.b32 %r31, %r30, 16; add.u32 %r31, %r31, %r20;
AGAIN
tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r40, %r41, %r42, %r43}, [%r31];
tcgen05.wait::ld.sync.aligned;
bar.sync 0;
@%p0 bra OUT;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 128;
OUT:
"""
SCALED_RIGHT = {
    "COPIED": "",
    "BARRIER": "bar.sync 1;",
    "MULTIPLIED": "",
    "WAIT": WAIT.format(name="DONE", at=""),
    "AGAIN": "",
    "ROWS": str(8 << 32 | 1 << 46),
    "MATRIX": str(128 << 16 | 8 << 32 | 1 << 46),
    "SHAPE": str(64 >> 3 << 17 | 1 << 23 | 1 << 27),
}


def scaled(schedule: Schedule, **changed: str) -> tuple[set[str], set[str]]:
    """(findings, warnings)"""
    body = SCALED
    for place, text in SCALED_RIGHT.items():
        body = body.replace(place, changed.get(place, text))
    result = run(ptx(body, shared=SHARED), {}, threads=128, schedule=schedule)
    return {finding.name for finding in result.findings}, {
        warning.name for warning in result.warnings
    }


@pytest.mark.parametrize("schedule", FIRST_AND_SLOW, ids=str)
def test_an_mma_may_read_what_another_warp_has_had_copied_without_a_commit(
    schedule: Schedule,
) -> None:
    assert scaled(schedule) == (set(), set())


def test_an_mma_that_is_not_ordered_after_the_copy_is_found() -> None:
    assert scaled(EARLY, BARRIER="")[0] == {"tmem-race"}


@pytest.mark.parametrize("schedule", FIRST_AND_SLOW, ids=str)
def test_scale_factors_stored_to_while_an_mma_reads_them_are_found(schedule: Schedule) -> None:
    store = (
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r31+96], {%r50}; tcgen05.wait::st.sync.aligned;"
    )
    assert scaled(schedule, AGAIN=store)[0] == set()
    # The warp that has issued the MMA stores at once; its commit is waited for afterwards.
    early = (
        f"setp.gt.u32 %p6, %t, 63; setp.lt.or.u32 %p6, %t, 32, %p6; @%p6 bra LATE; {store} LATE:"
    )
    unasked = early.replace("%r31", "%r34")
    address = "and.b32 %r34, %t, 96; shl.b32 %r34, %r34, 16; add.u32 %r34, %r34, %r20; "
    assert scaled(schedule, WAIT=address + unasked + SCALED_RIGHT["WAIT"])[0] == {"tmem-race"}


@pytest.mark.parametrize("schedule", FIRST_AND_SLOW, ids=str)
def test_what_a_copy_writes_is_there_after_its_commit(schedule: Schedule) -> None:
    load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r40}, [%r31+96];"
    assert scaled(schedule, AGAIN=load)[0] == set()
    commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];"
    early = {"COPIED": commit, "BARRIER": "bra READ;", "AGAIN": load}
    assert scaled(schedule, **early)[0] == {"tmem-uninitialised"}
    assert "tmem-race" in scaled(schedule, **early | {"WAIT": ""})[0]


@pytest.mark.parametrize("schedule", FIRST_AND_SLOW, ids=str)
def test_shared_memory_written_before_its_copy_is_done_is_found(schedule: Schedule) -> None:
    names = scaled(schedule, COPIED="st.shared.b32 [%r1], %r50;")[0]
    assert names >= ({"race"} if schedule == EARLY else {"missing-proxy-fence"})


@pytest.mark.parametrize("schedule", FIRST_AND_SLOW, ids=str)
def test_a_load_is_over_when_one_of_its_registers_has_been_read(schedule: Schedule) -> None:
    # As CUTLASS frees what it has converted: the reader waits for the load's scoreboard.
    read = "add.u32 %r45, %r40, 1; " + ARRIVE
    result = pipeline(schedule, EARLY_ARRIVAL=read, LATE_ARRIVAL="")
    assert result.findings == ()
    assert {warning.name for warning in result.warnings} >= {"early-tmem-read"}
