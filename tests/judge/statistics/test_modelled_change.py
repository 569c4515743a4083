"""Modelled times against each other."""

from __future__ import annotations

import pytest

from kernelexp.facts.modelled_errors import ERRORS
from kernelexp.judge.statistics.modelled import change
from kernelexp.model.modelled import ModelledTime


def modelled(cycles: float) -> ModelledTime:
    return ModelledTime(chip="H200", size="full", cycles=cycles, microseconds=cycles / 1980)


def test_times_farther_apart_than_the_errors_are_ranked():
    result = change(modelled(1000), modelled(500))
    assert result.decided
    assert result.low < 0.5 < result.high < 1
    assert "faster" in result.sentence


def test_a_slower_one_is_called_slower():
    assert "slower" in change(modelled(500), modelled(1000)).sentence


@pytest.mark.parametrize("ratio", [1, 1.02, 0.97])
def test_times_nearer_than_the_errors_are_not_ranked(ratio: float):
    result = change(modelled(1000), modelled(1000 * ratio))
    assert not result.decided
    assert result.sentence.startswith("too close for the model")


def test_farther_pairs_are_ranked_right_more_often():
    shares = [item.right / item.pairs for item in ERRORS.by_distance]
    assert shares == sorted(shares)
