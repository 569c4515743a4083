"""Words by which CTAs tell each other that data is there: scopes, caches, acquires."""

from __future__ import annotations

import numpy as np
import pytest
from harness import found, ptx, run

from warpsim import Result
from warpsim.launch import Residency

# CTA 0 writes a word and announces it; CTA 1 waits for the announcement and reads the word.
HANDOVER = """
mov.u32 %r0, %ctaid.x; setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %t, 0;
@%p0 bra READS;
@%p1 bra END;
st.global.u32 [%data], 7;
ANNOUNCE
bra END;
READS:
POLL: WAIT %r1, [%flag]; setp.eq.u32 %p2, %r1, 0; @%p2 bra POLL;
AFTER
LOAD %r2, [%data];
st.global.u32 [%out], %r2;
END:
"""
RELEASE, ACQUIRE = "st.release.gpu.u32 [%flag], 1;", "ld.acquire.gpu.u32"


def handover(
    announce: str = RELEASE, wait: str = ACQUIRE, after: str = "", load: str = "ld.global.u32"
) -> Result:
    body = HANDOVER.replace("ANNOUNCE", announce).replace("WAIT", wait)
    text = ptx(body.replace("AFTER", after).replace("LOAD", load), ["data", "flag", "out"])
    arrays = {name: np.zeros(1, np.uint32) for name in ("data", "flag", "out")}
    return run(text, arrays, grid=2, threads=32)


def warned(result: Result) -> set[str]:
    return {warning.name for warning in result.warnings}


def test_a_release_and_an_acquire_of_the_device_order_two_ctas() -> None:
    result = handover()
    assert (found(result), warned(result)) == (set(), set())


@pytest.mark.parametrize(
    ("announce", "wait"),
    [
        ("st.release.cta.u32 [%flag], 1;", ACQUIRE),
        (RELEASE, "ld.acquire.cta.u32"),
        ("membar.cta; st.relaxed.gpu.u32 [%flag], 1;", ACQUIRE),
    ],
)
def test_a_scope_of_the_cta_orders_nothing_between_ctas(announce: str, wait: str) -> None:
    assert found(handover(announce, wait)) == {"race"}


def test_a_cache_operator_orders_nothing() -> None:
    announce = "st.relaxed.gpu.u32 [%flag], 1;"
    assert found(handover(announce, "ld.relaxed.gpu.u32", load="ld.global.cg.u32")) == {"race"}


def test_a_flag_seen_by_a_relaxed_load_is_acquired_by_a_fence() -> None:
    relaxed = "ld.relaxed.gpu.u32"
    assert warned(handover(wait=relaxed, after="fence.acq_rel.gpu;")) == set()
    assert warned(handover(wait=relaxed)) == {"missing-acquire"}
    assert warned(handover(wait=relaxed, after="membar.cta;")) == {"missing-acquire"}


WORD = "mov.u64 %d2, 4294967303; st.volatile.global.u64 [%flag], %d2;"
HALVES = "st.volatile.global.u32 [%flag+4], 1; st.volatile.global.u32 [%flag], 7;"


@pytest.mark.parametrize(
    ("store", "load", "names"),
    [
        (WORD, "ld.volatile.global.u64 %d0, [%flag];", set()),
        (HALVES, "ld.volatile.global.u64 %d0, [%flag];", {"race"}),
        (HALVES, "ld.volatile.global.v2.u32 {%r1, %r2}, [%flag]; mov.b64 %d0, {%r1, %r2};", set()),
    ],
)
def test_a_poll_of_a_word_that_two_stores_make_may_see_one_of_them(
    store: str, load: str, names: set[str]
) -> None:
    body = f"""
    mov.u32 %r0, %ctaid.x; setp.ne.u32 %p0, %r0, 0;
    @%p0 bra POLL;
    {store} bra END;
    POLL: {load} shr.u64 %d1, %d0, 32; setp.eq.u64 %p2, %d1, 0; @%p2 bra POLL;
    st.global.u64 [%out], %d0;
    END:
    """
    arrays = {name: np.zeros(1, np.uint64) for name in ("flag", "out")}
    assert found(run(ptx(body, list(arrays)), arrays, grid=2, threads=1)) == names


def test_a_barrier_hands_over_what_one_thread_has_acquired() -> None:
    elected = HANDOVER.replace("READS:", "READS: @%p1 bra MEET;").replace(
        "AFTER", "FENCE MEET: bar.sync 0;"
    )
    for fence, names in (("membar.gl;", set()), ("", {"missing-acquire"})):
        body = elected.replace("ANNOUNCE", RELEASE).replace("WAIT", "ld.volatile.global.u32")
        text = ptx(
            body.replace("FENCE", fence).replace("LOAD", "ld.global.u32"), ["data", "flag", "out"]
        )
        arrays = {name: np.zeros(1, np.uint32) for name in ("data", "flag", "out")}
        result = run(text, arrays, grid=2, threads=64)
        assert (found(result), warned(result)) == (set(), names)


def counted(scope: str, place: str, *, grid: int, resident: int) -> set[str]:
    body = f"{place} atom.relaxed.{scope}.global.add.u32 %r2, [%d1], 1;"
    card = Residency(sms=1, warps_per_sm=resident, ctas_per_sm=resident, smem_per_sm_bytes=1 << 17)
    text = ptx("mov.u32 %r0, %ctaid.x;" + body, ["out"])
    return found(run(text, {"out": np.zeros(8, np.uint32)}, grid=grid, card=card))


@pytest.mark.parametrize("resident", [1, 2, 4])
def test_atomics_of_a_cta_count_for_no_other_cta(resident: int) -> None:
    one, own = "mov.u64 %d1, %out;", "mul.wide.u32 %d0, %r0, 4; add.u64 %d1, %out, %d0;"
    assert counted("gpu", one, grid=4, resident=resident) == set()
    assert counted("cta", own, grid=4, resident=resident) == set()
    assert counted("cta", one, grid=4, resident=resident) == {"race"}
