"""Modelled cycles of kernels whose time is known from one unit alone."""

from __future__ import annotations

import numpy as np
import pytest
from small import H200, cycles_per, modelled, modelled_each

from warpsim.launch import Launch
from warpsim.timing import chips, model
from warpsim.timing.errors import NotModelled
from warpsim.timing.replay import REASONS

STORE = "mad.wide.u32 %d1, %t, 4, %out; st.global.u32 [%d1], %r0;"
START = "mov.b32 %r1, %t; add.u32 %r0, %t, 7;"


def test_a_chain_of_multiply_adds_takes_four_cycles_each():
    assert cycles_per("mad.lo.u32 %r0, %r0, %r1, %r1;", START, STORE) == pytest.approx(4, abs=0.2)


def test_four_warps_of_a_sub_core_share_a_pipe_of_half_width():
    body = "mad.lo.u32 %r0, %r0, %r1, %r1;"
    assert cycles_per(body, START, STORE, threads=512) == pytest.approx(8, abs=0.4)


def test_a_chain_of_special_functions_takes_its_latency():
    body = "{.reg .f32 a; mov.b32 a, %r0; ex2.approx.ftz.f32 a, a; mov.b32 %r0, a;}"
    assert 17 <= cycles_per(body, START, STORE) <= 22


SHARED = ".shared .align 16 .b8 room[8192];"


def loads(stride: int) -> str:
    start = f"mov.u32 %r2, room; mad.lo.u32 %r2, %t, {4 * stride}, %r2; {START}"
    return start + "st.shared.u32 [%r2], %r0; bar.sync 0;"


@pytest.mark.parametrize(("stride", "wavefronts"), [(1, 1), (8, 8), (32, 32)])
def test_a_load_from_shared_memory_takes_a_cycle_per_wavefront(stride: int, wavefronts: int):
    more = "ld.volatile.shared.u32 %r3, [%r2]; add.u32 %r0, %r0, %r3;"
    before = loads(stride).replace("%t, 4", "%r4, 4").replace("%t, ", "%r4, ")
    lanes = "and.b32 %r4, %t, 31;" + before
    cycles = cycles_per(more, lanes, STORE, count=32, threads=512, shared=SHARED)
    assert cycles / 16 == pytest.approx(wavefronts, rel=0.1)


def test_what_all_lanes_load_takes_as_long_as_its_registers_do():
    """An H100 takes 2.08 cycles for it, and 1.03 for a word of each lane."""
    start = "mov.u32 %r2, room; st.shared.u32 [%r2], %t; bar.sync 0;" + START
    load = "ld.volatile.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2]; add.u32 %r0, %r0, %r3;"
    taken = cycles_per(load, start, STORE, count=32, threads=512, shared=SHARED)
    assert taken / 16 == pytest.approx(2.08, rel=0.1)


def test_a_pointer_chase_takes_the_latency_of_a_hit_in_l1():
    chain = np.zeros(1024, np.uint32)
    body = "mad.wide.u32 %d1, %r0, 4, %chain; ld.global.u32 %r0, [%d1];"
    taken = cycles_per(body, "mov.u32 %r0, 0;", STORE, arrays={"chain": chain})
    assert 39 <= taken <= 55


def test_who_finds_a_line_on_its_way_to_l1_waits_for_it():
    words = np.zeros(1024, np.uint32)
    load = "ld.global.u32 %r0, [%words];"
    one, four = (modelled(load + STORE, {"words": words}, threads=n).cycles for n in (32, 128))
    from_dram = (H200["l2_latency"] + H200["dram_latency"]) * H200.clock_hz / 1e9
    assert from_dram < one == pytest.approx(four, abs=20)


def test_what_an_sm_reads_again_comes_from_l2():
    words = np.zeros(1024, np.uint32)
    load = "mad.wide.u32 %d1, %r0, 4, %words; ld.relaxed.gpu.global.u32 %r0, [%d1];"
    bodies = ["mov.u32 %r0, 0;" + count * load + STORE for count in (1, 2)]
    once, twice = modelled_each(bodies, {"words": words})
    from_l2 = H200["l2_latency"] * H200.clock_hz / 1e9
    assert from_l2 < twice.cycles - once.cycles < from_l2 + 60


