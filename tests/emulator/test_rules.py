"""Rules of the ISA about what an instruction may name: each violation is found by name."""

from __future__ import annotations

import numpy as np
import pytest
from harness import EARLY, LATE, found, ptx, run

from warpsim import Result, Schedule

SHARED = ".shared .align 1024 .b8 s[4096];"


def names(body: str, *, threads: int = 32, grid: int = 1, cluster: int = 1) -> set[str]:
    text = ptx("mov.u32 %r1, s;" + body, shared=SHARED, target="sm_90a")
    return found(run(text, {}, threads=threads, grid=grid, cluster=cluster))


INIT = """
setp.ne.u32 %p0, %t, 0;
@%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r1], COUNT;
fence.mbarrier_init.release.cluster;
READY: bar.sync 0;
"""
WAIT = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0; @!%p1 bra WAIT;"


@pytest.mark.parametrize(("number", "found"), [(15, set()), (16, {"barrier-number"})])
def test_a_cta_has_sixteen_barriers(number: int, found: set[str]) -> None:
    assert names(f"bar.sync {number};") == found


def test_a_barriers_thread_count_is_a_multiple_of_32() -> None:
    assert names("bar.sync 1, 32;") == set()
    assert "barrier-number" in names("bar.sync 1, 20;")


def test_all_that_meet_at_a_barrier_name_one_number_of_threads() -> None:
    first, second = "bar.sync 1, 64;", "bar.sync 1, {};"
    body = "setp.lt.u32 %p0, %t, 32; @%p0 bra OTHER; {} bra END; OTHER: {} END:"
    assert names(body.format(first, second.format(64)), threads=64) == set()
    assert "barrier-number" in names(body.format(first, second.format(96)), threads=64)


def test_a_warp_that_arrives_twice_counts_twice() -> None:
    body = "setp.lt.u32 %p0, %t, 32; @%p0 bra OTHER; {} bra END; OTHER: bar.sync 1, 96; END:"
    arrive = "bar.arrive 1, 96;"
    assert names(body.format(arrive), threads=64) == {"hang"}
    assert names(body.format(arrive + arrive), threads=64) == set()


@pytest.mark.parametrize(
    "instruction",
    [
        "shfl.sync.idx.b32 %r3, %t, 0, 31, {mask};",
        "vote.sync.any.pred %p2, %p0, {mask};",
        "elect.sync %r3|%p2, {mask};",
        "redux.sync.add.u32 %r3, %t, {mask};",
        "bar.warp.sync {mask};",
    ],
)
def test_a_member_mask_names_the_lane_that_executes(instruction: str) -> None:
    low = "setp.ge.u32 %p0, %t, 16; @%p0 bra OUT; {} OUT:"
    assert names(low.format(instruction.format(mask="0xFFFF"))) == set()
    assert names(low.format(instruction.format(mask="0x7FFF"))) == {"member-mask"}


