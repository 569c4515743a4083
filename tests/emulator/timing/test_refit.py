"""Parameters from what the microbenchmarks print, and those microbenchmarks in the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from small import H100, H200, cycles_per, modelled_each

from warpsim.timing import refit
from warpsim.timing.errors import NotModelled

DATA = Path(__file__).parents[2] / "data"
MEASURED, ON_H100 = (
    {line["name"]: line.get("value") for line in map(json.loads, path.read_text().splitlines())}
    for path in (DATA / "microbenchmarks-h200.jsonl", DATA / "microbenchmarks-h100.jsonl")
)


def lines(known: Mapping[str, float] = MEASURED, **others: float) -> list[str]:
    figures = {**known, **others}
    return [json.dumps({"name": name, "value": value}) for name, value in figures.items()]


def test_the_parameters_follow_from_the_figures_that_they_name():
    refitted = refit.refit(lines(), H200)
    assert len(refitted) == 21
    for item in refitted:
        assert item.refitted == pytest.approx(item.value, rel=0.05, abs=1), item.name


def test_so_do_those_of_an_h100():
    refitted = refit.refit(lines(ON_H100), H100)
    assert len(refitted) == 28
    for item in refitted:
        assert item.refitted == pytest.approx(item.value, rel=0.05, abs=1), item.name


def test_a_card_whose_cache_answers_later_has_a_larger_latency():
    slower = refit.refit(lines(chase_cg_8192KiB=386.89, bulk_hot_256=444), H200)
    values = {item.name: item.refitted for item in slower}
    assert values["l2_latency"] == pytest.approx(H200["l2_latency"] + 100 / 1.98, abs=0.1)
    assert values["tma_latency"] == pytest.approx(0, abs=1)


def test_what_was_not_printed_is_left_as_it_is():
    one = [line for line in lines() if "chain_lds" in line]
    assert [item.name for item in refit.refit(one, H200)] == ["shared_latency"]


def test_what_is_no_figure_is_passed_over():
    assert refit.refit(["", "CUDA", '{"name": "l2_read_48MiB", "value": inf}'], H200) == ()


def test_microbenchmarks_that_fail_say_why():
    with pytest.raises(NotModelled, match="no CUDA-capable device"):
        refit.refit(['{"error": "no CUDA-capable device is detected at line 514"}'], H200)


STORE = "mad.wide.u32 %d1, %t, 4, %out; st.global.u32 [%d1], %r0;"


@pytest.mark.parametrize(
    ("cached", "figure"), [("ca", "chase_ca_64KiB"), ("cg", "chase_cg_8192KiB")]
)
def test_a_modelled_pointer_chase_takes_as_long_as_the_card(cached: str, figure: str):
    chase = f"mad.wide.u32 %d1, %r0, 4, %chain; ld.global.{cached}.u32 %r0, [%d1];"
    chain = np.zeros(16, np.uint32)
    taken = cycles_per(chase, "mov.u32 %r0, 0;", STORE, arrays={"chain": chain}, count=128)
    assert taken == pytest.approx(MEASURED[figure], rel=0.03, abs=4)


def test_a_modelled_chain_through_shared_memory_takes_as_long_as_the_card():
    start = "mov.u32 %r0, room; st.shared.u32 [%r0], %r0; bar.sync 0;"
    load = "ld.volatile.shared.u32 %r0, [%r0];"
    taken = cycles_per(load, start, STORE, shared=".shared .align 16 .b8 room[16];")
    assert taken == pytest.approx(MEASURED["chain_lds"], rel=0.03)


RING = """
mov.u32 %r2, bars; add.u32 %r3, %r2, 8; setp.ne.u32 %p0, %t, 0; @%p0 bra SET;
mbarrier.init.shared.b64 [%r2], 1; mbarrier.init.shared.b64 [%r3], 1;
SET: bar.sync 0; and.b32 %r4, %t, 31; setp.ne.u32 %p1, %r4, 0; @%p1 bra END;
setp.ge.u32 %p2, %t, 32; @%p2 bra SECOND;
"""


def test_a_wait_that_sleeps_is_woken_by_the_arrival_and_does_not_test_again():
    def wait(label: str, at: str, turn: int) -> str:
        test = f"mbarrier.try_wait.parity.shared.b64 %p3, [{at}], {turn & 1};"
        return f"{label}{turn}: {test} @%p3 bra {label}D{turn}; bra {label}{turn}; {label}D{turn}:"

    def body(turns: int) -> str:
        arrive = "mbarrier.arrive.shared.b64 %d5, [{}];"
        first = "".join(arrive.format("%r2") + wait("A", "%r3", i) for i in range(turns))
        second = "".join(wait("B", "%r2", i) + arrive.format("%r3") for i in range(turns))
        return RING + first + "bra END; SECOND:" + second + "END:"

    shared = ".shared .align 8 .b8 bars[16];"
    few, many = modelled_each([body(turns) for turns in (16, 48)], threads=64, shared=shared)
    # Without the loop of the microbenchmark, whose 82.7 cycles are 83.8 modelled.
    hop = (many.cycles - few.cycles) / 64
    assert H200["arrive_latency"] + H200["wake_latency"] < hop < MEASURED["mbarrier_ring"]


TABLE = ".const .align 4 .b32 table[64] = {" + ", ".join(map(str, range(64))) + "};"
LOOK_UP = "shl.b32 %r2, %r0, 2; mov.u32 %r3, table; add.u32 %r3, %r3, %r2; ld.const.u32 %r0, [%r3];"


@pytest.mark.parametrize("words", [1, 8, 32])
def test_a_modelled_chain_of_constants_takes_as_long_as_the_card(words: int):
    start = f"and.b32 %r0, %t, {words - 1};"
    taken = cycles_per(LOOK_UP, start, STORE, count=32, extra=TABLE, chip=H100)
    assert taken == pytest.approx(ON_H100[f"ldc_chain_ways{words}"], rel=0.06)


def test_modelled_constants_of_many_warps_take_what_their_words_do():
    start = "and.b32 %r0, %t, 7;"
    taken = cycles_per(LOOK_UP, start, STORE, count=32, threads=512, extra=TABLE, chip=H100)
    assert taken / 16 == pytest.approx(ON_H100["ldc_warps16_ways8"], rel=0.06)


@pytest.mark.parametrize(
    ("figure", "words", "add"),
    [
        ("red_add_word_lanes32", 1, "add.u32 [%d1], %t"),
        ("red_add_side_by_side", 32, "add.u32 [%d1], %t"),
        ("red_addf_word_lanes32", 1, "add.f32 [%d1], %f0"),
        ("red_addf_side_by_side", 32, "add.f32 [%d1], %f0"),
        ("red_addf64_side_by_side", 32, "add.f64 [%d1], %fd0"),
    ],
)
def test_modelled_atomics_of_all_sms_take_as_long_as_the_card(figure: str, words: int, add: str):
    size = 8 if "f64" in add else 4
    start = ".reg .f32 %f0; .reg .f64 %fd0; mov.f32 %f0, 1.0; mov.f64 %fd0, 1.0;"
    # ptxas must not see that all lanes name one word: it would add for all of them at once.
    lane = "and.b32 %r1, %t, 31;" if words > 1 else "shr.u32 %r1, %t, 10;"
    place = f"{lane} mad.wide.u32 %d1, %r1, {size}, %sums;"
    sums = {"sums": np.zeros(64, np.uint32)}
    how = {"arrays": sums, "threads": 256, "grid": 132, "chip": H100}
    taken = cycles_per(f"red.global.{add};", start + place, "", count=16, **how)
    card = ON_H100[figure] * 1e-9 * H100.clock_hz * 132 * 8
    assert taken == pytest.approx(card, rel=0.1)


@pytest.mark.parametrize(("lanes", "limit"), [("none", 0), ("all", 1 << 30), ("half", 16)])
def test_modelled_conditions_take_as_long_as_the_card(lanes: str, limit: int):
    traps = "setp.eq.u32 %p2, %r2, 0xfffffff0;" + 9 * "@%p2 trap;"
    turn = "".join(
        f"lop3.b32 %r2, %r2, %r4, %r4, 0x96; add.u32 %r3, %r2, {place};"
        f"setp.ge.u32 %p1, %r3, %r5; @%p1 bra PAST{place}; {traps} PAST{place}:"
        for place in range(8)
    )
    start = "and.b32 %r2, %t, 31; ld.global.u32 %r5, [%limits]; mov.u32 %r4, 0;"
    loop = f"TURN: {turn} add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, TURNS; @%p0 bra TURN;"
    limits = {"limits": np.array([limit], np.uint32)}
    body = start + loop + "mov.b32 %r0, %r2;" + STORE
    bodies = [body.replace("TURNS", str(turns)) for turns in (16, 32)]
    few, many = modelled_each(bodies, limits, chip=H100)
    assert (many.cycles - few.cycles) / 16 == pytest.approx(
        ON_H100[f"conditions_{lanes}_warps1"], rel=0.1
    )


@pytest.mark.parametrize("size", [4096, 16384])
def test_modelled_copies_from_dram_take_as_long_as_the_card(size: int):
    copy = f"""mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {size};
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1], {size}, [%r1];
    WAIT{{0}}: mbarrier.try_wait.parity.shared::cta.b64 %p0, [%r1], {{1}}; @!%p0 bra WAIT{{0}};
    add.u64 %d1, %d1, {132 * size};"""
    start = f"""setp.ne.u32 %p1, %t, 0; @%p1 bra DONE; mov.u32 %r1, landed; mov.u32 %r2, room;
    mbarrier.init.shared::cta.b64 [%r1], 1;
    mov.u32 %r3, %ctaid.x; mul.wide.u32 %d1, %r3, {size}; add.u64 %d1, %d1, %words;"""
    shared = ".shared .align 128 .b8 room[16384]; .shared .align 8 .b64 landed;"
    words = {"words": np.zeros(132 * size // 4 * 24, np.uint32)}
    bodies = [
        start + "".join(copy.format(turn, turn & 1) for turn in range(turns)) + "DONE:"
        for turns in (8, 24)
    ]
    few, many = modelled_each(bodies, words, grid=132, shared=shared, chip=H100)
    rate = 132 * size / ((many.cycles - few.cycles) / 16 / H100.clock_hz)
    assert rate / 1e9 == pytest.approx(ON_H100[f"bulk_dram_1x{size}"], rel=0.12)
