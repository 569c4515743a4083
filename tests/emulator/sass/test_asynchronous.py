"""mbarriers, copies and matrices that land late, in the SASS of small kernels."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy as np
import pytest
from harness import assemble_all, found, ptx, run, run_sass
from hypothesis import given
from hypothesis import strategies as st

from warpsim import Module, Schedule, UnsupportedInstruction, load_cubin
from warpsim import run as launch_module
from warpsim.front.sass.classes import classify
from warpsim.launch import Launch, Pointer
from warpsim.machine.core.mbarrier_words import counts, word
from warpsim.machine.wave.mbarrier import MAX_COUNT

SHARED = ".shared .align 1024 .b8 s[4096];"
COPY = """
mov.u32 %r0, s; setp.ne.u32 %p0, %t, 0; @%p0 bra READY;
mbarrier.init.shared::cta.b64 [%r0], 1; fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r0], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0+1024], [%a], 128, [%r0];
READY: bar.sync 0;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r0], 0; @!%p1 bra WAIT;
shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %r0; ld.shared.u32 %r2, [%r1+1024]; add.u32 %r2, %r2, 1;
st.shared.u32 [%r1+2048], %r2; fence.proxy.async.shared::cta; bar.sync 0; @%p0 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%out], [%r0+2048], 128;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
DONE:
"""
OWN = """
mov.u32 %r0, s; mad.lo.u32 %r0, %t, 8, %r0; and.b32 %r1, %t, 3; add.u32 %r1, %r1, 1;
mbarrier.init.shared::cta.b64 [%r0], %r1;
mbarrier.arrive.shared::cta.b64 %d5, [%r0]; mbarrier.pending_count.b64 %r2, %d5;
mbarrier.test_wait.shared::cta.b64 %p0, [%r0], %d5;
selp.u32 %r3, 100, 0, %p0; add.u32 %r2, %r2, %r3;
mad.wide.u32 %d0, %t, 4, %out; st.global.u32 [%d0], %r2;
"""
_FLOATS = "".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(4))
_MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d1, %d2"
PRODUCTS = f""".reg .f32 %f<4>; {_FLOATS}
mov.u32 %r0, s; mad.lo.u32 %r1, %t, 32, %r0; mad.wide.u32 %d0, %t, 32, %a;
ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%d0]; st.shared.v4.u32 [%r1], {{%r2, %r3, %r4, %r5}};
ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%d0+16];
st.shared.v4.u32 [%r1+16], {{%r2, %r3, %r4, %r5}};
fence.proxy.async.shared::cta; bar.sync 0;
shr.u32 %r6, %r0, 4; and.b32 %r6, %r6, 0x3fff; cvt.u64.u32 %d1, %r6;
or.b64 %d1, %d1, 0x0000001000080000; add.u64 %d2, %d1, 128; mov.pred %p0, 1;
wgmma.fence.sync.aligned;
{_MMA}, %p0, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;
add.u64 %d1, %d1, 64; add.u64 %d2, %d2, 16; mov.pred %p0, 0;
{_MMA}, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %d0, %t, 16, %out; st.global.v4.f32 [%d0], {{%f0, %f1, %f2, %f3}};
"""
NOT_AWAITED = re.sub("WAIT: .*? bra WAIT;", "", COPY, flags=re.S)
BODIES = (COPY, NOT_AWAITED, OWN, PRODUCTS)


@functools.cache
def text(body: str, target: str = "sm_90a") -> str:
    return ptx(body, ["a", "out"], target=target, shared=SHARED)


@functools.cache
def _assembled(bodies: Sequence[str], target: str) -> dict[str, tuple[bytes, str]]:
    made = assemble_all([text(body, target) for body in bodies], target)
    return dict(zip(bodies, made, strict=True))


def assembled(body: str, target: str = "sm_90a") -> tuple[bytes, str]:
    return _assembled(BODIES if target == "sm_90a" else (body,), target)[body]


@functools.cache
def module(body: str, target: str = "sm_90a") -> Module:
    return load_cubin(*assembled(body, target))


def executed(
    body: str,
    arrays: dict[str, np.ndarray],
    threads: int,
    schedule: Schedule,
    target: str = "sm_90a",
) -> set[str]:
    """Runs the SASS: what was found."""
    arguments = tuple(Pointer(array=name) for name in arrays)
    launch = Launch(entry="k", grid=(1, 1, 1), block=(threads, 1, 1), arguments=arguments)
    return found(launch_module(module(body, target), launch, arrays, schedule=schedule))


@pytest.mark.parametrize("asynchrony", ["early", "late"])
def test_bulk_copies_arrive_when_their_mbarrier_and_their_group_say_so(asynchrony):
    arrays = {"a": np.arange(32, dtype=np.uint32), "out": np.zeros(32, np.uint32)}
    schedule = Schedule(seed=1, asynchrony=asynchrony)
    assert executed(COPY, arrays, 32, schedule) == set()
    assert arrays["out"].tolist() == [*range(1, 33)]


def test_a_kernel_that_does_not_wait_for_its_copy_reads_what_was_there_before():
    arrays = {"a": np.arange(32, dtype=np.uint32), "out": np.zeros(32, np.uint32)}
    executed(NOT_AWAITED, arrays, 32, Schedule(seed=1, asynchrony="late"))
    assert arrays["out"].tolist() != [*range(1, 33)]


@pytest.mark.parametrize(("target", "stores"), [("sm_90a", False), ("sm_100a", True)])
def test_a_state_says_how_many_arrivals_are_pending_and_whether_its_phase_is_over(target, stores):
    arrays = {"a": np.zeros(1, np.uint32), "out": np.zeros(32, np.uint32)}
    assert ("STS.64" in assembled(OWN, target)[1]) == stores  # ptxas initialises some by a store
    assert executed(OWN, arrays, 32, Schedule(seed=1), target) == set()
    pending = np.arange(32) % 4 + 1
    assert arrays["out"].tolist() == (pending + 100 * (pending == 1)).tolist()


def products() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.normal(size=2048).astype(np.float16).view(np.uint16)
    return {"a": a, "out": np.zeros(512, np.uint32)}


def test_registers_that_a_warp_changes_after_it_has_issued_a_wgmma_do_not_change_the_product():
    wanted = products()
    run(text(PRODUCTS), wanted, threads=128, schedule=Schedule(seed=0))
    for seed in (1, 7):
        ptx_, sass = products(), products()
        schedule = Schedule(seed=seed, asynchrony="late")
        assert not run(text(PRODUCTS), ptx_, threads=128, schedule=schedule).findings
        assert not executed(PRODUCTS, sass, 128, schedule)
        assert (ptx_["out"] == wanted["out"]).all()
        assert (sass["out"] == wanted["out"]).all()


@given(st.integers(1, MAX_COUNT))
def test_the_word_of_a_new_mbarrier_says_how_many_arrivals_it_expects(count):
    words = np.array([word(0, count, 0, count)], np.uint64)
    assert counts(words).tolist() == [count]


@given(st.integers(2, MAX_COUNT), st.integers(1, MAX_COUNT), st.integers(0, 3))
def test_a_word_with_arrivals_or_another_phase_is_no_new_mbarrier_s(count, arrived, phase):
    pending = max(1, count - arrived)
    used = word(phase, pending, 0, count)
    fresh = pending == count and phase % 2 == 0
    assert (counts(np.array([used], np.uint64)).tolist() == [count]) == fresh


def refusal(body: str, old: str, new: str) -> str:
    """The sentence that refuses a cubin whose listing has `new` in place of `old`."""
    cubin, listing = assembled(body)
    changed = re.sub(old, new, listing, count=1)
    assert changed != listing
    with pytest.raises(UnsupportedInstruction) as refused:
        load_cubin(cubin, changed)
    return str(refused.value)


@pytest.mark.parametrize(
    ("body", "old", "new", "why"),
    [
        (COPY, r"SYNCS.EXCH.64 URZ", "SYNCS.EXCH.64 UR9", "gives a result"),
        (COPY, r"UBLKCP.S.G \[UR(\d+)\]", r"UBLKCP.S.G [UR\1+0x10]", "is not covered"),
        (COPY, r"SYNCS.ARRIVE.TRANS64 ", "SYNCS.ARRIVE.TRANS64.A7T0 ", "not covered by the"),
        (PRODUCTS, r"(HGMMA\S+) R24, (.*), R24", r"\1 R24, \2, R28", "adds to other registers"),
        (PRODUCTS, r"DEPBAR.LE gsb0", "DEPBAR.LE gsb1", "waits for a group"),
    ],
)
def test_a_form_that_is_not_modelled_is_refused_when_the_cubin_is_loaded(body, old, new, why):
    assert why in refusal(body, old, new)


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("UBLKCP.S.G.MULTICAST", "tma load"),
        ("UBLKCP.G.S", "tma store"),
        ("UBLKCP.S.S", "dshared copy"),
        ("UTMAREDG.2D.ADD", "tma reduction"),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT", "mbarrier wait"),
        ("SYNCS.ARRIVE.TRANS64.A1T0", "mbarrier"),
        ("QGMMA.64x192x32.F32.E4M3.E4M3", "wgmma"),
    ],
)
def test_an_opcode_counts_in_the_class_of_what_it_does(opcode, kind):
    assert classify(opcode) == kind


def test_an_mbarrier_that_one_thread_initialises_is_initialised_once() -> None:
    # ptxas lets all lanes of the warp execute it, as its address is the warp's.
    body = """
    mov.u32 %r1, bar; setp.ne.u32 %p0, %t, 0;
    @%p0 bra READY;
    mbarrier.init.shared::cta.b64 [%r1], 32;
    READY: bar.sync 0;
    mbarrier.arrive.shared::cta.b64 _, [%r1];
    """
    text = ptx(body, shared=".shared .align 8 .b8 bar[8];", target="sm_90a")
    result = run_sass(text, "sm_90a", {})
    assert (result.findings, result.warnings) == ((), ())
