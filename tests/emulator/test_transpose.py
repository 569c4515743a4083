"""A kernel that is not ours: the bank conflicts of a transpose are found by their line."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from harness import compile_cu

from kernelexp import emulator

FOLDER = Path(__file__).parents[2] / "docs/examples/transpose/variants/transpose"
N = 128


@functools.cache
def emulate(pitch: int) -> tuple[np.ndarray, emulator.Result]:
    spec = importlib.util.spec_from_file_location("transpose_problem", FOLDER / "problem.py")
    assert spec is not None
    assert spec.loader is not None
    problem = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(problem)
    text = compile_cu(FOLDER / "transpose.cu", target="sm_90a", defines=[f"KX_PITCH={pitch}"])
    source = np.random.default_rng(0).normal(size=(N, N)).astype(np.float32)
    arrays = {"in": source, "out": np.zeros((N, N), np.float32)}
    launch = problem.launch({"pitch": pitch}, {"n": N}, {})
    result = emulator.run(emulator.load(text), launch, arrays, unwritten=["out"])
    assert (arrays["out"] == source.T).all()
    return arrays["out"], result


@pytest.mark.parametrize("pitch", [32, 33])
def test_the_matrix_is_transposed_with_no_findings(pitch):
    assert emulate(pitch)[1].findings == ()


def conflicts(pitch: int) -> dict[str, int]:
    name = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"
    lines = emulate(pitch)[1].counters.lines
    return {str(line.source): line.counters[name] for line in lines if line.counters[name]}


def test_conflicts_stand_at_the_line_that_reads_columns():
    source = (FOLDER / "transpose.cu").read_text().splitlines()
    ((where, count),) = conflicts(32).items()
    assert "tile[threadIdx.x][threadIdx.y + i]" in source[int(where.split(":")[1]) - 1]
    assert count == 31 * N * N // 32


def test_a_padded_tile_has_none():
    assert conflicts(33) == {}
