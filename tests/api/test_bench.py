"""do_bench without a GPU: its interval, and what it says."""

from __future__ import annotations

import random
import statistics

import pytest
import torch

from kernelexp import do_bench
from kernelexp.api import bench
from kernelexp.model.errors import EnvironmentFault, UsageError


@pytest.mark.parametrize("count", [6, 25, 100, 1001])
def test_the_interval_has_the_median_in_95_of_100_samples(count: int) -> None:
    draw = random.Random(count)
    tries = 2000
    hits = 0
    for _ in range(tries):
        low, high = bench.median_interval([draw.expovariate(1.0) for _ in range(count)])
        hits += low <= 0.6931471805599453 <= high
    assert 0.94 <= hits / tries <= 0.99


def test_a_few_samples_give_all_of_their_range() -> None:
    assert bench.median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)


def test_the_answer_is_a_number_with_an_interval() -> None:
    samples = [1.0, 2.0, 4.0] * 10
    time = bench.BenchTime(statistics.fmean(samples), samples)
    assert time * 2 == pytest.approx(14 / 3)
    assert 1.0 <= time.low <= 2.0 <= time.high <= 4.0


def test_a_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="should be one of mean, median, min, max, all"):
        do_bench(lambda: None, return_mode="best")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_machine_without_a_gpu_says_so() -> None:
    with pytest.raises(EnvironmentFault, match="do_bench needs a GPU"):
        do_bench(lambda: None)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_more_work_takes_longer_beyond_the_intervals() -> None:
    x = torch.rand(1 << 26, device="cuda")
    one, four = do_bench(lambda: x * 2), do_bench(lambda: [x * 2 for _ in range(4)])
    assert four.low > one.high
    assert 3 < four / one < 5
