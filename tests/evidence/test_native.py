"""The compiled part of the emulator is made once in a project."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kernelexp import processes
from kernelexp.evidence import native


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands of the host compiler, on a source of one line."""
    (tmp_path / "small.cpp").write_text('extern "C" int one() { return 1; }\n')
    monkeypatch.setattr(native, "SOURCES", tmp_path)
    commands: list[Sequence[str]] = []
    run = processes.run

    def counted(argv: Sequence[str], **rest: Any) -> processes.Completed:
        commands.append(argv)
        return run(argv, **rest)

    monkeypatch.setattr(processes, "run", counted)
    return commands


def test_two_that_need_it_at_once_compile_it_once(
    tmp_path: Path, compiled: list[Sequence[str]]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        paths = set(pool.map(native.library, [tmp_path, tmp_path]))
    (path,) = paths
    assert Path(path).is_file()
    assert len(compiled) == 1


def test_what_does_not_compile_is_no_library(tmp_path: Path, compiled: list[Sequence[str]]) -> None:
    (tmp_path / "small.cpp").write_text("no C++\n")
    assert native.library(tmp_path) == ""
    assert len(compiled) == 1