def test_a_copy_takes_the_time_of_its_bytes_from_memory():
    words = np.arange(1 << 22, dtype=np.uint32)
    body = (
        "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 256, %t; mad.wide.u32 %d1, %r1, 16, %source;"
        "mad.wide.u32 %d2, %r1, 16, %target; ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d1];"
        "st.global.v4.u32 [%d2], {%r2, %r3, %r4, %r5};"
    )
    arrays = {"source": words, "target": np.zeros_like(words)}
    whole = modelled(body, arrays, threads=256, grid=4096, resident=8)
    read = words.nbytes / H200["dram_rate"]
    assert read < whole.cycles / whole.clock_hz < 3 * read


def test_special_functions_that_two_warps_share_take_their_interval():
    body = "{.reg .f32 a; mov.b32 a, %r0; ex2.approx.ftz.f32 a, a; mov.b32 %r0, a;}"
    assert cycles_per(body, START, STORE, threads=1024) == pytest.approx(8 * 8, rel=0.05)


def test_a_parameter_can_be_altered_for_one_question():
    assert H200.altered(l1_latency=50)["l1_latency"] == 50
    assert H200["l1_latency"] != 50


def test_who_meets_at_a_barrier_waits_for_the_last():
    slow = "setp.ge.u32 %p0, %t, 32; @%p0 bra MEET;" + 64 * "mad.lo.u32 %r0, %r0, %r1, %r1;"
    body = START + slow + "MEET: bar.sync 0;" + STORE
    launch = modelled(body, threads=64)
    barrier = list(launch.replayed.reasons.sum(axis=0))[4]
    assert barrier > 200
    assert launch.cycles > 64 * 4


def test_stall_cycles_add_up_to_the_time_of_the_warps():
    launch = modelled(START + 64 * "mad.lo.u32 %r0, %r0, %r1, %r1;" + STORE, threads=128)
    total = int(launch.replayed.reasons.sum())
    assert total == pytest.approx(4 * launch.cycles, rel=0.1)


def test_a_grid_beyond_what_was_followed_is_extrapolated():
    body = START + 64 * "mad.lo.u32 %r0, %r0, %r1, %r1;" + STORE
    few = modelled(body, grid=132 * 12).cycles
    many = modelled(body, grid=132 * 24).cycles
    assert many == pytest.approx(2 * few, rel=0.1)


def test_ctas_go_to_sms_in_turn():
    launch = Launch(entry="k", grid=(1000, 1, 1), block=(32, 1, 1), arguments=())
    placement = model.place(launch, 2, H200, waves=2)
    assert placement.per_sm == 8
    assert len(placement.followed) == 4
    assert {number % 132 for number in placement.followed} == {66}


def test_clusters_stay_together():
    launch = Launch(entry="k", grid=(264, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1), arguments=())
    placement = model.place(launch, 1, H200)
    assert placement.followed[1] == placement.followed[0] + 1


def test_a_chip_without_parameters_is_refused_by_name():
    with pytest.raises(
        NotModelled, match="no time is modelled for B100: known are b200, h100, h200"
    ):
        chips.find("B100")


def test_every_parameter_has_a_source():
    for name in chips.names():
        for parameter in chips.find(name).parameters.values():
            assert parameter.source
            assert parameter.value >= 0 or "beyond a load" in parameter.unit


def test_ctas_that_never_end_have_no_time():
    body = "WAIT: ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p0, %r0, 0; @%p0 bra WAIT;"
    with pytest.raises(NotModelled, match="came to no end"):
        modelled(body)


def test_beside_a_wgmma_a_pipe_takes_as_much_longer_as_the_parameter_says():
    body = _two_warpgroups(PERMUTED, products=40)
    as_measured = modelled(body, threads=256, shared=OPERANDS).cycles
    undisturbed = H200.altered(beside_gmma=0, gmma_port=0)
    apart = modelled(body, threads=256, shared=OPERANDS, chip=undisturbed).cycles
    # 40 products take 1,280 cycles. A permutation takes two, and more while they last.
    beside = 1280 / (2 + H200["beside_gmma"])
    assert as_measured - apart == pytest.approx(2 * (PERMUTED - beside), rel=0.3)


