"""Which arms leave a race, when it ends, and that the best arm stays."""

import math
import random
from statistics import fmean, median, stdev

import msgspec
import pytest
from measurements import measurement, recorded, worker

from kernelexp.judge.statistics import racing
from kernelexp.judge.statistics.stats import log_ratios, ratios, share_of_look
from kernelexp.judge.verdict import measured
from kernelexp.model.arm import Status
from kernelexp.model.measurement import Departure, Options, Row, TimedArm

NOISE = 0.0005


def field(*ratios_, processes=4, looks=None, noise=NOISE, rows=6, departures=()):
    """A race whose candidates stand at these ratios to the baseline, after so many processes."""
    names = [f"c{index}" for index in range(1, len(ratios_) + 1)]
    arms = (
        TimedArm(name="baseline", role="baseline"),
        TimedArm(name="placebo", role="placebo"),
        *(TimedArm(name=name, role="candidate") for name in names),
    )
    rng = random.Random(7)
    workers = [
        worker(p, [math.exp(rng.gauss(0, noise)) * r for r in (1.0, 1.0, *ratios_)], rows=rows)
        for p in range(processes)
    ]
    looks = looks if looks is not None else tuple(n for n in (2, 3, 4, 6, 8) if n <= processes)
    result = measurement(workers, looks, arms)
    return msgspec.structs.replace(result, options=Options(race=True), departures=departures)


def gone(looked):
    return {item.arm for item in looked.leaving}


def test_after_two_processes_only_what_is_many_times_slower_leaves() -> None:
    seen = racing.look(field(1.05, 60.0, 1.3, processes=2, looks=(2,)), 0.01, "fastest")
    assert gone(seen) == {"c2"}
    assert not seen.done


def test_after_four_processes_what_is_two_percent_slower_leaves_and_says_than_whom() -> None:
    seen = racing.look(field(0.97, 1.0, 0.9701), 0.01, "fastest")
    assert gone(seen) == {"c2"}
    assert seen.leaving[0].slower_than in {"c1", "c3"}
    assert seen.leaving[0].processes == 4
    assert seen.leaving[0].look == 3


def test_a_race_for_the_fastest_ends_when_the_rest_lies_within_the_margin() -> None:
    assert racing.look(field(0.95, 0.9502, 1.2, processes=6), 0.01, "fastest").done
    assert not racing.look(field(0.95, 0.9502, 1.2, processes=2), 0.01, "fastest").done


def test_the_baseline_is_timed_to_the_end_however_slow_it_is() -> None:
    assert "baseline" not in gone(racing.look(field(0.5, 0.51), 0.01, "fastest"))


def test_a_race_for_verdicts_keeps_those_near_the_margin() -> None:
    seen = racing.look(field(0.9, 1.0101, 1.5, noise=0.002), 0.01, "verdicts")
    assert gone(seen) == {"c1", "c3"}
    assert not seen.done


def test_without_a_race_nothing_leaves() -> None:
    plain = msgspec.structs.replace(field(0.9, 60.0), options=Options(), looks=(4,))
    assert racing.look(plain, 0.01, "verdicts").leaving == ()


def test_an_arm_that_left_keeps_the_level_of_the_look_that_settled_it() -> None:
    left = Departure(arm="c2", processes=2, look=1, slower_than="c1")
    result = field(0.9, 60.0, processes=6, departures=(left,))
    levels = {item.arm: item.level for item in ratios(result)[0]}
    assert levels["c2"] == pytest.approx(1 - 0.01 * share_of_look(1, race=True) / 2)
    assert levels["c1"] == pytest.approx(1 - 0.01 * share_of_look(4, race=True) / 2)


def test_the_shares_of_a_race_sum_to_the_whole_risk() -> None:
    assert sum(share_of_look(look, race=True) for look in range(1, 10)) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="10 looks"):
        share_of_look(10, race=True)


