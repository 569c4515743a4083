"""The kernel with a known amount of extra work."""

import pytest
import torch

from kernelexp.project.problem.loader import load_file
from kernelexp.services import calibration
from kernelexp.system import toolchain
from kernelexp.system.process import processes

FOLDER = calibration.KNOB  # the one that `calibrate` builds
problem = load_file(FOLDER / "problem.py")


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_it_compiles(arch, tmp_path):
    nvcc = toolchain.find(None, tmp_path).nvcc
    cubin = tmp_path / "knob.cubin"
    argv = [nvcc, "-cubin", f"-arch={arch}", "-std=c++17", "-o", str(cubin)]
    completed = processes.run([*argv, str(FOLDER / "knob.cu")], timeout_s=60)
    assert completed.returncode == 0, completed.stderr


def test_the_knob_adds_pairs_and_changes_nothing_else():
    size = problem.sizes["full"]
    (plain,), (more,) = (problem.launches({"extra": x}, size, {}) for x in (0, 5))
    assert (plain.arguments[2].value, more.arguments[2].value) == (8000, 8040)
    assert plain.grid == more.grid
    assert plain.arguments[:2] == more.arguments[:2]


def test_a_pair_gives_back_what_it_was_given():
    x = problem.inputs({"ctas": 1, "pairs": 1}, 3, "cpu")["x"]
    assert torch.equal(1.0 - (1.0 - x), x)


def test_inputs_are_random_and_repeatable():
    size = problem.sizes["emulated"]
    one, again, other = (problem.inputs(size, seed, "cpu")["x"] for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert 0.5 <= float(one.min()) <= float(one.max()) <= 1.0
