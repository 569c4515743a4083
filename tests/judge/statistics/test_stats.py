"""The interval for a ratio: on known quantiles, on made-up processes, on samples of an H200."""

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measurements import ARMS, STATE, measurement, recorded, worker
from support import ROOT

from kernelexp.judge.statistics import stats
from kernelexp.logs import records
from kernelexp.model.measurement import LOOKS_MAX, Row, TimedArm


@pytest.mark.parametrize(
    ("p", "df", "quantile"),
    [
        # Abramowitz and Stegun, table 26.10.
        (0.975, 1, 12.706),
        (0.995, 3, 5.841),
        (0.9995, 4, 8.610),
        (0.995, 9, 3.250),
        (0.995, 30, 2.750),
        (0.9, 120, 1.289),
    ],
)
def test_quantiles_of_students_t_are_those_of_the_tables(p, df, quantile):
    assert stats.t_quantile(p, df) == pytest.approx(quantile, abs=6e-4)


@given(p=st.floats(0.001, 0.999))
def test_with_one_degree_of_freedom_it_is_cauchys_quantile(p):
    assert stats.t_quantile(p, 1) == pytest.approx(
        math.tan(math.pi * (p - 0.5)), rel=1e-6, abs=1e-9
    )


@given(p=st.floats(0.001, 0.999))
def test_with_two_degrees_of_freedom_it_has_a_closed_form(p):
    closed = (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    assert stats.t_quantile(p, 2) == pytest.approx(closed, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1])
def test_there_is_no_quantile_at_the_ends(p):
    with pytest.raises(ValueError, match="no quantile"):
        stats.t_quantile(p, 3)


@given(
    ratio=st.floats(0.5, 2.0),
    drift=st.floats(-0.02, 0.02),
    order=st.permutations([0, 1, 2]),
)
def test_a_linear_drift_over_a_row_cancels(ratio, drift, order):
    places = [*order, *reversed(order)]
    times = [
        math.exp(drift * place) * (ratio if arm == 0 else 1.0) for place, arm in enumerate(places)
    ]
    row = Row(order=tuple(places), times_us=tuple(times))
    assert stats.log_ratio(row, 0, 1) == pytest.approx(math.log(ratio), abs=1e-12)


@given(seed=st.integers(0, 1000))
def test_exchanging_the_two_arms_turns_the_ratio_over(seed):
    process = worker(0, (1.01, 1.0, 1.0), noise=0.01, seed=seed)
    forth, _ = stats.log_ratios(process.blocks, 0, 1)
    back, _ = stats.log_ratios(process.blocks, 1, 0)
    assert forth == pytest.approx([-value for value in back])


def test_a_row_without_one_of_the_arms_has_no_ratio():
    assert stats.log_ratio(Row(order=(0, 0), times_us=(1.0, 1.0)), 0, 1) is None


def test_a_peer_of_the_same_rows_has_an_interval_as_narrow_as_a_candidates():
    arms = (*ARMS, TimedArm(name="cuBLAS", role="peer"))
    rows = [worker(i, (1.0 + 0.0002 * i, 1.0, 1.0, 1.25 + 0.0002 * i)) for i in range(4)]
    taken = stats.estimate(measurement(rows, arms=arms))
    (candidate,), (peer,) = taken.effects, taken.peers
    assert peer.ratio == pytest.approx(1.2503, abs=1e-4)
    assert peer.processes == candidate.processes == 4
    assert peer.high - peer.low == pytest.approx(candidate.high - candidate.low, rel=0.3)


def test_what_takes_longer_on_one_set_of_arrays_has_one_ratio_to_what_does_not():
    arms = (*ARMS, TimedArm(name="cuDNN", role="peer"))

    def alternating(process):
        slow = worker(process, (1.3, 1.25, 1.25, 0.7), rows=21, noise=0.005)
        fast = worker(process, (1.0, 1.0, 1.0, 0.7), rows=21, noise=0.005, seed=1)
        rows = [
            row
            for both in zip(slow.blocks[0].rows, fast.blocks[0].rows, strict=True)
            for row in both
        ]
        block = msgspec.structs.replace(slow.blocks[0], rows=tuple(rows[process % 2 :]))
        return msgspec.structs.replace(slow, blocks=(block,))

    taken = measurement([alternating(process) for process in range(4)], arms=arms)
    before, now = (
        stats.estimate(msgspec.structs.replace(taken, version=version)) for version in (1, 2)
    )
    truth = math.exp(-math.log(1.25) / 2) * 0.7
    (peer,), (candidate,) = now.peers, now.effects
    assert peer.ratio == pytest.approx(truth, rel=0.004)
    assert peer.high / peer.low < 1.01 < before.peers[0].high / before.peers[0].low
    assert candidate.ratio == pytest.approx(math.sqrt(1.3 / 1.25), rel=0.004)
    assert peer.pairs == before.peers[0].pairs


def test_peers_of_a_kernel_that_is_slower_on_one_of_two_sets_have_narrow_intervals():
    taken = recorded("two-sets")

    def half_widths(version):
        peers = stats.estimate(msgspec.structs.replace(taken, version=version)).peers
        return {peer.arm: (peer.high - peer.low) / 2 / peer.ratio for peer in peers}

    assert half_widths(1)["SDPA, flash"] > 0.1
    assert half_widths(1)["SDPA, cuDNN"] > 0.04
    assert max(half_widths(2).values()) < 0.01


