"""bisect and history: variants of real revisions in worktrees."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fake_gpu import FakeGpu
from repositories import commit, git, repository
from support import Kx

from kernelexp.model import errors

SOURCE = "variants/scale/scale.cu"
PROBLEM = "variants/scale/problem.py"


def change(root: Path, before: str, after: str, message: str, name: str = SOURCE) -> str:
    """Commits a replacement in a file of the kernel; the commit's beginning as it is shown."""
    text = (root / name).read_text()
    assert text.count(before) == 1
    (root / name).write_text(text.replace(before, after))
    return commit(root, message)[:10]


@pytest.fixture
def revised(scale: Path) -> Path:
    """Three commits after the first: a comment, a slower launch, a comment."""
    repository(scale)
    change(scale, "// y = factor", "// Scales: y = factor", "comment")
    change(scale, "grid=(-(-count // THREADS)", "grid=(1 - count // -THREADS", "launch", PROBLEM)
    change(scale, "// Scales: y", "// It scales: y", "another comment")
    return scale


@pytest.mark.slow
def test_a_slower_launch_is_found_though_the_code_is_the_same(
    revised: Path, kx: Kx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeGpu(tmp_path / "locks", monkeypatch).takes("1.05 if grid % 2 else 1.0")
    result = kx("bisect", "S1", "--good", "HEAD~3", "--bad", "HEAD", cwd=revised)
    assert result.exit_code == errors.OK, result.stdout + result.stderr
    text = " ".join(result.stdout.split())
    assert "comment: the good revision's code" in text
    launch = git(revised, "rev-parse", "HEAD~1")[:10]
    assert text.endswith(f"{launch} is the first bad commit: launch {PROBLEM}")
    table = kx("history", "S1", "--revisions", "HEAD~3..", "--markdown", cwd=revised).stdout
    rows = {
        line.split("|")[2].strip(): line.split("|")[-2].strip()
        for line in table.splitlines()
        if "|" in line
    }
    assert rows["comment"] == f"as {git(revised, 'rev-parse', 'HEAD~3')[:10]}"
    assert re.fullmatch(r"\+(4\.[89]|5\.[012])\d% REJECTED", rows["launch"])
    assert rows["another comment"] == f"as {launch}"
    assert not list((revised / ".kernelexp/worktrees").iterdir())
    assert len(git(revised, "worktree", "list").splitlines()) == 1


@pytest.mark.slow
def test_commits_that_can_not_be_judged_leave_several(scale: Path, kx: Kx) -> None:
    repository(scale)
    change(scale, "each *= factor", "each *= factr", "break")
    change(scale, "each *= factr", "each += factor", "wrong")
    options = ("--good", "HEAD~2", "--bad", "HEAD", "--by", "result")
    result = kx("bisect", "S1", *options, "--json", cwd=scale)
    assert result.exit_code == errors.INCONCLUSIVE
    values = json.loads(result.stdout)
    assert [step["side"] for step in values["steps"]] == ["good", "bad", "skipped"]
    assert [item["subject"] for item in values["first_bad"]] == ["break", "wrong"]
    table = kx("history", "S1", "--revisions", "HEAD~2..", "--no-gpu", cwd=scale).stdout
    assert "BUILD_FAILED" in table
    assert "BUILD_FAILED: variants/scale/scale.cu(" in table
    shown = kx("bisect", "S1", *options[:-1], "build", cwd=scale)
    assert "The two revisions do not differ by build: there is nothing to bisect." in shown.stdout


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--good", "HEAD"), errors.USAGE, "--good and --bad are the same revision: name two."),
        (("--good", "nope"), errors.USAGE, "git knows no revision 'nope'"),
        (
            ("--good", "side"),
            errors.USAGE,
            "side is not an ancestor of HEAD: name the older one first",
        ),
        (("--good", "HEAD~1"), errors.ENVIRONMENT, "nothing can be timed: "),
        (("--good", "HEAD~1", "--by", "speed"), errors.USAGE, "--by 'speed' should be time, resul"),
    ],
)
def test_what_can_not_be_bisected_is_a_sentence(
    options: tuple[str, ...], code: int, sentence: str, cold: Path, kx: Kx
) -> None:
    repository(cold)
    git(cold, "checkout", "-q", "-b", "side")
    commit(cold, "side")
    git(cold, "checkout", "-q", "main")
    commit(cold, "second")
    result = kx("bisect", "S1", *options, "--bad", "HEAD", cwd=cold)
    assert result.exit_code == code
    assert sentence in " ".join(result.stderr.split())


def test_without_a_repository_there_are_no_revisions(cold: Path, kx: Kx) -> None:
    result = kx("history", "S1", "--revisions", "HEAD~1..HEAD", cwd=cold)
    assert result.exit_code == errors.USAGE
    assert "is in no git repository: there are no revisions." in result.stderr
    assert "is not a range of revisions" in kx("history", "S1", "--revisions", "x", cwd=cold).stderr


@pytest.mark.parametrize("words", [("accept", "S1", "--commit", "HEAD"), ("bisect", "S1")])
def test_a_missing_git_is_not_a_missing_repository(
    words: tuple[str, ...], cold: Path, kx: Kx, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(cold)
    monkeypatch.setenv("PATH", "/nowhere")
    ends = ("--good", "HEAD", "--bad", "HEAD") if words[0] == "bisect" else ()
    result = kx(*words, *ends, cwd=cold)
    assert result.exit_code == errors.USAGE
    assert "git can't be started: No such file or directory" in result.stderr


def test_a_repository_that_git_refuses_is_said_in_its_words(cold: Path, kx: Kx) -> None:
    repository(cold)
    (cold / ".git/config").write_text("[")
    result = kx("history", "S1", "--revisions", "HEAD~1..HEAD", cwd=cold)
    assert result.exit_code == errors.USAGE
    assert "git can't read the repository of" in result.stderr
    assert "fatal: bad config line" in result.stderr
