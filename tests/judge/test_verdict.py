"""A measurement survives its file, and a verdict can be reached again from it."""

import msgspec
import pytest
from measurements import ARMS, SAMPLES, STATE, measurement, recorded, worker
from support import ROOT

from kernelexp.facts.chips import ARCHITECTURES, find_arch
from kernelexp.judge.statistics import rates
from kernelexp.judge.statistics.stats import ratios
from kernelexp.judge.verdict import does_not_fit, emulated, enough, measured, unmeasured
from kernelexp.logs import records
from kernelexp.model.arm import BuildEvidence, EmulatedEvidence, EmulatedFinding, OtherEntry, Status
from kernelexp.model.measurement import Failure, Measurement

FASTER, SLOWER, SAME = 0.97, 1.03, 1.0005


def of(ratio, placebo=1.0, spread=0.0002, processes=4):
    """Processes whose candidate stands at `ratio` to the baseline, give or take `spread`."""
    return measurement(
        worker(i, (ratio * (1.0 + spread * (i % 2 - 0.5)), 1.0, placebo * (1 + 1e-5 * (i % 2))))
        for i in range(processes)
    )


def failing(arm, status="CRASHED", words="CUDA_ERROR_ILLEGAL_ADDRESS"):
    failure = Failure(arm=arm, status=status, process=0, words=words)
    return msgspec.structs.replace(of(SAME), failures=(failure,))


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_a_recorded_measurement_is_written_as_it_was_read(path):
    result = msgspec.json.decode(path.read_bytes(), type=Measurement)
    assert msgspec.json.decode(msgspec.json.encode(result), type=Measurement) == result


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        (of(FASTER), Status.IMPROVED, "faster"),
        (of(SLOWER), Status.REJECTED, "slower"),
        (of(SAME), Status.NEUTRAL, "within_margin"),
        (of(1.01, spread=0.01), Status.INCONCLUSIVE, "too_wide"),
        (of(1.01, spread=0.0002), Status.INCONCLUSIVE, "on_the_edge"),
        (of(FASTER, processes=1), Status.INCONCLUSIVE, "one_process"),
        (of(FASTER, processes=0), Status.INCONCLUSIVE, "no_samples"),
        (of(FASTER, placebo=1.004), Status.INCONCLUSIVE, "placebo_differs"),
        (failing("new"), Status.CRASHED, "driver"),
        (failing("new", "INCORRECT"), Status.INCORRECT, "reference"),
        (failing("new", "TIMED_OUT"), Status.TIMED_OUT, "time_limit"),
        (failing("old"), Status.INVALID, "baseline_failed"),
        (failing("old again"), Status.INVALID, "baseline_failed"),
        (failing("", "TIMED_OUT"), Status.INVALID, "unknown_arm"),
    ],
)
def test_each_verdict_has_its_case_and_a_sentence(found, status, reason):
    got = measured(found, "new")
    assert (got.status, got.reason) == (status, reason)
    assert got.sentence.endswith(".")


def test_a_placebo_that_is_uncertain_beyond_the_margin_leaves_the_verdict_open():
    result = of(FASTER)
    wide = [worker(i, (FASTER, 1.0, 1.0 + 0.02 * (i % 2 - 0.5))) for i in range(4)]
    got = measured(msgspec.structs.replace(result, workers=tuple(wide)), "new")
    assert (got.status, got.reason) == (Status.INCONCLUSIVE, "placebo_wide")


def test_company_on_the_gpu_makes_a_measurement_invalid_whatever_it_shows():
    result = msgspec.structs.replace(of(FASTER), invalid="Another process computed on the GPU.")
    got = measured(result, "new")
    assert got.sentence == "Another process computed on the GPU."
    assert got.status is Status.INVALID


def test_a_device_that_changed_under_most_pairs_makes_a_measurement_invalid():
    result = of(FASTER)
    changed = msgspec.structs.replace(result.workers[0].blocks[0].after, sm_clock_mhz=1000)
    workers = [
        worker(i, (FASTER, 1.0, 1.0), after=changed if i < 3 else result.workers[0].blocks[0].after)
        for i in range(5)
    ]
    got = measured(msgspec.structs.replace(result, workers=tuple(workers)), "new")
    assert (got.status, got.reason) == (Status.INVALID, "device_changed")


def test_a_measurement_of_which_every_pair_is_dropped_is_invalid_with_their_number():
    hot = msgspec.structs.replace(STATE, throttle=("hw_thermal_slowdown",))
    result = measurement(worker(i, (FASTER, 1.0, 1.0), after=hot) for i in range(4))
    got = measured(result, "new")
    assert (got.status, got.reason) == (Status.INVALID, "device_changed")
    assert got.sentence == "Clocks or throttling changed during all 160 pairs."


def test_a_placebo_s_failure_is_the_baseline_s_whatever_the_candidate_did():
    result = failing("old again", "INCORRECT", "y is wrong")
    also = Failure(arm="new", status="CRASHED", process=0, words="it crashed")
    got = measured(msgspec.structs.replace(result, failures=(also, *result.failures)), "new")
    assert (got.status, got.sentence) == (
        Status.INVALID,
        "The baseline gave a wrong result: y is wrong.",
    )


def test_a_wrong_result_outranks_any_time():
    failure = Failure(arm="new", status="INCORRECT", process=3, words="7 elements differ")
    result = msgspec.structs.replace(of(FASTER), failures=(failure,))
    assert measured(result, "new").sentence == "7 elements differ."


