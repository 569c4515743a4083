"""Tests that share what a process makes once are run by one process."""

from __future__ import annotations

import pytest
from scheduling import group_of


def test_files_of_one_group_share_a_process() -> None:
    assert group_of("tests/report/test_site.py") == group_of("tests/report/test_single.py") != ""


@pytest.mark.parametrize("name", ["cli/test_check.py", "emulator/test_pairs.py"])
def test_a_file_that_keeps_what_it_has_made_stays_whole(name: str) -> None:
    assert group_of(f"tests/{name}") == f"tests/{name}"


def test_tests_of_any_other_file_go_where_there_is_room() -> None:
    assert group_of("tests/emulator/test_integer.py") == ""
