"""kernelexp new: experiments from words and from rows of sweeps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import Kx, edit

from kernelexp import project
from kernelexp.model import errors


def test_it_gets_the_next_id_and_says_where_it_is(scale: Path, kx: Kx) -> None:
    result = kx("new", "Two floats", "--set", "width=2", "--hypothesis", "Why not.", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    loaded = project.load(scale)
    assert result.stdout == f"added S3, {loaded.place('S3')}\nnext: kernelexp run S3\n"
    added = loaded.experiment("S3")
    assert (added.title, added.candidate, added.hypothesis) == (
        "Two floats",
        {"width": 2},
        "Why not.",
    )


def test_every_other_line_stays(scale: Path, kx: Kx) -> None:
    path = scale / "experiments.yaml"
    before = path.read_text().splitlines()
    kx("new", "Two floats", "--set", "width=2", cwd=scale)
    after = iter(path.read_text().splitlines())
    assert all(line in after for line in before)


def test_lines_that_end_as_on_windows_stay(scale: Path, kx: Kx) -> None:
    path = scale / "experiments.yaml"
    before = path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(before)
    assert kx("new", "Two floats", "--set", "width=2", cwd=scale).exit_code == errors.OK
    after = iter(path.read_bytes().splitlines(keepends=True))
    assert all(line in after for line in before.splitlines(keepends=True))


def test_several_at_once_are_all_added(scale: Path) -> None:
    argv = [sys.executable, "-m", "kernelexp", "new", "Again", "--set", "width=2"]
    several = [subprocess.Popen(argv, cwd=scale, stdout=subprocess.PIPE) for _ in range(3)]
    added = [process.communicate(timeout=60)[0].split()[1].decode() for process in several]
    assert sorted(added) == ["S3,", "S4,", "S5,"]
    assert {"S3", "S4", "S5"} <= {*project.load(scale).experiments}


def test_a_baseline_of_its_own_and_an_id_can_be_given(scale: Path, kx: Kx) -> None:
    words = ("--baseline", "width=2", "--set", "width=4", "--id", "mine")
    kx("new", "From two to four", "--kernel", "scale@sm_90a", *words, cwd=scale)
    assert project.load(scale).experiment("mine").baseline == {"width": 2}


def test_it_is_a_file_of_its_own_where_the_latest_is(scale: Path, kx: Kx) -> None:
    kx("new", "Two floats", "--set", "width=2", cwd=scale)
    text = (scale / "experiments.yaml").read_text()
    (scale / "experiments").mkdir()
    fields = ("kernel: scale", "arch: sm_90a", "title: own", "baseline: {}", "hypothesis: own")
    (scale / "experiments/S9.yaml").write_text("\n".join(fields) + "\ncandidate: {width: 4}\n")
    result = kx("new", "Two floats again", "--set", "width=2", cwd=scale)
    assert "added S10, experiments/S10.yaml:1" in result.stdout
    assert (scale / "experiments.yaml").read_text() == text


def test_without_a_hypothesis_it_says_where_one_goes(scale: Path, kx: Kx) -> None:
    result = kx("new", "Two floats", "--set", "width=2", cwd=scale)
    place = project.load(scale).place("S3")
    assert result.stderr == f"note: write its hypothesis, at {place}\n"


def test_a_row_of_a_sweep_becomes_an_experiment(scale: Path, kx: Kx) -> None:
    kx("sweep", "scale", "width=1,2,4", "--no-gpu", cwd=scale)
    result = kx("new", "--from", "sweep-scale", "--row", "2", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    added = project.load(scale).experiment("S3")
    assert (added.candidate, added.title) == ({"width": 4}, "width=4")
    assert added.hypothesis.startswith("Sweep 20")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("Same", "--set", "width=1"), "the candidate is identical to the baseline"),
        (("Same",), "the candidate is identical to the baseline"),
        (("--set", "width=2"), "say what the experiment tries: kernelexp new TITLE"),
        (("T", "--set", "width=3"), "axis 'width' has no value '3'; known: 1, 2, 4."),
        (("T", "--set", "width"), "--set: 'width' should be AXIS=VALUE"),
        (("T", "--kernel", "scales", "--set", "width=2"), "did you mean 'scale'"),
        (("T", "--set", "width=2", "--id", "S1"), "defines S1 already: choose another id."),
        (("T", "--set", "width=2", "--id", "a b"), "'a b' can't be an id"),
        (("T", "--row", "2"), "--from and --row go together"),
        (("--from", "S1", "--row", "1"), "there is no record 'S1'"),
        (("--from", "x", "--row", "1", "--set", "width=2"), "--from takes variants from the sweep"),
    ],
)
def test_a_mistake_is_a_sentence_and_changes_nothing(
    scale: Path, kx: Kx, words: tuple[str, ...], sentence: str
) -> None:
    before = (scale / "experiments.yaml").read_text()
    result = kx("new", *words, cwd=scale)
    assert result.exit_code == errors.USAGE
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert (scale / "experiments.yaml").read_text() == before


def test_a_row_of_a_run_that_is_no_sweep_is_a_mistake(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--no-emulate", cwd=scale)
    result = kx("new", "--from", "S1", "--row", "1", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "is one of S1, not of a sweep." in result.stderr


def test_several_kernels_ask_for_one(scale: Path, kx: Kx) -> None:
    text = (scale / "experiments.yaml").read_text()
    kernel = text[text.index("  scale:\n") : text.index("experiments:")]
    edit(scale, kernel, kernel + kernel.replace("  scale:", "  other:", 1))
    (scale / "variants/other").symlink_to(scale / "variants/scale")
    result = kx("new", "Two floats", "--set", "width=2", cwd=scale)
    assert "say which kernel: --kernel; known: scale, other." in result.stderr