MULTICAST = """
setp.ne.u32 %p0, %t, 0;
mov.u32 %r2, %cluster_ctarank;
@%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r1], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;
READY:
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
setp.ne.or.u32 %p2, %r2, 0, %p0;
@%p2 bra WAITS;
mov.b16 %h1, MASK;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
 [%r1+1024], [%in], 64, [%r1], %h1;
WAITS:
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0; @!%p1 bra WAIT;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""


@pytest.mark.parametrize(("mask", "names"), [(3, set()), (7, {"multicast-mask"})])
def test_a_multicast_names_ctas_of_its_cluster(mask: int, names: set[str]) -> None:
    text = "mov.u32 %r1, s;" + MULTICAST.replace("MASK", str(mask))
    text = text.replace("setp.ne.or.u32 %p2, %r2, 0, %p0;", "setp.ne.or.s32 %p2, %r2, 0, %p0;")
    module = ptx(text, ["in"], shared=SHARED, target="sm_90a")
    arrays = {"in": np.zeros(64, np.uint32)}
    assert found(run(module, arrays, grid=2, cluster=2)) == names


@pytest.mark.parametrize(
    ("waits", "names"),
    [("", set()), ("@%p3 bra OUT;", {"exit-with-pending-copy", "remote-cta-exited"})],
)
def test_a_multicast_lands_in_each_cta_at_a_time_of_its_own(waits: str, names: set[str]) -> None:
    text = "mov.u32 %r1, s;" + MULTICAST.replace("MASK", "3")
    text = text.replace("setp.ne.or.u32 %p2, %r2, 0, %p0;", "setp.ne.or.s32 %p2, %r2, 0, %p0;")
    text = text.replace("WAITS:", "WAITS: setp.eq.u32 %p3, %r2, 0;" + waits)
    text = text.replace("bra WAIT;", "bra WAIT; OUT:")
    module = ptx(text, ["in"], shared=SHARED, target="sm_90a")
    arrays = {"in": np.zeros(64, np.uint32)}
    assert found(run(module, arrays, grid=2, cluster=2, schedule=LATE)) == names


def test_a_wait_is_for_the_own_ctas_mbarrier() -> None:
    body = INIT.replace("COUNT", "32") + "mbarrier.arrive.shared::cta.b64 _, [%r1];"
    sync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    peer = (
        "mov.u32 %r3, %cluster_ctarank; xor.b32 %r3, %r3, 1;mapa.shared::cluster.u32 %r1, %r1, %r3;"
    )
    assert names(body + sync + WAIT + sync, grid=2, cluster=2) == set()
    assert names(body + sync + peer + WAIT + sync, grid=2, cluster=2) == {"mbarrier-misuse"}


@pytest.mark.parametrize(("count", "found"), [(33, set()), (32, {"mbarrier-misuse"})])
def test_no_complete_does_not_complete(count: int, found: set[str]) -> None:
    arrive = "mbarrier.arrive.noComplete.shared::cta.b64 %d0, [%r1], 1;"
    assert names(INIT.replace("COUNT", str(count)) + arrive) == found


ROLES = """
setp.ge.u32 %p0, %t, 128; @%p0 bra OTHERS;
{}
bra END;
OTHERS: {}
END:
"""


def test_registers_that_nobody_gives_back_are_waited_for_in_vain() -> None:
    less, more = "setmaxnreg.dec.sync.aligned.u32 {};", "setmaxnreg.inc.sync.aligned.u32 {};"
    # 384 threads begin with 168 registers each.
    assert names(ROLES.format(less.format(40), more.format(232)), threads=384) == set()
    assert names(ROLES.format("", more.format(232)), threads=384) == {"hang"}
    assert names(more.format(248), threads=384) == {"hang"}
    assert names(ROLES.format(less.format(40), more.format(240)), threads=384) == {"hang"}
    assert names(ROLES.format(less.format(176), ""), threads=384) == {"setmaxnreg"}


ALLOCATE = """
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;
bar.warp.sync -1; ld.shared.b32 %r20, [%r1];
setp.ne.u32 %p0, %t, 0; @%p0 bra OUT;
mov.b64 %d10, 70368744177664; mov.b32 %r9, SHAPE; setp.eq.u32 %p3, %t, 1;
tcgen05.mma.cta_group::GROUP.kind::f16 [%r20], %d10, %d10, %r9, %p3;
OUT: bar.warp.sync -1;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 32;
"""
SHAPE = 1 << 4 | 32 >> 3 << 17 | 128 >> 4 << 24


def mma(shape: int, group: int, matrix: int = 1 << 46) -> set[str]:
    body = "mov.u32 %r1, s;" + ALLOCATE.replace("SHAPE", str(shape)).replace("GROUP", str(group))
    body = body.replace(str(1 << 46), str(matrix))
    return found(run(ptx(body, shared=SHARED), {}, grid=2, cluster=2, schedule=EARLY))


def test_reserved_bits_of_an_instruction_descriptor_are_zero() -> None:
    assert "tensor-descriptor" not in mma(SHAPE, 1)
    for bit in (3, 6, 23, 29, 31):
        assert "tensor-descriptor" in mma(SHAPE | 1 << bit, 1)


def test_reserved_bits_of_a_matrix_descriptor_are_zero() -> None:
    for bit in (48, 53, 60):
        assert "tensor-descriptor" in mma(SHAPE, 1, 1 << 46 | 1 << bit)


def test_a_multiplication_with_an_impossible_m_does_nothing_else() -> None:
    assert mma(SHAPE | 1 << 24, 1) == {"tensor-descriptor"}


def test_a_kernel_uses_one_cta_group() -> None:
    assert "tcgen05-group" not in mma(SHAPE, 1)
    assert "tcgen05-group" in mma(SHAPE, 2)


# wgmma

WGMMA = """
shl.b32 %r2, %t, 5; mov.u32 %r3, 0;
add.u32 %r2, %r1, %r2;
st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3}; st.shared.v4.b32 [%r2+16], {%r3, %r3, %r3, %r3};
fence.proxy.async.shared::cta; bar.sync 0;
shr.u32 %r4, %r1, 4; cvt.u64.u32 %d10, %r4; or.b64 %d10, %d10, 68720001024;
mov.u32 %r40, 0; mov.u32 %r41, 0; mov.u32 %r42, 0; mov.u32 %r43, 0; setp.eq.u32 %p3, 0, 0;
FENCE
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
 {%r40, %r41, %r42, %r43}, %d10, %d10, %p3, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
