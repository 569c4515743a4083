"""Tensor memory and the fifth-generation tensor core, in one CTA."""

from __future__ import annotations

import numpy as np
import pytest
from harness import EARLY, LATE, found, ptx, run

import warpsim as emulator

SHARED = ".shared .align 1024 .b8 a[16384]; " + (
    ".shared .align 1024 .b8 b[16384]; .shared .align 8 .b8 bar[16];"
)
# 128 threads write 128 rows of 128 bytes of each operand, swizzled, then one of them multiplies.
MULTIPLY = """
mov.u32 %r0, a; mov.u32 %r1, b; mov.u32 %r2, bar;
setp.ge.u32 %p0, %t, 32;
@%p0 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2+8], 128;
ALLOCATED:
shl.b32 %r3, %t, 7; and.b32 %r4, %t, 7; mov.u32 %r5, 0;
mul.wide.u32 %d0, %t, 128; add.u64 %d1, %x, %d0; add.u64 %d2, %y, %d0;
COPY:
xor.b32 %r6, %r5, %r4; shl.b32 %r7, %r6, 4; add.u32 %r7, %r7, %r3;
add.u32 %r8, %r0, %r7; add.u32 %r9, %r1, %r7;
ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%d1]; st.shared.v4.b32 [%r8], {%r10, %r11, %r12, %r13};
ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%d2]; st.shared.v4.b32 [%r9], {%r10, %r11, %r12, %r13};
add.u64 %d1, %d1, 16; add.u64 %d2, %d2, 16;
add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 8; @%p1 bra COPY;
fence.proxy.async.shared::cta;
setp.ne.u32 %p2, %t, 0;
@%p2 bra INITIALISED;
mbarrier.init.shared::cta.b64 [%r2], 1;
INITIALISED:
bar.sync 0;
ld.shared.b32 %r20, [%r2+8];
@%p2 bra WAIT;
shr.u32 %r21, %r0, 4; cvt.u64.u32 %d10, %r21; or.b64 %d10, %d10, DESCRIPTOR;
shr.u32 %r22, %r1, 4; cvt.u64.u32 %d11, %r22; or.b64 %d11, %d11, DESCRIPTOR;
mov.u32 %r23, 0;
STEP:
setp.ne.u32 %p3, %r23, 0;
tcgen05.mma.cta_group::1.kind::KIND [%r20], %d10, %d11, SHAPE, %p3;
add.u64 %d10, %d10, 2; add.u64 %d11, %d11, 2;
add.u32 %r23, %r23, 1; setp.lt.u32 %p4, %r23, 4; @%p4 bra STEP;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r2], 0;
@!%p5 bra WAIT;
tcgen05.fence::after_thread_sync;
and.b32 %r30, %t, 96; shl.b32 %r31, %r30, 16; add.u32 %r31, %r31, %r20; mov.u32 %r32, 0;
mul.wide.u32 %d0, %t, 512; add.u64 %d1, %out, %d0;
READ:
tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r40, %r41, %r42, %r43}, [%r31];
tcgen05.wait::ld.sync.aligned;
st.global.v4.b32 [%d1], {%r40, %r41, %r42, %r43};
add.u64 %d1, %d1, 16; add.u32 %r31, %r31, 4;
add.u32 %r32, %r32, 4; setp.lt.u32 %p6, %r32, 128; @%p6 bra READ;
bar.sync 0;
@%p0 bra OUT;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 128;
OUT:
"""
# Stride 1024, the fixed bits of sm_100, 128-byte swizzle; D f32, N = 128, M = 128.
DESCRIPTOR = 64 << 32 | 1 << 46 | 2 << 61
SHAPE = 1 << 4 | 128 >> 3 << 17 | 128 >> 4 << 24


