"""An experiment names the size that is timed; what was timed at another size is not taken for it.

The GPU is made up, the processes are real.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_gpu import FakeGpu
from support import Kx, edit

from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.record import Record


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    result = FakeGpu(tmp_path / "locks", monkeypatch)
    result.takes("{1: 1.0, 2: 0.98, 4: 0.97}[width]")
    return result


def name_size(root: Path, size: str) -> None:
    title = "    title: Four floats per thread\n"
    edit(root, title, f"{title}    size: {size}\n")


def latest(root: Path) -> Record:
    path = max((root / "logs/runs/S1").glob("*.measured.json"))
    return records.read_file(path)


def test_run_times_the_size_that_the_experiment_names(scale: Path, kx: Kx) -> None:
    name_size(scale, "emulated")
    result = kx("run", "S1", cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    assert latest(scale).size == "emulated"
    assert "size emulated" in result.stdout


def test_an_experiment_that_names_none_is_timed_at_the_full_size(scale: Path, kx: Kx) -> None:
    kx("run", "S1", cwd=scale)
    assert latest(scale).size == "full"


def test_the_command_line_goes_before_the_experiment(scale: Path, kx: Kx) -> None:
    name_size(scale, "emulated")
    kx("run", "S1", "--size", "full", cwd=scale)
    assert latest(scale).size == "full"


def test_a_size_that_the_problem_lacks_is_a_sentence(scale: Path, kx: Kx) -> None:
    name_size(scale, "huge")
    result = kx("run", "S1", cwd=scale)
    assert result.exit_code == errors.USAGE
    assert "problem.py has no size 'huge'; known: full, emulated" in result.stderr


def test_a_run_at_another_size_does_not_speak_for_the_experiment(scale: Path, kx: Kx) -> None:
    kx("run", "S1", cwd=scale)
    name_size(scale, "emulated")
    (row,) = [line for line in kx("log", cwd=scale).stdout.splitlines() if "| S1 " in line]
    assert "not run" in row
    kx("run", "S1", cwd=scale)
    (row,) = [line for line in kx("log", cwd=scale).stdout.splitlines() if "| S1 " in line]
    assert "-3.0" in row
    assert "size emulated" in row


def test_what_was_measured_before_is_listed_with_its_size(scale: Path, kx: Kx) -> None:
    kx("run", "S1", cwd=scale)
    page = " ".join(kx("run", "S1", "--size", "emulated", cwd=scale).stdout.split())
    assert "Measured before (NVIDIA H200, size full, " in page


def test_another_size_neither_confirms_nor_contradicts(scale: Path, kx: Kx, gpu: FakeGpu) -> None:
    kx("run", "S1", cwd=scale)
    gpu.takes("{1: 1.0, 2: 0.98, 4: 1.5}[width]")
    page = " ".join(kx("run", "S1", "--size", "emulated", cwd=scale).stdout.split())
    assert "at size 'full' instead of 'emulated'" in page
    assert "Does not reproduce" not in page


def test_a_repeated_run_has_the_size_of_its_record(scale: Path, kx: Kx) -> None:
    kx("run", "S1", "--size", "emulated", cwd=scale)
    first = latest(scale)
    result = kx("run", "--record", first.run, cwd=scale)
    assert result.exit_code == errors.OK, result.stderr
    assert latest(scale).repeats == first.run
    assert latest(scale).size == "emulated"


@pytest.mark.parametrize(
    ("hypothesis", "words"),
    [
        ("Wider accesses need fewer instructions.", ""),
        ("Fewer instructions, with wider accesses.", "was reworded after that record"),
        ("Wider accesses: 4% faster.", "was edited after that record"),
    ],
)
def test_a_hypothesis_that_was_rewritten_after_its_measurement_is_marked(
    scale: Path, kx: Kx, hypothesis: str, words: str
) -> None:
    kx("run", "S1", cwd=scale)
    edit(
        scale, "hypothesis: Wider accesses need fewer instructions.", f"hypothesis: {hypothesis!r}"
    )
    page = " ".join(kx("show", "S1", cwd=scale).stdout.split())
    assert ("after that record" in page) == bool(words)
    assert words in page
    kx("log", "--write", cwd=scale)
    log = (scale / "logs/EXPERIMENTS.md").read_text()
    assert ("**Hypothesis:**" in log.partition("S1: ")[2].partition("S2: ")[0]) == (not words)