MIDDLE
wgmma.wait_group.sync.aligned 0;
"""
FENCE = "wgmma.fence.sync.aligned;"
IN_REGISTERS = "{%r45, %r46, %r47, %r48}, %d10, %p3, 1, 1, 0;"


def wgmma(fence: str = FENCE, middle: str = "", schedule: Schedule = LATE) -> Result:
    text = "mov.u32 %r1, s;" + WGMMA.replace("FENCE", fence).replace("MIDDLE", middle)
    return run(ptx(text, shared=SHARED, target="sm_90a"), {}, threads=128, schedule=schedule)


@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
def test_an_accumulator_written_before_its_wait_is_found(schedule: Schedule) -> None:
    right = wgmma(schedule=schedule)
    assert (right.findings, right.warnings) == ((), ())
    assert found(wgmma(middle="mov.u32 %r41, 7;", schedule=schedule)) == {"wgmma-registers"}


@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
def test_an_accumulator_read_before_its_wait_is_found(schedule: Schedule) -> None:
    read, copy = "add.u32 %r44, {0}, 1;", "mov.u32 %r45, %r41;"
    for middle in (read.format("%r41"), copy + read.format("%r45"), "st.shared.b32 [%r1], %r42;"):
        assert "wgmma-registers" in found(wgmma(middle=middle, schedule=schedule))
    assert found(wgmma(middle=copy + read.format("%r2"), schedule=schedule)) == set()


def test_a_later_products_accumulators_are_not_covered_by_the_wait_for_one_before() -> None:
    later = WGMMA.split("FENCE")[1].split("MIDDLE")[0].replace("%r4", "%r5")
    middle = "mov.u32 %r50, 0; mov.u32 %r51, 0; mov.u32 %r52, 0; mov.u32 %r53, 0;" + FENCE + later
    middle += "wgmma.wait_group.sync.aligned 1; add.u32 %r60, READ, 1;"
    assert found(wgmma(middle=middle.replace("READ", "%r41"))) == set()
    assert found(wgmma(middle=middle.replace("READ", "%r51"))) == {"wgmma-registers"}


@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
def test_a_warp_that_has_waited_may_overwrite_what_the_whole_warpgroup_multiplied(
    schedule: Schedule,
) -> None:
    """As CUTLASS does, where one thread of a warpgroup frees a stage for a producer."""
    overwrite = "setp.ge.u32 %p1, %t, 32; @%p1 bra AWAY; WAIT st.shared.b32 [%r2], %t; AWAY:"
    for wait, expected in (("wgmma.wait_group.sync.aligned 0;", False), ("", True)):
        result = wgmma(middle=overwrite.replace("WAIT", wait), schedule=schedule)
        assert ("race" in found(result)) == expected


def test_registers_of_a_that_change_before_the_wait_are_found() -> None:
    text = WGMMA.replace("%d10, %d10, %p3, 1, 1, 0, 0;", IN_REGISTERS)
    text = text.replace("FENCE", "".join(f"mov.u32 %r4{i}, 0;" for i in range(5, 9)) + FENCE)
    for middle, expected in (("", set()), ("mov.u32 %r46, 7;", {"wgmma-registers"})):
        body = "mov.u32 %r1, s;" + text.replace("MIDDLE", middle)
        result = run(ptx(body, shared=SHARED, target="sm_90a"), {}, threads=128, schedule=LATE)
        assert found(result) == expected


def test_a_missing_wgmma_fence_is_found() -> None:
    assert found(wgmma(fence="")) == {"missing-wgmma-fence"}


def test_what_one_wgmma_fence_orders_needs_none_behind_a_wait() -> None:
    """A's fragments are loaded once, and used by operations with waits between them."""
    fragments = "".join(f"mov.u32 %r4{i}, 0;" for i in range(5, 9))
    first = WGMMA.replace("FENCE", fragments + FENCE).replace("MIDDLE", "")
    again = (
        "wgmma.mma_async"
        + first.split("wgmma.mma_async")[1]
        + "wgmma.wait_group"
        + (first.split("wgmma.wait_group")[1])
    )
    again = again.replace("%d10, %d10, %p3, 1, 1, 0, 0;", IN_REGISTERS)
    for between, expected in (("", set()), ("mov.u32 %r46, 7;", {"missing-wgmma-fence"})):
        body = "mov.u32 %r1, s;" + first + between + again
        result = run(ptx(body, shared=SHARED, target="sm_90a"), {}, threads=128, schedule=LATE)
        assert found(result) == expected


