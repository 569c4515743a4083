"""What a finding says of a hang: who waits, who is missing, and what would help."""

from __future__ import annotations

import numpy as np
from harness import found, ptx, run

from warpsim import Result
from warpsim.launch import Residency

LOCKS = ".shared .align 8 .b32 s[4];"
TAKE = "{0}: atom.shared.cas.b32 %r3, [%r1+{1}], 0, 1; setp.ne.u32 %p1, %r3, 0; @%p1 bra {0};"
SETUP = "mov.u32 %r1, s; setp.lt.u32 %p2, %t, 32; setp.eq.u32 %p0, %t, 0;"
CLEAR = "@%p0 st.shared.b64 [%r1], 0; @%p0 st.shared.b64 [%r1+8], 0; bar.sync 0;"
ONE = "and.b32 %r2, %t, 31; setp.ne.u32 %p3, %r2, 0; @%p3 bra END;"


def hang(body: str, threads: int = 64) -> str:
    """What is said of a kernel that hangs."""
    out = np.zeros(threads, np.uint32)
    result = run(ptx(SETUP + body, ["out"], shared=LOCKS), {"out": out}, threads=threads)
    (answer,) = (finding.sentence for finding in result.findings if finding.name == "hang")
    return answer


def test_two_locks_in_opposite_orders_name_who_holds_each() -> None:
    result = hang(
        CLEAR
        + ONE
        + "@!%p2 bra SECOND;"
        + TAKE.format("A", 0)
        + "bar.sync 1, 2;"
        + TAKE.format("B", 4)
        + "bra END; SECOND:"
        + TAKE.format("C", 4)
        + "bar.sync 1, 2;"
        + TAKE.format("D", 0)
        + "END:"
    )
    assert "Each holds what another waits for" in result
    assert "s[0]" in result
    assert "s[1]" in result or "s[4]" in result


def test_a_barrier_names_the_warp_that_has_not_come_and_where_it_stands() -> None:
    result = hang("@%p2 bra END; bar.sync 1, 64; END: bar.sync 0;")
    assert "missing: warp 0 (at " in result
    assert "All threads that a barrier counts have to come to the same one." in result


def test_lanes_do_not_pass_a_barrier_without_one_that_waits_before_it() -> None:
    body = """
    mov.u32 %r1, s; setp.ne.u32 %p0, %t, 0; @%p0 bra MEET;
    mbarrier.init.shared::cta.b64 [%r1], 1;
    W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0; @!%p1 bra W;
    MEET: bar.sync 0;
    """
    result = run(ptx(body, shared=LOCKS), {}, threads=64)
    assert found(result) == {"hang"}
    assert any(x.waits_for.startswith("lane 0 of its own warp") for x in result.hang)


def test_a_flag_that_nobody_writes_is_named_with_its_value() -> None:
    result = hang(
        CLEAR + "W: ld.volatile.shared.b32 %r3, [%r1+8]; setp.eq.u32 %p1, %r3, 0; @%p1 bra W;"
    )
    assert "to be other than 0, polled by thread (0, 0, 0)" in result
    assert "last written by thread (0, 0, 0)" in result


def test_lanes_that_poll_do_not_keep_off_the_lane_of_their_own_warp_they_wait_for() -> None:
    """It reads a flag four hundred times too before it sets theirs."""
    body = (
        "@%p0 bra SLOW;"
        "W: ld.volatile.shared.b32 %r3, [%r1+8]; setp.eq.u32 %p1, %r3, 0; @%p1 bra W; bra END;"
        "SLOW: mov.u32 %r2, 0;"
        "L: ld.volatile.shared.b32 %r3, [%r1+4]; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 400;"
        "@%p1 bra L; st.volatile.shared.b32 [%r1+8], 1; END:"
    )
    out = np.zeros(32, np.uint32)
    result = run(ptx(SETUP + CLEAR + body, ["out"], shared=LOCKS), {"out": out}, threads=32)
    assert "hang" not in {finding.name for finding in result.findings}


# ---- which CTAs are resident ---------------------------------------------------------------------

H200 = Residency(sms=132, warps_per_sm=64, ctas_per_sm=32, smem_per_sm_bytes=228 << 10)
GRID_BARRIER = """
mov.u32 %r5, %nctaid.x; setp.ne.u32 %p0, %t, 0; bar.sync 0;
@%p0 bra JOIN;
atom.release.gpu.global.add.u32 %r6, [%count], 1;
W: ld.acquire.gpu.global.u32 %r7, [%count]; setp.ne.u32 %p1, %r7, %r5; @%p1 bra W;
JOIN: bar.sync 0;
"""


def wait_for_all(ctas: int, *, threads: int, dynamic: int = 0) -> Result:
    """A grid whose CTAs all wait for each other, on an H200."""
    count = {"count": np.zeros(1, np.uint32)}
    text = ptx(GRID_BARRIER, ["count"])
    return run(text, count, grid=ctas, threads=threads, dynamic=dynamic, card=H200)


def test_a_grid_that_the_card_holds_may_wait_for_itself() -> None:
    assert found(wait_for_all(132, threads=512)) == set()  # 2,112 warps


def test_a_grid_that_does_not_fit_hangs() -> None:
    assert found(wait_for_all(132, threads=64, dynamic=200 << 10)) == set()
    (hang,) = wait_for_all(133, threads=64, dynamic=200 << 10).findings
    assert hang.name == "hang"
    assert "132 of 133 CTAs are resident at once" in hang.sentence
