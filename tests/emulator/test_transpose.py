"""A kernel that is not made for the emulator: a transpose's bank conflicts are found by line."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from harness import compile_cu
from patch_embed import exports

import warpsim as emulator

VARIANTS = Path(__file__).parents[2] / "variants"
FOLDER = VARIANTS / "transpose"
SIZE = {"rows": 128, "columns": 96}
ACCESSES = SIZE["rows"] * SIZE["columns"] // 32


@functools.cache
def emulate(layout: str) -> emulator.Result:
    spec = importlib.util.spec_from_file_location("transpose_problem", FOLDER / "problem.py")
    assert spec is not None
    assert spec.loader is not None
    problem = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(problem)
    defines = [f"KX_LAYOUT={layout}", "KX_ROWS=8"]
    include = [VARIANTS / "include"]
    text = compile_cu(FOLDER / "transpose.cu", target="sm_90a", defines=defines, include=include)
    x = np.random.default_rng(0).normal(size=(128, 96)).astype(np.float32)
    arrays = {"x": x, "y": np.zeros((96, 128), np.float32)}
    launch = problem.launch({}, SIZE, exports(text))
    result = emulator.run(emulator.load(text), launch, arrays, unwritten=["y"])
    assert (arrays["y"] == x.T).all()
    return result


@pytest.mark.parametrize("layout", ["plain", "padded", "swizzled"])
def test_the_matrix_is_transposed_with_no_findings(layout):
    assert emulate(layout).findings == ()


def conflicts(layout: str) -> dict[str, int]:
    name = "ptx__l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"
    lines = emulate(layout).counters.lines
    return {str(line.source): line.counters[name] for line in lines if line.counters[name]}


def test_conflicts_stand_at_the_line_that_reads_columns():
    source = (FOLDER / "transpose.cu").read_text().splitlines()
    ((where, count),) = conflicts("plain").items()
    assert "tile[place(lane, column)]" in source[int(where.split(":")[1]) - 1]
    assert count == 31 * ACCESSES


@pytest.mark.parametrize("layout", ["padded", "swizzled"])
def test_padding_and_swizzle_have_none(layout):
    assert conflicts(layout) == {}