def test_a_register_computed_behind_the_wgmma_fence_is_a_warning() -> None:
    result = wgmma(fence=f"{FENCE} add.u32 %r41, %r41, 1;")
    assert result.findings == ()
    assert {warning.name for warning in result.warnings} == {"wgmma-fence-before-write"}


def test_a_missing_fence_after_the_init_of_an_mbarrier_is_a_warning() -> None:
    body = INIT.replace("COUNT", "1") + (
        "@%p0 bra WAITS; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1+64], [%in], 64, [%r1];"
        "WAITS:" + WAIT
    )
    for text, expected in (
        (body, set()),
        (body.replace("fence.mbarrier_init.release.cluster;", ""), {"missing-init-fence"}),
    ):
        module = ptx("mov.u32 %r1, s;" + text, ["in"], shared=SHARED, target="sm_90a")
        result = run(module, {"in": np.zeros(64, np.uint32)})
        assert result.findings == ()
        assert {warning.name for warning in result.warnings} == expected


def test_an_mbarrier_initialised_again_without_inval_is_a_warning() -> None:
    again = (
        INIT.replace("COUNT", "32")
        + "@%p0 bra OUT; {} mbarrier.init.shared::cta.b64 [%r1], 1; OUT:"
    )
    for inval, expected in (
        ("mbarrier.inval.shared::cta.b64 [%r1];", set()),
        ("", {"missing-inval"}),
    ):
        text = ptx("mov.u32 %r1, s;" + again.format(inval), shared=SHARED, target="sm_90a")
        result = run(text, {})
        assert result.findings == ()
        assert {warning.name for warning in result.warnings} == expected


@pytest.mark.parametrize(("offset", "expected"), [(4088, set()), (4096, {"out-of-bounds"})])
def test_an_mbarrier_lies_in_the_ctas_memory(offset: int, expected: set[str]) -> None:
    body = f"mov.u32 %r1, s; @%p0 bra OUT; mbarrier.init.shared::cta.b64 [%r1+{offset}], 1; OUT:"
    text = ptx("setp.ne.u32 %p0, %t, 0;" + body, shared=SHARED, target="sm_90a")
    assert found(run(text, {})) == expected


