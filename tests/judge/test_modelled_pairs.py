"""What measured pairs say of the model of time."""

from __future__ import annotations

import math

import msgspec
import pytest

from kernelexp.facts.modelled_errors import ERRORS, ErrorsApart, Worth
from kernelexp.judge import modelled_pairs as judge
from kernelexp.judge.modelled_pairs import ModelledPair, change
from kernelexp.model.experiment import Variant
from kernelexp.model.modelled import ModelledTime


def pair(measured: float, modelled: float, experiment: str = "A", arms=("x", "y")) -> ModelledPair:
    return ModelledPair(
        experiment=experiment,
        run=f"run of {experiment}",
        kernel="k",
        arms=arms,
        apart="one axis",
        modelled=math.log(modelled),
        floor=0.0,
        measured=math.log(measured),
    )


@pytest.fixture
def transpose() -> Variant:
    axes = {"rows": 8, "layout": "plain"}
    return Variant(kernel="transpose", arch="sm_90a", source="transpose.cu", axes=axes)


def test_a_sweep_of_many_pairs_weighs_as_much_as_one_experiment():
    many = [pair(2.0, 2.0, "sweep")] * 100
    others = [pair(2.0, 1.0, name) for name in ("A", "B")]
    assert judge.within(many) == 0
    assert judge.within(many + others) == pytest.approx(math.log(2) / judge.OFFSET)


def test_an_interval_widens_with_the_modelled_distance():
    assert judge.reach(math.log(2), 0.3) > judge.reach(math.log(1.1), 0.3)
    assert judge.reach(math.log(0.5), 0.3) == pytest.approx(judge.reach(math.log(2), 0.3))


def test_an_experiment_is_judged_by_the_others_only():
    exact = [pair(1.5, 1.5, name) for name in ("A", "B", "C", "D", "E")]
    wrong = pair(1.5, 0.5, "F")
    left = judge.leave_one_out([*exact, wrong])
    every = left.by_measured[0]
    assert (left.pairs, left.inside, every.decided, every.right) == (6, 5, 6, 5)


def test_decisions_are_counted_by_how_far_apart_pairs_were_measured():
    far = [pair(1.5, 1.51, name) for name in ("A", "B", "C", "D", "E")]
    near = pair(1.06, 1.001, "F")  # too close for the model
    wrong = pair(1.02, 0.8, "G")
    decided = [
        (row.distance, row.pairs, row.decided, row.right)
        for row in judge.decided_pairs([*far, near, wrong])
    ]
    assert decided == [(0.0, 7, 6, 5), (0.05, 6, 5, 5), (0.1, 5, 5, 5)]


def test_the_resolution_is_where_nine_of_ten_are_ranked_right():
    far = [pair(1.2, 1.11, f"E{number}") for number in range(9)]
    near = pair(0.9, 1.035, "E10")  # modelled 3.5% apart
    assert judge.resolution([*far, near]) == judge.LEAST
    assert judge.resolution([*far[:8], near]) == 0.04
    assert judge.resolution([near]) == judge.NEVER


def test_a_ratio_is_decided_by_its_interval_or_by_the_resolution():
    worth = Worth(within=0.3, resolution=0.05)
    assert judge.is_decided(math.log(1.5), worth)  # farther from 1 than its interval reaches
    assert judge.is_decided(math.log(1.06), worth)  # which it does not exclude, but mostly right
    assert not judge.is_decided(math.log(1.04), worth)


def test_variants_are_one_axis_apart_or_several(transpose):
    other = msgspec.structs.replace(transpose, axes={**transpose.axes, "rows": 99})
    third = msgspec.structs.replace(other, axes={**other.axes, "layout": "none"})
    assert judge.apart(transpose, other) == "one axis"
    assert judge.apart(transpose, third) == "several axes"
    assert judge.apart(transpose, msgspec.structs.replace(other, kernel="k")) == "another source"


def test_the_regret_of_a_run_is_what_the_modelled_best_takes_beyond_the_fastest():
    three = [
        pair(1.0, 2.0, arms=("a", "b")),
        pair(1.25, 1.5, arms=("a", "c")),
        pair(1.25, 0.75, arms=("b", "c")),
    ]
    (regret,) = judge.regrets(three)
    assert regret.regret == pytest.approx(0.25)  # b is modelled best, c is fastest


def test_two_arms_have_no_regret():
    assert judge.regrets([pair(1.5, 0.5)]) == ()


def test_an_interval_holds_four_of_five_ratios_in_four_of_five_experiments():
    # Of each experiment one pair in five is far off, of one in five experiments all are.
    near = [pair(1.2, 1.2 * off, f"E{n}") for n in range(8) for off in (1, 1, 1, 1.01, 2)]
    far = [pair(1.2, 3.0, f"F{n}") for n in range(2)]
    assert judge.within(near + far) == pytest.approx(near[3].residual)
    assert judge.within(near + far, 0.9) == pytest.approx(far[0].residual)


def modelled(cycles: float) -> ModelledTime:
    return ModelledTime(chip="H200", size="full", cycles=cycles, microseconds=cycles / 1980)


def test_times_farther_apart_than_the_errors_are_ranked():
    result = change(modelled(1000), modelled(500), "one axis")
    assert result.decided
    assert result.low < 0.5 < result.high < 1
    assert "faster" in result.sentence


def test_a_slower_one_is_called_slower():
    assert "slower" in change(modelled(500), modelled(1000), "one axis").sentence


@pytest.mark.parametrize("ratio", [1, 1.008, 0.992])
def test_times_nearer_than_the_errors_are_not_ranked(ratio: float):
    result = change(modelled(1000), modelled(1000 * ratio), "one axis")
    assert not result.decided
    assert result.sentence.startswith("too close for the model")


@pytest.mark.parametrize("errors", ERRORS.apart, ids=lambda errors: errors.apart)
def test_the_farthest_pairs_are_ranked_right_more_often_than_all(errors: ErrorsApart):
    nearest, *_, farthest = (ranked.right / ranked.pairs for ranked in errors.by_distance)
    assert farthest > nearest


def test_a_ratio_that_is_mostly_ranked_right_is_decided_though_its_interval_holds_1():
    resolution = ERRORS.of("one axis").worth.resolution
    result = change(modelled(1000), modelled(1000 * (1 + resolution + 0.001)), "one axis")
    assert result.decided
    assert result.low < 1 < result.high
    assert result.sentence.startswith(f"slower, time +{resolution:.0%} (")
    assert "ranked right" in result.sentence
