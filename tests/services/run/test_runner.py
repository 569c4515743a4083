"""Runs of several experiments: a fault of one leaves the others done and recorded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import Kx

from kernelexp.model import errors

pytestmark = pytest.mark.usefixtures("shared_builds")

BROKEN = """
  other:
    title: another kernel
    problem: y = factor * x
    targets:
      sm_90a:
        source: scale.cu
        axes:
          width: {values: [1, 2, 4], default: 1}
          order: {values: [forward, backward], default: forward}
"""
EXPERIMENT = """
kernel: other
arch: sm_90a
title: Of a kernel that does not work
baseline: {}
candidate: {width: 2}
hypothesis: None.
"""


@pytest.fixture
def two(scale: Path) -> Path:
    """The project `scale` with a second kernel, and an experiment B on it between S1 and S2."""
    shutil.copytree(scale / "variants/scale", scale / "variants/other")
    file = scale / "experiments.yaml"
    file.write_text(file.read_text().replace("kernels:\n", f"kernels:{BROKEN}", 1))
    (scale / "experiments").mkdir()
    (scale / "experiments/B.yaml").write_text(EXPERIMENT)
    return scale


FAULTS = {
    "an exception": ("problem.py", "raise ValueError('no')\n", errors.USAGE),
    "sys.exit at import": ("problem.py", "import sys; sys.exit(0)\n", errors.USAGE),
    "no constraints": ("problem.py", "def constraints(axes, arch): 1 / 0\n", errors.USAGE),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_one_leaves_the_others_done_and_recorded(two: Path, kx: Kx, fault: str) -> None:
    name, text, code = FAULTS[fault]
    path = two / "variants/other" / name
    path.write_text(path.read_text() + text)
    result = kx("run", "S1", "B", "S2", "--no-emulate", cwd=two)
    assert result.exit_code == code
    assert "error: B: variants/other/problem.py" in result.stderr
    assert {file.name for file in (two / "logs/runs").iterdir()} == {"S1", "S2"}
    assert " B " in result.stdout.split("Reproduces")[1]


def test_a_kernel_that_does_not_build_is_its_own_verdict(two: Path, kx: Kx) -> None:
    (two / "variants/other/scale.cu").write_text("oops\n")
    result = kx("run", "S1", "B", "--no-emulate", cwd=two)
    assert result.exit_code == errors.BUILD
    assert {path.name for path in (two / "logs/runs").iterdir()} == {"S1", "B"}
    assert result.stdout.count("the compiler's errors:") == 1


def test_a_wrong_baseline_is_not_held_against_a_right_candidate(scale: Path, kx: Kx) -> None:
    source = scale / "variants/scale/scale.cu"
    wrong = "if (WIDTH == 1 && i == 3) v.at[0] += 1; y[i] = v;"
    source.write_text(source.read_text().replace("y[i] = v;", wrong))
    result = kx("run", "S1", cwd=scale)
    assert result.exit_code == errors.WRONG_RESULT
    assert "Verdict: INVALID (baseline_failed)" in result.stdout
    assert "Emulated: candidate: y correct" in result.stdout


def test_a_source_without_an_entry_does_not_build(scale: Path, kx: Kx) -> None:
    (scale / "variants/scale/scale.cu").write_text("__device__ int unused;\n")
    result = kx("build", "scale", cwd=scale)
    assert result.exit_code == errors.BUILD
    assert "the source has no __global__ function" in result.stdout


def test_nothing_is_recorded_of_a_problem_py_that_changes_meanwhile(two: Path, kx: Kx) -> None:
    path = two / "variants/other/problem.py"
    path.write_text(
        path.read_text()
        + "\ndef work(size):\n    open(__file__, 'a').write('# one more line\\n')\n"
    )
    result = kx("run", "S1", "B", "--no-emulate", cwd=two)
    assert result.exit_code == errors.USAGE
    assert "error: B: variants/other/problem.py changed while B ran" in result.stderr
    assert {file.name for file in (two / "logs/runs").iterdir()} == {"S1"}


def test_a_verdict_of_before_is_not_the_last_word_once_the_source_is_mended(
    scale: Path, kx: Kx
) -> None:
    source = scale / "variants/scale/scale.cu"
    text = source.read_text()
    source.write_text(text.replace("y[i] = v;", "y[i] = w;"))
    kx("run", "S1", "--no-emulate", cwd=scale)
    assert "BUILD_FAILED" in kx("log", cwd=scale).stdout
    source.write_text(text)
    assert "BUILD_FAILED" not in kx("log", cwd=scale).stdout
    assert "run before this changed: variants/scale/scale.cu" in kx("log", cwd=scale).stdout
    assert "Does not reproduce" not in kx("run", "S1", "--no-emulate", cwd=scale).stdout


def test_a_folder_that_can_not_be_written_leaves_the_others_recorded(scale: Path, kx: Kx) -> None:
    (scale / "logs/runs").mkdir(parents=True)
    (scale / "logs/runs/S1").touch()
    result = kx("run", "S1", "S2", "--no-emulate", cwd=scale)
    assert result.exit_code == errors.ENVIRONMENT
    assert "error: S1: " in result.stderr
    assert len(list((scale / "logs/runs/S2").iterdir())) == 1


def test_a_log_that_can_not_be_written_is_a_warning(scale: Path, kx: Kx) -> None:
    (scale / "logs/EXPERIMENTS.md").mkdir(parents=True)
    result = kx("run", "S1", "--no-emulate", cwd=scale)
    assert result.exit_code == errors.OK
    assert "warning: " in result.stderr
    assert "UNMEASURED" in result.stdout
