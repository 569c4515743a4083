"""The optimiser behind `sweep --strategy`: what it is told, what it proposes, that it repeats."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.experiment import spell_point
from kernelexp.services.run.search import Search, Strategy

SPACE = {f"axis{number}": (1, 2, 4, 8, 16) for number in range(5)}
BEST = 4


def cost(point) -> float | None:
    """0 where every axis is 4; a fifth of the space is refused."""
    if point["axis0"] == 16:
        return None
    return sum((value.bit_length() - BEST.bit_length()) ** 2 for value in point.values())


def search(strategy: Strategy, seed: int = 0, rounds: int = 10, better="less"):
    """The points in their order with what they cost, eight in each round."""
    result = Search(SPACE, strategy, seed, better)
    taken = []
    for _ in range(rounds):
        for point in result.ask(8):
            value = cost(point)
            result.tell(point, value if better == "less" or value is None else -value)
            taken.append((spell_point(point), value))
    return taken


def best(taken) -> float:
    return min(value for _, value in taken if value is not None)


def refused(taken) -> int:
    return sum(value is None for _, value in taken)


def test_a_model_finds_what_chance_does_not_in_80_of_3125_points() -> None:
    assert best(search(Strategy.tpe, rounds=10)) <= 1.0
    assert best(search(Strategy.random, rounds=10)) > 1.0


def test_more_can_be_better() -> None:
    assert search(Strategy.tpe, better="more") == search(Strategy.tpe)


def test_infeasible_points_are_learned() -> None:
    assert refused(search(Strategy.tpe)) < refused(search(Strategy.random)) / 2


@pytest.mark.parametrize("strategy", list(Strategy))
def test_the_same_seed_repeats_a_search_and_another_does_not(strategy: Strategy) -> None:
    one = search(strategy, 3, rounds=4)
    assert one == search(strategy, 3, rounds=4)
    assert one != search(strategy, 4, rounds=4)


@pytest.mark.parametrize("strategy", list(Strategy))
def test_no_point_is_proposed_twice(strategy: Strategy) -> None:
    points = [name for name, _ in search(strategy)]
    assert len(set(points)) == len(points)


@pytest.mark.parametrize("strategy", list(Strategy))
def test_a_small_space_is_tried_as_a_whole(strategy: Strategy) -> None:
    result = Search({"a": (1, 2, 4), "b": (True, 1)}, strategy, 0, "less")
    result.tell({"a": 1, "b": True}, 1.0)
    points = result.ask(8)
    for number, point in enumerate(points):
        result.tell(point, float(number))
    assert len(points) == 5  # true and 1 are two values
    assert result.is_exhausted()
    assert result.ask(8) == []


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(EnvironmentFault, match=r"pip install 'kernelexp\[tune\]'"):
        Search(SPACE, Strategy.tpe, 0, "less")


def test_the_command_line_starts_without_it() -> None:
    text = "import sys, kernelexp.services.run.tune; sys.exit('optuna' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], timeout=120).returncode == 0
