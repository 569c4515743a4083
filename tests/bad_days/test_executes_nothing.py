"""What only reads never executes a project's Python; what does, the documentation names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, Kx

from kernelexp.cli.app import SUMMARIES

READING = [
    *[("list",), ("list", "--json"), ("show", "S1"), ("show", "S1", "--verbose"), ("log",)],
    *[
        ("log", "--csv"),
        ("log", "--json"),
        ("log", "--write"),
        ("log", "--check"),
        ("show", "--schema", "project"),
    ],
    *[("report", "--out", "pages"), ("plot", "history"), ("diff", "S1", "S1")],
    *[("verdict", "S1"), ("accept", "S1"), ("reject", "S2"), ("replace", "S1", "--by", "aaaaaaa")],
    *[("new", "Two", "--set", "width=2"), ("sections", "S1")],
]
EXECUTING = [("run", "S1", "--no-gpu"), ("build", "S1"), ("emulate", "S1"), ("check", "--update")]
SLOW = pytest.mark.slow


@pytest.fixture
def trap(recorded: Path, tmp_path: Path) -> Path:
    """A project whose Python leaves a mark wherever it is executed."""
    root = Path(shutil.copytree(recorded, tmp_path / "scale"))
    mark = f"open({str(tmp_path / 'mark')!r}, 'w').close()\n"
    problem = root / "variants/scale/problem.py"
    problem.write_text(f"{problem.read_text()}\n{mark}")
    for name in ("conftest.py", "sitecustomize.py", "yaml.py", "kernelexp.py", "torch.py"):
        (root / name).write_text(mark)
        (root / "variants/scale" / name).write_text(mark)
    return root


def start(words: tuple[str, ...], root: Path, **variables: str) -> str:
    """A process of its own in the project's folder, as people start it."""
    program = "import sys; sys.path.remove(''); from kernelexp.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "words", [READING[0], *(pytest.param(words, marks=SLOW) for words in READING[1:])], ids=" ".join
)
def test_what_only_reads_leaves_no_mark(trap: Path, words: tuple[str, ...]) -> None:
    start(words, trap)
    assert not (trap.parent / "mark").exists()


def test_completion_leaves_no_mark(trap: Path) -> None:
    result = start(
        (),
        trap,
        _KERNELEXP_COMPLETE="complete_zsh",
        _TYPER_COMPLETE_ARGS="kernelexp run S",
    )
    assert "S1" in result
    assert not (trap.parent / "mark").exists()


@pytest.mark.slow
@pytest.mark.parametrize("words", EXECUTING, ids=" ".join)
def test_what_builds_or_emulates_leaves_one(trap: Path, words: tuple[str, ...], kx: Kx) -> None:
    kx(*words, cwd=trap)
    assert (trap.parent / "mark").exists()


def test_the_documentation_says_of_each_command_whether_it_does() -> None:
    text = (ROOT / "docs/writing-a-kernel.md").read_text()
    result = re.search(r"## What executes problem\.py\n(.*)", text, re.S)
    assert result
    named = set(re.findall(r"`([a-z]+)", result[1]))
    assert set(SUMMARIES) <= named
