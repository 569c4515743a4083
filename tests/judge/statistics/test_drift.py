"""Steps in a variant's times, over its records."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from kernelexp.judge.statistics import drift
from kernelexp.judge.statistics.drift import Timing

pytestmark = pytest.mark.xdist_group("drift")  # One process imports ruptures.


def times(count: int, course: Callable[[int], float], noise: float = 0.002) -> list[Timing]:
    """Times of 100 us with a course and noise, the same in each run of the tests."""
    rng = random.Random(7)
    return [
        Timing(run=f"r{i:02}", commit="", time_us=100 * course(i) * math.exp(rng.gauss(0, noise)))
        for i in range(count)
    ]


@pytest.mark.slow
def test_steps_that_are_each_within_a_margin_of_1_percent_add_up() -> None:
    result = drift.find(times(24, lambda i: 1.003**i))
    assert result is not None
    assert result.ratio == pytest.approx(1.003**20, abs=0.015)
    assert len(result.steps) >= 3
    assert all(1 < step.ratio < 1.03 for step in result.steps)


def test_a_step_is_dated() -> None:
    result = drift.find(times(20, lambda i: 1.0 if i < 12 else 1.02))
    assert result is not None
    assert [step.since.run for step in result.steps] == ["r12"]
    assert result.ratio == pytest.approx(1.02, abs=0.003)


@pytest.mark.parametrize(
    "course",
    [
        lambda i: 1.0,
        lambda i: 0.997**i,
        pytest.param(lambda i: 1.03 if 8 <= i < 14 else 1.0, id="came back"),
    ],
)
def test_no_drift_is_no_drift(course: Callable[[int], float]) -> None:
    result = drift.find(times(24, course))
    assert result is not None
    assert result.ratio < 1.005


def test_an_outlier_is_no_step() -> None:
    result = drift.find(times(24, lambda i: 1.2 if i == 10 else 1.0))
    assert result is not None
    assert result.ratio < 1.005


def test_a_few_records_say_nothing() -> None:
    assert drift.find(times(drift.RECORDS_MIN - 1, lambda i: 1.1**i)) is None
