"""Errors and order of modelled times of public launches."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import public_times


def _line(family: str, us: float) -> dict[str, object]:
    return {"family": family, "us": us}


def test_pairs_that_are_timed_close_together_count_for_tau_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measured = {"a": 100.0, "b": 102.0, "c": 200.0}
    modelled = {name: _line("f", us) for name, us in (("a", 110.0), ("b", 90.0), ("c", 180.0))}

    public_times.print_errors(measured, modelled)

    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| f |"))
    assert row == "| f | 3 | 10.6% | -3.9% | 0.33 | 1.00 | 2 of 2 |"


def test_a_launch_that_is_refused_is_named_and_not_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    modelled = {"a": _line("f", 1.0), "b": {"family": "f", "refused": "it ends nowhere"}}

    public_times.print_errors({"a": 1.0, "b": 1.0}, modelled)

    printed = capsys.readouterr().out
    assert "| f | 1 |" in printed
    assert "b: it ends nowhere" in printed
