"""Files are written whole or not at all, and several of them all or none."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.system import wholefile


def test_several_files_are_undone_where_the_block_raises(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "gone").write_text("gone")
    with contextlib.suppress(KeyError), wholefile.FilesTogether() as files:
        files.write(tmp_path / "old", b"new")
        files.write(tmp_path / "old", b"newer")
        files.write(tmp_path / "a/b/c", b"new")
        files.remove(tmp_path / "gone")
        files.remove(tmp_path / "never")
        raise KeyError
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "old": "old",
        "gone": "gone",
    }


def test_several_files_stay_where_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    with wholefile.FilesTogether() as files:
        files.write(tmp_path / "old", b"new")
        files.write(tmp_path / "a/b", b"new")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "old"]
    assert (tmp_path / "old").read_text() == "new"


def test_a_folder_that_somebody_else_uses_is_left(tmp_path: Path) -> None:
    with contextlib.suppress(KeyError), wholefile.FilesTogether() as files:
        files.write(tmp_path / "a/b", b"new")
        (tmp_path / "a/theirs").touch()
        raise KeyError
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["theirs"]


def test_a_file_that_can_t_be_written_is_named_and_not_its_temporary(tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()
    with pytest.raises(OSError) as caught:  # noqa: PT011, which one is what the test is about
        wholefile.write(tmp_path / "name", b"new")
    assert caught.value.filename == os.fspath(tmp_path / "name")
    assert not list(tmp_path.glob(".*"))


def test_a_file_of_any_age_is_undone(tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text("before")
    os.utime(old, (0, 0))
    with contextlib.suppress(OSError), wholefile.FilesTogether() as files:
        files.write(old, b"after")
        files.write(tmp_path / "next.yaml", b"after")
        raise OSError
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old.yaml": "before"}


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.integers(1, 10**7))
def test_names_sort_by_time_within_a_second_too(moment: datetime, microseconds: int) -> None:
    earlier = wholefile.name_at(moment)
    assert earlier < wholefile.name_at(moment + timedelta(microseconds=microseconds))