def test_an_arm_that_was_outrun_without_a_verdict_says_so() -> None:
    left = Departure(arm="c2", processes=3, look=2, slower_than="c1")
    both = field(0.5, 1.012, processes=8, noise=0.001, departures=(left,))
    one = field(0.5, processes=8, noise=0.001)
    result = msgspec.structs.replace(both, workers=(*both.workers[:3], *one.workers[3:]))
    decided = measured(result, "c2")
    assert (decided.status, decided.reason) == (Status.INCONCLUSIVE, "outrun")
    assert decided.sentence.endswith("timed in 3 processes only, since c1 was faster.")


def test_a_result_names_leader_and_contenders_again_from_the_samples() -> None:
    result = field(0.95, 0.9502, 1.2, processes=6)
    seen = racing.look(result, 0.01, "fastest")
    result = msgspec.structs.replace(result, departures=seen.leaving)
    came = racing.result(result, 0.01)
    assert came.leader in {"c1", "c2"}
    assert set(came.contenders) == {"c1", "c2"}
    assert came.is_decided
    assert came.behind["c3"].low > math.log(1.2)


def test_one_process_decides_nothing() -> None:
    assert racing.look(field(0.5, 60.0, processes=1, looks=()), 0.01, "fastest") == racing.Look(
        done=False
    )
    assert racing.result(field(0.5, 60.0, processes=1, looks=(2,)), 0.01) is None


@pytest.mark.parametrize("name", ["knob", "gemm", "short"])
def test_identical_arms_of_a_recording_are_never_told_apart(name: str) -> None:
    result = recorded(name)
    arms = [msgspec.structs.replace(arm, name=f"a{i}") for i, arm in enumerate(result.arms)]
    result = msgspec.structs.replace(
        result, arms=tuple(arms), looks=(2, 3, 4, 6, 8), options=Options(race=True)
    )
    assert racing.look(result, 0.01, "fastest").leaving == ()


@pytest.mark.slow
def test_the_best_of_24_arms_stays_in_999_of_1000_races() -> None:
    rng = random.Random(11)
    names = [f"c{i}" for i in range(24)]
    lost = 0
    for _ in range(1000):
        effects = {"c0": 0.0, **{name: rng.choice((0.0003, 0.003, 0.03)) for name in names[1:]}}
        running, taken = list(names), []
        for look, processes in enumerate((2, 3, 4, 6), 1):
            while len(taken) < processes:
                taken.append({arm: effects[arm] + rng.gauss(0, 0.0006) for arm in running})
            risk = 0.01 * share_of_look(look, race=True) / 23
            slower = racing.race(taken, running, risk, 0.01).slower
            running = [arm for arm in running if arm not in slower]
        lost += "c0" not in running
    assert lost <= 10


def test_two_fast_arms_are_compared_in_the_rows_that_a_slow_baseline_sits_out() -> None:
    whole = field(0.0100, 0.0102, processes=12, noise=0.0, rows=48)
    rng = random.Random(3)

    def row(number, row):
        kept = [
            (arm, time * math.exp(rng.gauss(0.0, 0.02)))
            for arm, time in zip(row.order, row.times_us, strict=True)
            if number % 12 == 0 or arm > 1
        ]
        return Row(order=tuple(a for a, _ in kept), times_us=tuple(t for _, t in kept))

    def sparse(worker):
        (block,) = worker.blocks
        rows = tuple(row(number, item) for number, item in enumerate(block.rows))
        blocks = (msgspec.structs.replace(block, rows=rows),)
        return msgspec.structs.replace(worker, blocks=blocks)

    result = msgspec.structs.replace(whole, workers=tuple(map(sparse, whole.workers)))
    scores = racing.scores(result)
    through_baseline = [
        median(log_ratios(item.blocks, 3, 0)[0]) - median(log_ratios(item.blocks, 2, 0)[0])
        for item in result.workers
    ]

    apart = [score["c2"] - score["c1"] for score in scores]
    assert stdev(apart) < stdev(through_baseline) / 2
    assert fmean(apart) == pytest.approx(math.log(1.02), abs=0.003)
    assert scores[0]["c1"] == pytest.approx(math.log(0.01), abs=0.06)
