"""CTAs of a cluster that use each other's shared memory: not before they start, nor after they end.

All is found from what orders what, whatever the schedule happens to do.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness import LATE, found, ptx, run

from warpsim import Schedule

SHARED = ".shared .align 16 .b8 s[512];"
ARRIVE, WAIT = "barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"
SYNC = ARRIVE + WAIT
PEER = """
mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2;
mov.u32 %r3, %cluster_ctarank; xor.b32 %r3, %r3, 1;
mapa.shared::cluster.u32 %r4, %r1, %r3;
"""
READ = "ld.shared::cluster.u32 %r5, [%r4];"


def names(body: str, schedule: Schedule = LATE) -> set[str]:
    text = ptx(PEER + body, shared=SHARED, target="sm_90a")
    return found(run(text, {}, grid=2, cluster=2, schedule=schedule))


@pytest.mark.parametrize("seed", range(3))
def test_a_cta_ends_after_its_neighbour_has_read(seed: int) -> None:
    body, schedule = "st.shared.u32 [%r1], %t;" + SYNC + READ, Schedule(seed=seed)
    assert names(body + SYNC, schedule) == set()
    assert names(body, schedule) == {"remote-cta-exited"}


def test_the_use_that_a_cta_does_not_wait_for_is_named() -> None:
    body = f"st.shared.u32 [%r1], %t; {SYNC}\n{READ}\nst.shared.u32 [%r1], %r5;"
    text = ptx(PEER + body, shared=SHARED, target="sm_90a")
    finding, *_ = run(text, {}, grid=2, cluster=2, schedule=LATE).findings
    assert text.splitlines()[finding.line - 1] == READ


def test_the_last_barrier_needs_no_release() -> None:
    relaxed = "barrier.cluster.arrive.relaxed.aligned;" + WAIT
    assert names("st.shared.u32 [%r1], %t;" + SYNC + READ + relaxed) == set()


@pytest.mark.parametrize("seed", range(3))
def test_a_cta_is_used_once_it_has_started(seed: int) -> None:
    store = "st.shared::cluster.u32 [%r4], %t;"
    assert names(SYNC + store + SYNC, Schedule(seed=seed)) == set()
    assert names(store + SYNC, Schedule(seed=seed)) == {"remote-cta-not-started"}


def test_arrivals_and_waits_take_turns() -> None:
    assert names(SYNC + SYNC) == set()
    assert names(ARRIVE + ARRIVE + WAIT) == {"over-arrival"}
    assert names(SYNC + WAIT) == {"cluster-barrier"}


SEND = """
mov.u32 %r6, s; add.u32 %r6, %r6, 128; setp.ne.u32 %p0, %t, 0;
@%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r6], 1;
mbarrier.init.shared::cta.b64 [%r6+8], 32;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], BYTES;
READY: bar.warp.sync -1;
SYNC
mapa.shared::cluster.u32 %r7, %r6, SIGNALLED;
BEFORE
st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], %t, [%r7];
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r6], 0; @!%p1 bra W;
AFTER
SYNC
"""


def sent(
    size: int = 128,
    signalled: str = "%r3",
    before: str = "",
    after: str = "ld.shared.u32 %r8, [%r1];",
) -> set[str]:
    body = SEND.replace("BYTES", str(size)).replace("SIGNALLED", signalled)
    return names(body.replace("BEFORE", before).replace("AFTER", after).replace("SYNC", SYNC))


def test_an_asynchronous_store_arrives_with_its_signal() -> None:
    assert sent() == set()


def test_an_asynchronous_store_signals_where_it_stores() -> None:
    assert "mbarrier-misuse" in sent(signalled="%cluster_ctarank")


def test_an_asynchronous_store_announces_no_other() -> None:
    other = "st.shared::cluster.u32 [%r4+144], %t;"
    read = "ld.shared.u32 %r8, [%r1+144];"
    assert "race" in sent(before=other, after=read)


def test_bytes_that_nobody_expected_are_found_when_the_cta_ends() -> None:
    assert "transaction-bytes" in sent(112)


def test_global_memory_orders_neighbours_too() -> None:
    body = """
    st.shared.u32 [%r1], %t;
    SYNC
    ld.shared::cluster.u32 %r5, [%r4];
    setp.ne.u32 %p0, %r3, 0; @%p0 bra WAITS;
    fence.acq_rel.gpu; setp.ne.u32 %p1, %t, 0;
    @!%p1 st.relaxed.gpu.u32 [%flag], 1;
    bra END;
    WAITS: ld.acquire.gpu.u32 %r8, [%flag]; setp.eq.u32 %p2, %r8, 0; @%p2 bra WAITS;
    END: SYNC
    """
    text = ptx(PEER + body.replace("SYNC", SYNC), ["flag"], shared=SHARED, target="sm_90a")
    result = run(text, {"flag": np.zeros(1, np.uint32)}, grid=2, cluster=2)
    assert found(result) == set()


BARRIER = """
add.u32 %r7, %r1, 256; mov.u32 %r8, s; add.u32 %r8, %r8, 256; setp.ne.u32 %p0, %t, 0;
mapa.shared::cluster.u32 %r9, %r8, %r3; mov.u32 %r10, s;
@%p0 bra READY;
mbarrier.init.shared.b64 [%r8], 1; fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared.b64 _, [%r8], BYTES;
READY:
"""
ARRIVED = "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r8], 0; @!%p1 bra WAIT;" + SYNC
SENT = {
    "st.async": (
        128,
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], %t, [%r9];",
    ),
    "red.async": (
        128,
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], "
        "%t, [%r9];",
    ),
    "multicast": (
        32,
        "@!%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%r10], [%in], 16, [%r8], 3;",
    ),
}


@pytest.mark.parametrize("how", SENT)
def test_what_signals_a_barrier_elsewhere_comes_after_its_init(how: str) -> None:
    size, send = SENT[how]

    def names_of(order: str) -> set[str]:
        body = PEER + BARRIER.replace("BYTES", str(size)) + order + send + ARRIVED
        text = ptx(body, ["in"], shared=SHARED, target="sm_90a")
        return found(run(text, {"in": np.zeros(4, np.uint32)}, grid=2, cluster=2))

    assert not names_of(SYNC) & {"mbarrier-misuse", "remote-cta-not-started"}
    assert {"mbarrier-misuse", "remote-cta-not-started"} <= names_of("bar.sync 0;")


# CTA 0 stores to CTA 1, and raises a flag there, which CTA 1 polls.
RAISED = """
mov.u32 %r8, s; add.u32 %r8, %r8, 256; mapa.shared::cluster.u32 %r9, %r8, 1;
setp.ne.u32 %p0, %t, 0; @!%p0 st.shared.u32 [%r8], 0;
{sync}
setp.eq.u32 %p1, %r3, 1; @!%p1 bra POLL;
@%p0 bra END;
st.shared::cluster.u32 [%r4], 7;
{raised} [%r9], 1;
bra END;
POLL: @%p0 bra END;
AGAIN: ld.acquire.cluster.shared.u32 %r5, [%r8]; setp.eq.u32 %p2, %r5, 0; @%p2 bra AGAIN;
ld.shared.u32 %r6, [%r1];
END: {sync}
"""


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("st.release.cluster.shared::cluster.u32", set()),
        ("fence.acq_rel.cluster; st.relaxed.cluster.shared::cluster.u32", set()),
        ("st.relaxed.cluster.shared::cluster.u32", {"race"}),
        ("st.release.cta.shared::cluster.u32", {"race"}),
    ],
)
def test_a_flag_in_another_cta_announces_what_is_visible_there(
    raised: str, expected: set[str]
) -> None:
    assert names(RAISED.format(sync=SYNC, raised=raised)) == expected
