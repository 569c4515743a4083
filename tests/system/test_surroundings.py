"""Where a run ran, which never fails the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelexp.logs import sources
from kernelexp.system.process import processes


def commit(root: Path) -> None:
    for words in (["init"], ["add", "."], ["commit", "--allow-empty", "-m", "first"]):
        identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
        assert processes.run(["git", *identity, *words], cwd=root).returncode == 0


def test_a_commit_is_clean_until_a_file_differs(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    commit(tmp_path)
    clean = sources.read_git(tmp_path)
    assert clean
    assert not clean.dirty
    (tmp_path / "a").write_text("2")
    changed = sources.read_git(tmp_path)
    assert changed
    assert (changed.dirty, changed.commit) == (True, clean.commit)


@pytest.mark.parametrize("script", ["exec sleep 1000", "kill -9 $$", "exit 128"])
def test_a_git_that_hangs_or_fails_is_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    (tmp_path / "git").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(sources, "GIT_LIMIT_S", 0.5)
    assert sources.read_git(tmp_path) is None
