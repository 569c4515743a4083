"""Modelled times against each other."""

from __future__ import annotations

import pytest

from kernelexp.facts.modelled_errors import ERRORS, ErrorsApart
from kernelexp.judge.statistics.modelled import change
from kernelexp.model.modelled import ModelledTime


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