def multiply(kind: str, formats: int, x: np.ndarray, y: np.ndarray, schedule=LATE) -> np.ndarray:
    body = MULTIPLY.replace("DESCRIPTOR", str(DESCRIPTOR)).replace("KIND", kind)
    text = ptx(body.replace("SHAPE", str(SHAPE | formats)), ["x", "y", "out"], shared=SHARED)
    out = np.zeros((128, 128), np.float32)
    result = run(text, {"x": x, "y": y, "out": out}, threads=128, schedule=schedule)
    assert result.findings == ()
    return out


@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
def test_f16_products_of_small_integers_are_exact(schedule):
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-8, 9, (128, 64)).astype(np.float16) for _ in range(2))
    want = x.astype(np.float64) @ y.astype(np.float64).T
    assert (multiply("f16", 0, x, y, schedule) == want).all()


def test_tf32_products_of_small_integers_are_exact():
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-8, 9, (128, 32)).astype(np.float32) for _ in range(2))
    want = x.astype(np.float64) @ y.astype(np.float64).T
    assert (multiply("tf32", 2 << 7 | 2 << 10, x, y) == want).all()


STORE_AND_LOAD = """
mov.u32 %r0, bar;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;
bar.warp.sync -1;
ld.shared.b32 %r1, [%r0];
mul.lo.u32 %r2, %t, 100; add.u32 %r3, %r2, 1;
tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%r2, %r3};
STORED
tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r4, %r5}, [%r1];
LOADED
mul.wide.u32 %d0, %t, 8; add.u64 %d1, %out, %d0; st.global.v2.b32 [%d1], {%r4, %r5};
tcgen05.wait::ld.sync.aligned;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
"""


def stored_and_loaded(stored: bool, loaded: bool) -> tuple[bool, set[str]]:
    right, result = store_and_load(stored, loaded)
    return right, found(result)


def store_and_load(stored: bool, loaded: bool) -> tuple[bool, emulator.Result]:
    text = STORE_AND_LOAD.replace("STORED", "tcgen05.wait::st.sync.aligned;" * stored)
    text = text.replace("LOADED", "tcgen05.wait::ld.sync.aligned;" * loaded)
    out = np.zeros((32, 2), np.uint32)
    result = run(ptx(text, ["out"], shared=SHARED), {"out": out})
    lanes = np.arange(32)[:, None] * 100 + np.arange(2)
    return bool((out == lanes).all()), result


def test_tensor_memory_keeps_what_a_warp_stores():
    assert stored_and_loaded(stored=True, loaded=True) == (True, set())


def test_a_store_without_wait_is_not_there_yet():
    right, names = stored_and_loaded(stored=False, loaded=True)
    assert not right
    assert names == {"tmem-uninitialised", "tmem-race"}


def test_a_register_read_before_its_load_was_waited_for_is_a_warning():
    # ptxas gives whoever reads the registers of an LDTM its scoreboard to wait for, so that Triton
    # may convert them before its tcgen05.wait::ld.
    right, result = store_and_load(stored=True, loaded=False)
    assert right
    assert found(result) == set()
    assert [warning.name for warning in result.warnings] == ["early-tmem-read"]


HALVES = """
mov.u32 %r0, bar;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;
bar.warp.sync -1;
ld.shared.b32 %r1, [%r0];
mov.b32 %r9, 7;
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r1], {%r9, %r9, %r9, %r9, %r9, %r9, %r9, %r9};
tcgen05.wait::st.sync.aligned;
mul.lo.u32 %r2, %t, 10; add.u32 %r3, %r2, 1;
tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%r1+1], 4, {%r2, %r3};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%r4, %r5}, [%r1+1], 4;
tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%r1];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %d0, %t, 40; add.u64 %d1, %out, %d0;
st.global.v2.b32 [%d1], {%r4, %r5}; st.global.v2.b32 [%d1+8], {%r10, %r11};
st.global.v2.b32 [%d1+16], {%r12, %r13}; st.global.v2.b32 [%d1+24], {%r14, %r15};
st.global.v2.b32 [%d1+32], {%r16, %r17};
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
"""


