"""Figures read from what a program printed."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.evidence.measure.programs import rounds
from kernelexp.evidence.measure.programs.rounds import MissingFigure
from kernelexp.model.experiment import PrintedFigure, Program

PATTERN = repr(r"time: (\S+) ms")


def program(pattern: str = r"time: (\S+) ms", name: str = "time", correct: str = "") -> Program:
    return Program(figures={name: PrintedFigure(pattern=pattern)}, correct=correct)


def test_several_figures_are_read_from_one_output() -> None:
    rate = PrintedFigure(pattern="([0-9.]+) GB/s", unit="GB/s", better="more")
    both = Program(figures={"time": program().figures["time"], "rate": rate})
    output = "n = 4096\ntime: 1.25e-1 ms, 812.5 GB/s\n"
    assert rounds.read_figures(both, output) == {"time": 0.125, "rate": 812.5}


def test_of_several_groups_the_one_with_the_figure_s_name_counts() -> None:
    named = program("(min|max) (?P<time>[0-9.]+)")
    assert rounds.read_figures(named, "max 3.5\n") == {"time": 3.5}


def test_a_pattern_may_be_of_a_whole_line() -> None:
    assert rounds.read_figures(program("^([0-9]+)$"), "of 12 runs\n7\nms\n") == {"time": 7.0}


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("", f"no time: {PATTERN} matches nothing; last: nothing."),
        ("no GPU\n\n", f"no time: {PATTERN} matches nothing; last: 'no GPU'."),
        ("time: 1 ms\ntime: 2 ms\n", f"time 2 times in a run: {PATTERN} is to match once."),
        ("time: nan ms\n", "'nan' as time: it is not a number."),
        ("time: inf ms\n", "'inf' as time: it is not a number."),
        ("time: 1,5 ms\n", "'1,5' as time: it is not a number."),
        ("time: 0 ms\n", "0 as time, which is to be above zero."),
        ("time: -1 ms\n", "-1 as time, which is to be above zero."),
    ],
)
def test_what_can_t_be_read_is_a_sentence(output: str, words: str) -> None:
    with pytest.raises(MissingFigure) as raised:
        rounds.read_figures(program(), output)
    assert str(raised.value) == f"The program printed {words}"


@given(st.text())
def test_any_output_is_read_or_is_a_sentence(output: str) -> None:
    with contextlib.suppress(MissingFigure):
        assert rounds.read_figures(program(r"([0-9.eE+-]+)"), output)["time"] > 0.0


@given(st.floats(min_value=1e-290, max_value=1e290))
def test_a_number_is_read_as_it_was_printed(value: float) -> None:
    assert rounds.read_figures(program(), f"time: {value!r} ms\n") == {"time": value}


def test_the_output_says_whether_the_result_is_right() -> None:
    result = program(correct="^PASSED$")
    assert rounds.is_correct(result, "time: 1 ms\nPASSED\n")
    assert not rounds.is_correct(result, "NOT PASSED\n")
    assert rounds.is_correct(program(), "")
