"""Schedules: the sequence of them, and their spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.model.errors import UsageError
from warpsim.schedule import USUAL, Schedule, first_schedules, parse

SCHEDULES = st.builds(
    Schedule,
    seed=st.integers(0, 10**9 - 1),
    asynchrony=st.sampled_from(["late", "early"]),
    first=st.booleans(),
)


@given(SCHEDULES)
def test_a_schedule_is_read_as_it_is_spelled(schedule: Schedule) -> None:
    assert parse(str(schedule)) == schedule


@given(st.integers(USUAL, 100))
def test_more_schedules_begin_with_the_usual_ones_and_are_all_different(count: int) -> None:
    schedules = first_schedules(count)
    assert schedules[:USUAL] == first_schedules(USUAL)
    assert len(set(schedules)) == count
    assert {schedule.asynchrony for schedule in schedules} == {"late", "early"}


@pytest.mark.parametrize("text", ["", "5", "seed x, late", "seed 5, sometimes", "seed -1, late"])
def test_what_is_no_schedule_is_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="should be like 'seed 5, late'"):
        parse(text)