def test_the_halves_of_16x32bx2_are_columns_apart_in_the_same_lanes():
    out = np.zeros((32, 10), np.uint32)
    assert found(run(ptx(HALVES, ["out"], shared=SHARED), {"out": out})) == set()
    stored = np.arange(32)[:, None] * 10 + np.arange(2)
    want = np.full((32, 8), 7)
    want[:16, 1:3], want[:16, 5:7] = stored[:16], stored[16:]
    assert (out[:, :2] == stored).all()
    assert (out[:, 2:] == want).all()


ALLOCATE = "mov.u32 %r0, bar; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], {};"


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["48"], {"tmem-allocation"}),
        (["32", "64"], {"tmem-allocation", "tmem-not-freed"}),
        (["512", "512"], {"hang"}),
        (["256"], {"tmem-not-freed"}),
    ],
)
def test_allocations_keep_to_the_rules(columns, names):
    text = "\n".join(ALLOCATE.format(count) for count in columns)
    assert found(run(ptx(text, shared=SHARED), {})) >= names


def test_no_allocation_after_the_permit_is_given_up():
    give_up = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    text = give_up + ALLOCATE.format("32")
    assert "tmem-allocation" in found(run(ptx(text, shared=SHARED), {}))


# 64 rows of A from tensor memory: a quarter's rows lie in 16 of its 32 lanes, from LANE on. Each
# thread stores its row of A; B is the identity, so that D is A.
ROWS_64 = """
setp.ge.u32 %p0, %t, 32;
mov.u32 %r0, b; mov.u32 %r2, bar;
@%p0 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2+8], 128;
ALLOCATED:
setp.ge.u32 %p1, %t, 64; @%p1 bra FILLED;
shl.b32 %r3, %t, 7; add.u32 %r3, %r3, %r0; mul.wide.u32 %d0, %t, 128; add.u64 %d1, %y, %d0;
and.b32 %r4, %t, 7; mov.u32 %r5, 0;
COPY:
xor.b32 %r6, %r5, %r4; shl.b32 %r7, %r6, 4; add.u32 %r7, %r7, %r3;
ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%d1]; st.shared.v4.b32 [%r7], {%r10, %r11, %r12, %r13};
add.u64 %d1, %d1, 16; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 8; @%p2 bra COPY;
FILLED:
setp.ne.u32 %p3, %t, 0; @%p3 bra READY; mbarrier.init.shared::cta.b64 [%r2], 1; READY:
fence.proxy.async.shared::cta; bar.sync 0;
ld.shared.b32 %r20, [%r2+8];
and.b32 %r30, %t, 96; shl.b32 %r31, %r30, 16; add.u32 %r31, %r31, %r20; add.u32 %r31, %r31, LANE;
shr.u32 %r8, %t, 5; shl.b32 %r8, %r8, 4; and.b32 %r9, %t, 15; add.u32 %r8, %r8, %r9;
mul.wide.u32 %d0, %r8, 128; add.u64 %d2, %x, %d0; mov.u32 %r32, 0;
and.b32 %r9, %t, 16; mul.wide.u32 %d3, %r9, 4; add.u64 %d2, %d2, %d3;
ld.global.v4.b32 {%r40, %r41, %r42, %r43}, [%d2];
ld.global.v4.b32 {%r44, %r45, %r46, %r47}, [%d2+16];
ld.global.v4.b32 {%r48, %r49, %r50, %r51}, [%d2+32];
ld.global.v4.b32 {%r52, %r53, %r54, %r55}, [%d2+48];
tcgen05.st.sync.aligned.16x32bx2.x16.b32 [%r31], 16, {%r40, %r41, %r42, %r43, %r44, %r45, %r46,
    %r47, %r48, %r49, %r50, %r51, %r52, %r53, %r54, %r55};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
bar.sync 0;
@%p3 bra WAIT;
tcgen05.fence::after_thread_sync;
shr.u32 %r22, %r0, 4; cvt.u64.u32 %d11, %r22; or.b64 %d11, %d11, DESCRIPTOR;
add.u64 %d12, %d11, 2; add.u64 %d13, %d11, 4; add.u64 %d14, %d11, 6;
add.u32 %r23, %r20, LANE; mov.u32 %r24, SHAPE; setp.eq.u32 %p4, %t, 0;
tcgen05.mma.cta_group::1.kind::f16 [%r23+32], [%r23], %d11, %r24, !%p4;
tcgen05.mma.cta_group::1.kind::f16 [%r23+32], [%r23+8], %d12, %r24, %p4;
tcgen05.mma.cta_group::1.kind::f16 [%r23+32], [%r23+16], %d13, %r24, %p4;
tcgen05.mma.cta_group::1.kind::f16 [%r23+32], [%r23+24], %d14, %r24, %p4;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r2], 0;
@!%p5 bra WAIT;
tcgen05.fence::after_thread_sync;
tcgen05.ld.sync.aligned.16x32bx2.x4.b32 {%r40, %r41, %r42, %r43}, [%r31+32], 8;
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %d0, %t, 16; add.u64 %d1, %out, %d0;
st.global.v4.b32 [%d1], {%r40, %r41, %r42, %r43};
bar.sync 0;
@%p0 bra OUT; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 128; OUT:
"""