def test_another_margin_decides_the_same_samples_otherwise():
    result = of(1.005)
    assert measured(result, "new", margin=0.01).status is Status.NEUTRAL
    assert measured(result, "new", margin=0.0025).status is Status.REJECTED


def test_the_sentence_says_the_effect_its_interval_and_the_margin():
    got = measured(of(FASTER, spread=0.0), "new")
    assert got.sentence == (
        "3.00% faster, 99.5% interval -3.00% to -3.00%: entirely outside the margin of ±1%."
    )


def test_sampling_may_stop_when_every_candidate_is_decided_or_on_the_edge():
    assert enough(of(FASTER))
    assert enough(of(1.01, spread=0.0002))
    assert not enough(of(1.01, spread=0.01))
    assert not enough(of(FASTER, placebo=1.004, spread=0.01))


@pytest.mark.parametrize(
    ("arm", "default", "fine"),
    [
        ("extra-5-0", Status.NEUTRAL, Status.REJECTED),
        ("extra-10-0", Status.INCONCLUSIVE, Status.REJECTED),
        ("extra-20-0", Status.REJECTED, Status.REJECTED),
    ],
)
def test_known_slowdowns_on_an_h200_get_their_verdicts(arm, default, fine):
    result = recorded("inject")
    assert measured(result, arm).status is default
    assert measured(result, arm, margin=0.0025).status is fine


def test_on_an_h200_the_true_slowdown_lies_in_the_interval():
    result = recorded("inject")
    truths = rates.true_effects(result)
    effects, _ = ratios(result)
    judged = [effect for effect in effects if effect.arm in truths]
    assert len(judged) == 4
    assert all(e.low <= 1.0 + truths[e.arm] <= e.high for e in judged)


@pytest.mark.parametrize("name", ["gemm", "knob", "short"])
def test_comparisons_of_a_kernel_with_itself_give_no_false_verdict(name):
    got = rates.of_same_arms(recorded(name), processes=4, count=40)
    assert got.false_verdicts == 0
    assert got.statuses.get("NEUTRAL", 0) >= 36
    assert got.disjoint == 2 * (len(recorded(name).arms) // 2)


def test_a_known_slowdown_is_detected_in_every_comparison():
    got = rates.of_injected(recorded("inject"), processes=4, count=20)
    assert {extra: rates.detected for extra, rates in got.items()} == {
        5: 20,
        10: 20,
        20: 20,
        50: 20,
    }


def test_rates_see_a_bias_that_is_there():
    got = rates.rates([of(SLOWER)] * 3, truth=0.0, disjoint=1)
    assert got.false_verdicts == 3
    assert got.covered == 0
    assert got.bias == pytest.approx(0.03, abs=1e-3)


def test_positions_are_found_by_role():
    result = measurement([], arms=ARMS)
    assert (result.position("baseline"), result.position("peer")) == (1, None)


@pytest.fixture
def build() -> BuildEvidence:
    """Of a variant that fits."""
    path = min((ROOT / "logs/runs/T1").glob("*.json"))
    result = records.read_file(path).baseline.build
    assert result
    return result


def test_more_threads_than_a_cta_may_have_are_impossible(build: BuildEvidence) -> None:
    many = msgspec.structs.replace(build.resources, threads=1056)
    refused = does_not_fit(find_arch("sm_90a"), msgspec.structs.replace(build, resources=many))
    assert refused
    assert refused.status is Status.IMPOSSIBLE
    assert "1,056 threads needed, 1,024 is the most" in refused.sentence


def test_any_entry_that_is_launched_has_to_fit(build: BuildEvidence) -> None:
    none = msgspec.structs.replace(build.occupancy, ctas_per_sm=0, limited_by=("registers",))
    others = {"add_up": OtherEntry(resources=build.resources, occupancy=none)}
    assert does_not_fit(find_arch("sm_90a"), build) is None
    refused = does_not_fit(find_arch("sm_90a"), msgspec.structs.replace(build, others=others))
    assert refused
    assert refused.sentence.startswith("No CTA of add_up fits on an SM of sm_90a")


def test_what_was_found_while_it_was_emulated_is_a_sentence_with_its_place() -> None:
    race = EmulatedFinding(name="race", sentence="A race.", where="a.cu:7 → :3, CTA 0", count=9)
    hang = EmulatedFinding(name="hang", sentence="no warp can go on.", where="a.cu:9", count=1)
    of_race = emulated(EmulatedEvidence(size="emulated", findings=(race,)))
    of_hang = emulated(EmulatedEvidence(size="emulated", findings=(race, hang), hang=("w",)))
    assert of_race
    assert of_hang
    assert of_race.sentence == "Emulated: A race, at a.cu:7 → :3, CTA 0."
    assert of_hang.status == Status.INCORRECT
    assert of_hang.sentence == "Emulated: no warp can go on, at a.cu:9 (1 more)."


def test_a_limit_of_steps_is_a_time_out() -> None:
    limit = EmulatedFinding(name="step-limit", sentence="more than 9.", where="", count=1)
    verdict = emulated(EmulatedEvidence(size="emulated", findings=(limit,)))
    assert verdict
    assert (verdict.status, verdict.reason) == (Status.TIMED_OUT, "emulated_step_limit")


def test_a_gpu_that_is_missing_is_named_by_its_family() -> None:
    sentence = unmeasured(ARCHITECTURES["sm_90a"], "no driver", emulated=False).sentence
    assert "requires a GPU of compute capability 9.0 (H100, H200, GH200); no driver." in sentence
    assert ARCHITECTURES["sm_120a"].capability == "12.0"
