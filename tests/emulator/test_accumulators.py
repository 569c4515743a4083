"""Accumulators of wgmma in flight: results stay matrices until somebody wants their registers."""

from __future__ import annotations

import numpy as np

from warpsim.machine.core.accumulators import AccumulatorResult, Accumulators, AccumulatorSlots
from warpsim.machine.core.arrays import POISON

N = 8
REGISTERS = N // 2


def destination(*rows: int) -> AccumulatorSlots:
    return AccumulatorSlots(rows, np.array(rows))


def result(value: int) -> AccumulatorResult:
    return AccumulatorResult(np.full((64, N), value, np.uint32), 1)


def test_a_result_reaches_its_registers() -> None:
    mine = Accumulators(REGISTERS)
    matrix = np.arange(64 * N, dtype=np.uint32).reshape(64, N)
    mine.write(destination(0, 1, 2, 3), AccumulatorResult(matrix, 1))
    mine.settle()
    lane, own = 5, matrix[16:32]  # lane 5 of warp 1: rows 1 and 9, columns 2 and 3
    assert mine.values[:, lane].tolist() == [own[1, 2], own[1, 3], own[9, 2], own[9, 3]]


def test_a_later_result_replaces_the_registers_that_it_shares_with_another() -> None:
    mine, first, second = Accumulators(6), destination(0, 1, 2, 3), destination(2, 3, 4, 5)
    mine.write(first, result(7))
    mine.write(second, result(8))
    assert list(mine.results) == [second]
    mine.settle()
    assert mine.values[:, 0].tolist() == [7, 7, 8, 8, 8, 8]


def test_results_without_a_common_register_stay_matrices() -> None:
    mine = Accumulators(8)
    mine.write(destination(0, 1, 2, 3), result(7))
    mine.write(destination(4, 5, 6, 7), result(8))
    assert len(mine.results) == 2


def test_a_wait_gives_back_only_registers_that_no_pending_operation_writes() -> None:
    mine, first, second = Accumulators(6), destination(0, 1, 2, 3), destination(2, 3, 4, 5)
    words = np.arange(6 * 32, dtype=np.uint32).reshape(6, 1, 32)
    before = words.copy()
    mine.take(first, words, 0)
    mine.take(second, words, 0)
    assert (words == POISON[32]).all()
    assert not len(mine.unused({first, second}))
    rows = mine.unused({second})
    assert rows.tolist() == [0, 1]
    mine.give_back(rows, {second}, words, 0)
    assert (words[:2] == before[:2]).all()
    assert (words[2:] == POISON[32]).all()
    mine.take(first, words, 0)
    assert (mine.values == before[:, 0]).all()