@pytest.mark.parametrize("lane", [0, 16])
@pytest.mark.parametrize("schedule", [LATE, EARLY], ids=str)
def test_64_rows_of_a_lie_in_the_half_of_each_quarter_that_the_address_names(lane, schedule):
    rng = np.random.default_rng(lane)
    x = rng.integers(-8, 9, (64, 64)).astype(np.float16)
    y = rng.integers(-8, 9, (64, 64)).astype(np.float16)
    shape = 1 << 4 | 64 >> 3 << 17 | 64 >> 4 << 24
    body = ROWS_64.replace("DESCRIPTOR", str(DESCRIPTOR)).replace("SHAPE", str(shape))
    text = ptx(
        body.replace("LANE", str(lane << 16)),
        ["x", "y", "out"],
        shared=".shared .align 1024 .b8 b[8192]; .shared .align 8 .b8 bar[16];",
    )
    out = np.zeros((4, 2, 16, 4), np.float32)
    result = run(text, {"x": x, "y": y, "out": out}, threads=128, schedule=schedule)
    assert found(result) == set()
    want = (x.astype(np.float64) @ y.astype(np.float64).T).reshape(4, 16, 64)
    assert (out[:, 0] == want[..., :4]).all()
    assert (out[:, 1] == want[..., 8:12]).all()


def test_a_warp_that_leaves_out_its_quarter_reaches_its_own_lanes_and_is_warned():
    text = """
    mov.u32 %r0, bar; setp.ge.u32 %p0, %t, 32;
    @%p0 bra ALLOCATED;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;
    ALLOCATED: bar.sync 0;
    ld.shared.b32 %r1, [%r0];
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};
    tcgen05.wait::st.sync.aligned;
    and.b32 %r3, %t, 96; shl.b32 %r3, %r3, 16; add.u32 %r3, %r3, %r1;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r3];
    tcgen05.wait::ld.sync.aligned;
    mul.wide.u32 %d0, %t, 4; add.u64 %d1, %out, %d0; st.global.b32 [%d1], %r2;
    bar.sync 0;
    @%p0 bra OUT;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
    OUT:
    """
    out = np.zeros(128, np.uint32)
    result = run(ptx(text, ["out"], shared=SHARED), {"out": out}, threads=128)
    assert (out == np.arange(128)).all()
    assert found(result) == set()
    assert [warning.name for warning in result.warnings] == ["tmem-quarter"]