def test_busy_tensor_cores_lower_the_clock_and_idle_ones_do_not():
    bodies = [_two_warpgroups(8, products=100), _two_warpgroups(PERMUTED, products=0)]
    busy, idle = modelled_each(bodies, threads=256, shared=OPERANDS)
    assert busy.tensor_duty > 0.6
    assert busy.clock_hz == H200.clock_hz - H200["throttling"] * (
        busy.tensor_duty - H200["free_duty"]
    )
    assert idle.clock_hz == H200.clock_hz


def test_beside_a_wgmma_one_instruction_reads_registers_at_a_time_whatever_its_pipe():
    body = _two_warpgroups(ADDED, products=40, instruction="add.f32 {0}, {0}, {0};")
    as_measured = modelled(body, threads=256, shared=OPERANDS).cycles
    no_port = H200.altered(gmma_port=0)
    apart = modelled(body, threads=256, shared=OPERANDS, chip=no_port).cycles
    # An addition has two pipes, and takes a cycle alone, two beside 40 products of 32 cycles each.
    beside = 1280 / 2 - 1280 / H200["gmma_port"]
    assert as_measured - apart == pytest.approx(beside, rel=0.2)


def test_four_warps_multiply_when_the_last_of_them_has_come():
    late = "setp.ge.u32 %p2, %t, 32; @%p2 bra MEET;"
    late += 256 * "mad.lo.u32 %r10, %r10, %r11, %r11;" + "st.global.u32 [%out], %r10; MEET:"
    launch = modelled(_two_warpgroups(0, products=4, late=late), threads=256, shared=OPERANDS)
    waited = launch.replayed.reasons.sum(axis=0)[REASONS.index("gmma")]
    assert waited == pytest.approx(3 * 256 * 4, rel=0.1)


def test_only_the_first_of_four_warps_waits_for_the_queue_of_the_tensor_cores():
    launch = modelled(_two_warpgroups(0, products=40), threads=256, shared=OPERANDS)
    waited = launch.replayed.reasons.sum(axis=0)[REASONS.index("gmma")]
    assert waited == pytest.approx((40 - H200["gmma_depth"]) * 32, rel=0.2)


def test_two_ctas_share_a_pipe_evenly():
    chains = "".join(f"mad.lo.u32 %r{i}, %r{i}, %t, %t;" for i in range(10, 18))
    kept = "".join(f"add.u32 %r0, %r0, %r{i};" for i in range(10, 18))
    body = "".join(f"add.u32 %r{i}, %t, {i};" for i in range(10, 18)) + 64 * chains + START + kept
    first, second, *_ = modelled(body + STORE, threads=128, grid=264, resident=2).replayed.ends
    assert second - first < 1.2 * H200["launch_interval"]


def test_bulk_loads_of_the_same_bytes_by_many_sms_cost_l2_one_read():
    same = COPIED.format(address="mov.u64 %d1, %words;")
    own = COPIED.format(
        address="mov.u32 %r5, %ctaid.x; mul.wide.u32 %d1, %r5, 32768; add.u64 %d1, %d1, %words;"
    )
    slow = H200.altered(l2_rate=H200["l2_rate"] / 4)
    at_full_rate, of_same, at_full_rate_own, of_own = (
        modelled(
            body, {"words": np.zeros(count, np.uint32)}, grid=132, shared=ROOM, chip=chip
        ).cycles
        for body, count in ((same, 8192), (own, 132 * 8192))
        for chip in (H200, slow)
    )
    assert of_same == pytest.approx(at_full_rate, rel=0.01)
    assert of_own > 1.3 * at_full_rate_own


def test_a_word_that_one_cta_adds_to_does_not_wait_for_those_of_others():
    own = "mov.u32 %r2, %ctaid.x; mad.wide.u32 %d1, %r2, 128, %sums;"
    all_of_them = "mov.u64 %d1, %sums;"
    sums = {"sums": np.zeros(132 * 2 * 32, np.float32)}
    add = ".reg .f32 %f0; mov.f32 %f0, 0f3F800000;" + 8 * "red.global.add.f32 [%d1], %f0;"
    bodies = [where + add for where in (own, all_of_them)]
    one, every = modelled_each(bodies, sums, threads=64, grid=264)
    assert every.cycles > 20 * one.cycles


