"""Modelled cycles of tcgen05 on a B200, beside those that others measured and published."""

from __future__ import annotations

import pytest
from small import B200, modelled_each

SHARED = ".shared .align 1024 .b8 a[32768]; .shared .align 8 .b8 bar[16];"
START = """
mov.u32 %r0, a; mov.u32 %r2, bar; setp.ne.u32 %p2, %t, 0;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2+8], 256;
@%p2 bra INITIALISED; mbarrier.init.shared::cta.b64 [%r2], 1;
INITIALISED: bar.sync 0; ld.shared.b32 %r20, [%r2+8];
"""
# Both operands at the same place, stride 1024, 128-byte swizzle; D f32, M = 128.
MULTIPLY = f"""
@%p2 bra WAIT;
shr.u32 %r21, %r0, 4; cvt.u64.u32 %d10, %r21; or.b64 %d10, %d10, {64 << 32 | 1 << 46 | 2 << 61};
PRODUCTS
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r2], 0; @!%p5 bra WAIT;
"""
END = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 256;"


def added(first: tuple[int, int], second: tuple[int, int]) -> float:
    """The cycles that the second takes more than the first: columns of a product, and products."""
    bodies = []
    for columns, count in (first, second):
        shape = 1 << 4 | columns >> 3 << 17 | 128 >> 4 << 24
        product = f"tcgen05.mma.cta_group::1.kind::f16 [%r20], %d10, %d10, {shape}, %p2;"
        bodies.append(START + MULTIPLY.replace("PRODUCTS", count * product) + END)
    less, more = modelled_each(bodies, shared=SHARED, chip=B200)
    return more.cycles - less.cycles


@pytest.mark.parametrize(("columns", "cycles"), [(64, 48), (128, 64), (256, 128)])
def test_a_product_takes_its_columns_or_what_shared_memory_needs_for_its_operands(
    columns: int, cycles: int
):
    assert added((columns, 8), (columns, 24)) / 16 == pytest.approx(cycles, rel=0.02)


def test_a_commit_is_seen_the_published_latency_after_its_product():
    # umma_latency: 264 cycles for 128 x 256, both operands in shared memory.
    assert added((64, 1), (256, 1)) == pytest.approx(128 - 48, abs=2)


def test_loads_of_tensor_memory_take_their_latency_one_after_the_other():
    load = """tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r40, %r41, %r42, %r43}, [%r20];
    tcgen05.wait::ld.sync.aligned; and.b32 %r40, %r40, %r44; add.u32 %r20, %r20, %r40;"""
    start, end = START + "ld.global.u32 %r44, [%out];", "st.global.u32 [%out], %r20;" + END
    bodies = [start + count * load + end for count in (4, 12)]
    few, many = modelled_each(bodies, shared=SHARED, chip=B200)
    assert (many.cycles - few.cycles) / 8 > B200["tmem_latency"]


def test_a_chip_without_tensor_memory_has_no_figures_of_it():
    assert B200.optional("tmem_latency") > 0
    assert B200.optional("gmma_tail") == 0
