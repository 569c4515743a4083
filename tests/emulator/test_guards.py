"""Guards that keep threads inside of a problem: which are seen, and which way threads go there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness import compile_cu, launched

import warpsim as emulator
from warpsim.launch import Pointer, Scalar

KERNEL = """extern "C" __global__ void k(const float* x, float* y, int n, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
"""


def ways(tmp_path: Path, body: str, n: int, columns: int = 3) -> dict[int, int]:
    """By line, as Result.ways has them."""
    (tmp_path / "k.cu").write_text(KERNEL.replace("BODY", body))
    module = emulator.load(compile_cu(tmp_path / "k.cu", target="sm_90a"))
    scalars = [Scalar(type="s32", value=value) for value in (n, columns)]
    arguments = [Pointer(array="x"), Pointer(array="y"), *scalars]
    arrays = {name: np.ones(512, np.float32) for name in "xy"}
    result = launched(module, arrays, grid=2, threads=64, arguments=arguments)
    assert not result.findings
    return {int(line.rpartition(":")[2]): way for line, way in result.ways.items()}


@pytest.mark.parametrize(
    "body", ["if (i < n)\n y[i] = x[i];", "if (i >= n)\n return;\n y[i] = x[i];"]
)
def test_a_guard_of_the_end_goes_both_ways_only_where_the_end_is_inside_of_a_cta(
    tmp_path: Path, body: str
) -> None:
    (line,) = ways(tmp_path, body, n=100)
    assert ways(tmp_path, body, n=100) == {line: 3}
    assert ways(tmp_path, body, n=128)[line] in (1, 2)


def test_a_guard_by_the_thread_alone_or_a_size_alone_is_none_of_them(tmp_path: Path) -> None:
    body = "if (threadIdx.x < 99)\n y[i] = 1;\n if (columns > 2)\n y[i + 128] = 1;"
    assert ways(tmp_path, body, n=128) == {}


def test_a_loop_s_own_guard_is_none_of_them(tmp_path: Path) -> None:
    body = "float sum = 0;\n for (int j = i % 8; j < columns; j += 8) sum += x[j];\n y[i] = sum;"
    assert ways(tmp_path, body, n=128, columns=64) == {}


def test_a_guard_by_what_memory_holds_is_none_of_them(tmp_path: Path) -> None:
    assert ways(tmp_path, "if (x[i] < n)\n y[i] = 2;", n=128) == {}


def test_a_guard_of_a_whole_cta_is_none_of_them(tmp_path: Path) -> None:
    assert ways(tmp_path, "if (blockIdx.x * 64 < n)\n y[i] = 2;", n=128) == {}