def test_stores_of_many_lines_wait_for_the_queue_of_global_memory():
    lines = "mad.wide.u32 %d1, %t, 128, %words;" + 32 * "st.volatile.global.u32 [%d1], %r0;"
    launch = modelled(START + lines, {"words": np.zeros(128 * 32, np.uint32)}, threads=128)
    waited = dict(zip(REASONS, launch.replayed.reasons.sum(axis=0).tolist(), strict=True))
    assert waited["lg_throttle"] > 0.5 * sum(waited.values())
    assert waited["mio_throttle"] == 0


def test_loads_that_hit_take_longer_beside_a_wgmma():
    load = (
        "add.u32 %r18, {0}, %t; mad.wide.u32 %d2, %r18, 16, %words;"
        "ld.global.ca.v4.u32 {{{0}, %r18, %r19, %r20}}, [%d2];"
    )
    words = {"words": np.zeros(4096, np.uint32)}
    bodies = [_two_warpgroups(256, products=count, instruction=load) for count in (0, 100)]
    alone, beside = modelled_each(bodies, words, threads=256, shared=OPERANDS)
    assert beside.cycles - alone.cycles > 0.15 * 100 * 32


def test_small_bulk_copies_of_four_warps_do_not_wait_for_each_other():
    copies = """and.b32 %r4, %t, 31; setp.ne.u32 %p1, %r4, 0;
    mov.u32 %r1, landed; mov.u32 %r2, room; setp.eq.u32 %p2, %t, 0;
    @%p2 mbarrier.init.shared::cta.b64 [%r1], 1; bar.sync 0; @%p1 bra DONE;"""
    copy = """cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%words], 16,
    [%r1];"""
    one, four = (
        modelled(
            copies + 64 * copy + "DONE:",
            {"words": np.zeros(64, np.uint32)},
            threads=threads,
            shared=ROOM,
        ).cycles
        for threads in (32, 128)
    )
    assert one > 64 * H200["tma_interval"]
    assert four < 1.3 * one


ROOM = ".shared .align 128 .b8 room[32768]; .shared .align 8 .b64 landed;"
COPIED = """
    setp.ne.u32 %p1, %t, 0; @%p1 bra DONE;
    {address}
    mov.u32 %r1, landed; mov.u32 %r2, room;
    mbarrier.init.shared::cta.b64 [%r1], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 32768;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1], 32768, [%r1];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r1], 0;
    @!%p0 bra WAIT;
    DONE:
"""
ADDED = 2048
PERMUTED = 512
OPERANDS = ".shared .align 1024 .b8 operands[16384];"


def _two_warpgroups(
    count: int, products: int, instruction: str = "prmt.b32 {0}, {0}, %t, 0x1234;", late: str = ""
) -> str:
    """One runs `count` instructions in eight chains, by default those that permute bytes, the other
    multiplies m64n64k16 after what `late` says."""
    floats = ", ".join(f"%f{i}" for i in range(32))
    product = (
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        f"{{{floats}}}, %d1, %d1, 1, 1, 1, 0, 0;"
    )
    file = "%f" if ".f32" in instruction else "%r"
    permuted = "".join(f"mov.b32 %f{i}, %r{i};" for i in range(10, 18) if file == "%f")
    permuted += "".join(instruction.format(f"{file}{10 + i % 8}") for i in range(count))
    kept = "".join(f"add.u32 %r10, %r10, %r{i};" for i in range(11, 18))
    if file == "%f":
        kept = "".join(f"add.f32 %f10, %f10, %f{i};" for i in range(11, 18))
        kept += "mov.b32 %r10, %f10;"
    # The one that permutes would have the ALU to itself from the start: it begins after a product.
    begun = product + "wgmma.commit_group.sync.aligned; bar.arrive 1, 256;"
    multiplied = "wgmma.fence.sync.aligned;" + begun + product * (products - 1)
    multiplied += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    return f"""
        .reg .f32 %f<32>;
        {"".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(32))}
        {"".join(f"add.u32 %r{i}, %t, {i};" for i in range(10, 18))}
        mov.u32 %r1, operands; shr.u32 %r1, %r1, 4; cvt.u64.u32 %d1, %r1;
        or.b64 %d1, %d1, 0x4000004000010000;
        setp.lt.u32 %p1, %t, 128;
        @%p1 bra MULTIPLY;
        {"bar.sync 1, 256;" if products else ""} {permuted} {kept}
        st.global.u32 [%out], %r10;
        bra DONE;
        MULTIPLY: {late} {multiplied if products else ""}
        st.global.f32 [%out], %f1;
        DONE:
    """