@pytest.mark.parametrize(
    "ended", ["mbarrier.inval.shared::cta.b64 [%r1];", "st.shared.b64 [%r1], %d0;"]
)
def test_an_mbarrier_that_was_used_and_is_no_more_is_found(ended: str) -> None:
    arrive = "mbarrier.arrive.shared::cta.b64 _, [%r1];"
    body = f"mov.u32 %r1, s; mbarrier.init.shared::cta.b64 [%r1], 32;\n{arrive}\n{ended}\n{arrive}"
    out = {"out": np.zeros(1, np.uint32)}
    assert found(run(ptx(body, ["out"], shared=SHARED), out)) >= {"mbarrier-misuse"}


@pytest.mark.parametrize(("lanes", "expected"), [(1, set()), (32, {"missing-inval"})])
def test_an_mbarrier_initialised_by_several_lanes_is_a_warning(
    lanes: int, expected: set[str]
) -> None:
    body = f"""
    mov.u32 %r1, s; setp.ge.u32 %p0, %t, {lanes};
    @%p0 bra OUT; mbarrier.init.shared::cta.b64 [%r1], 1; OUT:
    """
    result = run(ptx(body, shared=SHARED, target="sm_90a"), {})
    assert result.findings == ()
    assert {warning.name for warning in result.warnings} == expected


EXTERN = """
.extern .func (.param .b64 r) malloc (.param .b64 s);
.extern .func free (.param .b64 a);
.func endless () { call.uni endless; ret; }
"""
ALLOCATED = """
{ .param .b64 size; .param .b64 got; st.param.b64 [size], 64;
call.uni (got), malloc, (size); ld.param.b64 %d1, [got]; }
st.b32 [%d1+60], %t;
"""
FREED = "{ .param .b64 at; st.param.b64 [at], %d1; call.uni free, (at); }"


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (ALLOCATED + FREED, set()),
        (ALLOCATED + FREED + FREED, {"heap"}),
        (ALLOCATED + FREED + "st.b32 [%d1], %t;", {"out-of-bounds"}),
        (ALLOCATED + "st.b32 [%d1+64], %t;", {"out-of-bounds"}),
        ("call.uni endless;", {"stack"}),
    ],
)
def test_the_heap_and_the_stack_have_their_bounds(body: str, names: set[str]) -> None:
    result = run(ptx(body, extra=EXTERN), {}, threads=1)
    assert found(result) == names
    assert result.finished == (names <= {"heap"})


def test_a_barrier_with_a_reduction_is_none_without() -> None:
    plain, vote = "bar.sync 1, 64;", "bar.red.or.pred %p1, 1, 64, %p0;"
    body = "setp.lt.u32 %p0, %t, 32; @%p0 bra OTHER; {} bra END; OTHER: {} END:"
    assert names(body.format(vote, vote), threads=64) == set()
    assert "barrier-number" in names(body.format(vote, plain), threads=64)


@pytest.mark.parametrize(("at", "found"), [(12, set()), (16, {"out-of-bounds"})])
def test_local_memory_ends_with_its_last_variable(at: int, found: set[str]) -> None:
    text = ptx(f"mov.u64 %d0, l; st.local.u32 [%d0+{at}], %t;", shared=".local .b8 l[16];")
    result = run(text, {})
    assert {finding.name for finding in result.findings} == found
    assert all("local address 0x10 " in finding.sentence for finding in result.findings)


def test_a_copy_of_no_bytes_is_nothing_to_wait_for() -> None:
    copy = (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%in], 0, [%r1];"
    )
    body = f"mov.u32 %r1, s; add.u32 %r2, %r1, 16; {INIT.replace('COUNT', '1')} @!%p0 {copy}"
    text = ptx(body, ["in"], shared=SHARED, target="sm_90a")
    assert found(run(text, {"in": np.zeros(4, np.uint32)})) == set()
