"""Accumulators of wgmma in flight: results stay matrices until somebody wants their registers."""

from __future__ import annotations

import numpy as np

from kernelexp.emulator.machine.warpgroup import Accumulators, Result

N = 8
REGISTERS = N // 2


def result(value: int, rows: range) -> Result:
    matrix = np.full((64, N), value, np.uint32)
    return Result(matrix, 1, np.array(rows))


def test_a_result_reaches_its_registers() -> None:
    mine = Accumulators(REGISTERS)
    matrix = np.arange(64 * N, dtype=np.uint32).reshape(64, N)
    mine.write((0, 1, 2, 3), Result(matrix, 1, np.arange(REGISTERS)))
    mine.settle()
    lane, own = 5, matrix[16:32]  # lane 5 of warp 1: rows 1 and 9, columns 2 and 3
    assert mine.values[:, lane].tolist() == [own[1, 2], own[1, 3], own[9, 2], own[9, 3]]


def test_a_later_result_replaces_the_registers_that_it_shares_with_another() -> None:
    mine = Accumulators(6)
    mine.write((0, 1, 2, 3), result(7, range(4)))
    mine.write((2, 3, 4, 5), result(8, range(2, 6)))
    assert list(mine.results) == [(2, 3, 4, 5)]
    mine.settle()
    assert mine.values[:, 0].tolist() == [7, 7, 8, 8, 8, 8]


def test_results_without_a_common_register_stay_matrices() -> None:
    mine = Accumulators(8)
    mine.write((0, 1, 2, 3), result(7, range(4)))
    mine.write((4, 5, 6, 7), result(8, range(4, 8)))
    assert len(mine.results) == 2
