"""The compiled part of the emulator is made once, for all of a user's projects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kernelexp.evidence import build, native
from kernelexp.system import disk
from kernelexp.system.process import processes


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands of the host compiler, on a source of one line, for a user of its own."""
    (tmp_path / "small.cpp").write_text('extern "C" int one() { return 1; }\n')
    monkeypatch.setattr(native, "SOURCES", tmp_path)
    monkeypatch.delenv(disk.CACHE_VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    commands: list[Sequence[str]] = []
    run = processes.run

    def counted(argv: Sequence[str], **rest: Any) -> processes.Completed:
        commands.append(argv)
        return run(argv, **rest)

    monkeypatch.setattr(processes, "run", counted)
    return commands


def test_projects_that_need_it_at_once_compile_it_once(
    tmp_path: Path, compiled: list[Sequence[str]]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        paths = set(pool.map(native.library, [tmp_path / "a", tmp_path / "b"]))
    (path,) = paths
    assert Path(path).parent == tmp_path / "home/.cache/kernelexp/native"
    assert Path(path).is_file()
    assert [argv[-1].endswith(".o") for argv in compiled] == [True, False]


def test_another_source_is_another_library(tmp_path: Path, compiled: list[Sequence[str]]) -> None:
    first = native.library(tmp_path)
    (tmp_path / "small.cpp").write_text('extern "C" int one() { return 2; }\n')
    assert native.library(tmp_path) != first
    assert Path(first).is_file()
    assert len(compiled) == 4


def test_another_processor_has_a_library_of_its_own(
    tmp_path: Path, compiled: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = native.library(tmp_path)
    older = tmp_path / "cpuinfo"
    older.write_text("processor\t: 0\nflags\t\t: fpu sse2\n")
    monkeypatch.setattr(native, "PROCESSOR", older)
    assert native.library(tmp_path) != first


def test_what_a_killed_process_left_goes_and_what_another_writes_stays(
    tmp_path: Path, compiled: list[Sequence[str]]
) -> None:
    folder = tmp_path / "home/.cache/kernelexp/native"
    folder.mkdir(parents=True)
    for name in ("killed.tmp", "written.tmp"):
        (folder / name).mkdir()
        (folder / name / "half.o").write_bytes(b"half")
    os.utime(folder / "killed.tmp", (0, 0))
    native.library(tmp_path)
    assert [path.name for path in folder.glob("*.tmp")] == ["written.tmp"]


@pytest.mark.parametrize("home", ["a file", "open to all"])
def test_where_home_will_not_do_it_is_in_the_project(
    tmp_path: Path, compiled: list[Sequence[str]], home: str
) -> None:
    folder = tmp_path / "home"
    if home == "a file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    path = Path(native.library(tmp_path / "project"))
    assert path.parent == tmp_path / "project" / build.CACHE / "native"
    assert path.is_file()


def test_what_does_not_compile_is_no_library(tmp_path: Path, compiled: list[Sequence[str]]) -> None:
    (tmp_path / "small.cpp").write_text("no C++\n")
    assert native.library(tmp_path) == ""
    assert not list(tmp_path.rglob("*.tmp"))