def test_early_records_have_a_peers_rows_apart():
    record = records.read_file(records.find(ROOT, "20261121T015301Z"))
    product, whole = stats.estimate(record.measurement).peers
    assert (product.arm, whole.arm) == ("torch._scaled_mm, product only", "torch.compile")
    assert product.ratio == pytest.approx(1.2594, abs=1e-4)


def test_the_interval_grows_with_what_processes_differ_by_and_not_with_their_pairs():
    apart = [worker(i, (1.0 + 0.002 * (i - 1.5), 1.0, 1.0), rows=40) for i in range(4)]
    more = [worker(i, (1.0 + 0.002 * (i - 1.5), 1.0, 1.0), rows=400) for i in range(4)]
    (few,), _ = stats.ratios(measurement(apart))
    (many,), _ = stats.ratios(measurement(more))
    assert few.high - few.low == pytest.approx(many.high - many.low, rel=1e-3)
    assert few.low < 1.0 < few.high


def test_one_process_says_nothing_of_another():
    (effect,), _ = stats.ratios(measurement([worker(0, (0.9, 1.0, 1.0))]))
    assert (effect.low, effect.processes) == (0.0, 1)
    assert msgspec.json.decode(msgspec.json.encode(effect), type=type(effect)) == effect


@pytest.mark.parametrize("truth", [0.98, 1.0, 1.03])
def test_an_interval_of_99_percent_covers_the_truth_in_at_least_98_of_100(truth):
    covered = 0
    for trial in range(100):
        rng = random.Random(trial)
        result = [
            worker(i, (truth * math.exp(rng.gauss(0, 0.002)), 1.0, 1.0), rows=6, noise=0.001)
            for i in range(5)
        ]
        (effect,), _ = stats.ratios(measurement(result))
        covered += effect.low <= truth <= effect.high
    assert covered >= 98


def test_further_looks_and_further_candidates_cost_confidence():
    workers = [worker(i, (1.0 + 0.001 * i, 1.0, 1.0)) for i in range(6)]
    (first,), _ = stats.ratios(measurement(workers, looks=(6,)))
    (second,), _ = stats.ratios(measurement(workers, looks=(4, 6)))
    arms = (ARMS[0], ARMS[1], TimedArm(name="newer", role="candidate"))
    (shared, _), _ = stats.ratios(measurement(workers, looks=(6,), arms=arms))
    assert first.level == pytest.approx(0.995)
    assert second.high - second.low > first.high - first.low
    assert shared.level == pytest.approx(0.9975)


def test_the_looks_together_use_the_risk_and_no_more():
    assert sum(map(stats.share_of_look, range(1, LOOKS_MAX + 1))) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="8 looks"):
        stats.share_of_look(LOOKS_MAX + 1)


def test_the_minimal_detectable_effect_is_wider_than_the_interval():
    workers = [worker(i, (1.0 + 0.001 * i, 1.0, 1.0)) for i in range(4)]
    (effect,), _ = stats.ratios(measurement(workers))
    assert effect.detectable > math.log(effect.high / effect.low) / 2.0


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({"sm_clock_mhz": 1965}, True),
        ({"sm_clock_mhz": 1580}, False),
        ({"memory_clock_mhz": 1593}, False),
        ({"throttle": ("sw_power_cap",)}, True),
        ({"throttle": ("hw_thermal_slowdown",)}, False),
        ({"sm_clock_mhz": 0}, True),
    ],
)
def test_pairs_across_a_change_of_the_device_are_dropped_and_counted(changed, kept):
    after = msgspec.structs.replace(STATE, **changed)
    workers = [worker(i, (1.0, 1.0, 1.0), after=after if i == 0 else STATE) for i in range(3)]
    (effect,), _ = stats.ratios(measurement(workers))
    assert effect.dropped == (0 if kept else 40)
    assert effect.processes == (3 if kept else 2)


@pytest.mark.parametrize("name", ["gemm", "knob", "short"])
def test_on_an_h200_a_kernel_against_itself_is_within_a_quarter_of_a_percent(name):
    effects, placebo = stats.ratios(recorded(name))
    for effect in (*effects, placebo):
        assert effect.low <= 1.0 <= effect.high
        assert 0.9975 < effect.low < effect.high < 1.0025


def test_graphs_made_in_the_same_order_in_every_process_differed_by_a_tenth_of_a_percent():
    (effect,), _ = stats.ratios(recorded("graphs-in-order"))
    assert effect.low > 1.0
    assert effect.ratio == pytest.approx(1.001, abs=2e-4)


def test_copies_at_the_same_addresses_in_every_process_differed_by_a_third_of_a_percent():
    effects, _ = stats.ratios(recorded("apart-in-place"))
    by_name = {effect.arm: effect for effect in effects}
    assert by_name["same-1"].high < 1.0
    assert by_name["same-1"].ratio == pytest.approx(0.997, abs=3e-4)
    assert by_name["same-2"].low < 1.0 < by_name["same-2"].high


def test_the_conditions_name_what_held_the_clock_down():
    conditions = stats.estimate(recorded("gemm")).conditions
    assert conditions.throttle == {"sw_power_cap": 1.0}
    assert conditions.sm_clock_high_mhz < 1980
    assert conditions.power_w > 500


def test_times_alone_are_given_for_every_arm():
    result = stats.estimate(recorded("gemm"))
    assert [time.arm for time in result.times] == ["baseline", "placebo", "same-0"]
    assert all(time.low_us <= time.median_us <= time.high_us for time in result.times)
