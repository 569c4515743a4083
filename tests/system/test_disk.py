"""Files written whole or not at all; JSON decoded as types that no thread has used before."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.system import disk
from kernelexp.system.disk import decode


def test_several_files_are_undone_where_the_block_raises(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "gone").write_text("gone")
    with contextlib.suppress(KeyError), disk.FilesTogether() as files:
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


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    disk.write(tmp_path / "pipe", b"words")
    assert os.read(reader, 99) == b"words"
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    os.close(reader)


def test_several_files_stay_where_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    with disk.FilesTogether() as files:
        files.write(tmp_path / "old", b"new")
        files.write(tmp_path / "a/b", b"new")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "old"]
    assert (tmp_path / "old").read_text() == "new"


def test_a_folder_that_somebody_else_uses_is_left(tmp_path: Path) -> None:
    with contextlib.suppress(KeyError), disk.FilesTogether() as files:
        files.write(tmp_path / "a/b", b"new")
        (tmp_path / "a/theirs").touch()
        raise KeyError
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["theirs"]


def test_a_file_that_can_t_be_written_is_named_and_not_its_temporary(tmp_path: Path) -> None:
    (tmp_path / "name").mkdir()
    with pytest.raises(OSError) as caught:  # noqa: PT011, which one is what the test is about
        disk.write(tmp_path / "name", b"new")
    assert caught.value.filename == os.fspath(tmp_path / "name")
    assert not list(tmp_path.glob(".*"))


def test_a_file_of_any_age_is_undone(tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text("before")
    os.utime(old, (0, 0))
    with contextlib.suppress(OSError), disk.FilesTogether() as files:
        files.write(old, b"after")
        files.write(tmp_path / "next.yaml", b"after")
        raise OSError
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old.yaml": "before"}


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.integers(1, 10**7))
def test_names_sort_by_time_within_a_second_too(moment: datetime, microseconds: int) -> None:
    earlier = disk.name_at(moment)
    assert earlier < disk.name_at(moment + timedelta(microseconds=microseconds))


THREADS = """
import sys, threading
from typing import Optional
import msgspec
from kernelexp.system.disk import decode
sys.setswitchinterval(1e-6)
for _ in range(40):
    kind = type("Leaf", (msgspec.Struct,), {})
    for _ in range(20):
        fields = {f"f{number}": Optional[kind] for number in range(6)}
        names = dict.fromkeys(fields)
        kind = type("Node", (msgspec.Struct,), {"__annotations__": fields, **names})
    together = threading.Barrier(4)
    def first():
        together.wait()
        assert decode(b'{"f0": {"f1": {"f2": {}}}}', kind).f0.f1.f2.f0 is None
        right.append(1)
    right = []
    threads = [threading.Thread(target=first) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(right) == 4
"""


def test_threads_that_first_use_a_type_at_once_all_decode() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_json_that_is_nested_too_deeply_is_none() -> None:
    with pytest.raises(msgspec.DecodeError, match="recursion"):
        decode("[" * 20_000 + "]" * 20_000, list)
