"""Which results of mma.sync depend on marked operands: those in a marked row of A, a marked column
of B, or with a marked accumulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsim.arithmetic.matrices import fragments
from warpsim.machine.core.arrays import Array


def multiplied(
    marks: Sequence[Array], a_count: int, b_count: int, c_count: int, results: int
) -> list[Array]:
    """Whether each register of D is marked, from the marks of A's, B's and C's registers, the last.

    All are [n, 32]; `results` is 4, or 2 where a register of D holds two values. Marks of
    metadata and scale factors, of which only some lanes count, are passed over: what nobody wrote
    reads 0xFFFFFFFF, which means nothing there.
    """
    marked = [mark != 0 for mark in marks[-(a_count + b_count + c_count) :]]
    a, b, c = marked[:a_count], marked[a_count : a_count + b_count], marked[a_count + b_count :]
    count = len(marked[0])
    product = np.zeros((count, 16, 8), bool)
    for index, register in enumerate(a):
        rows = register.reshape(count, 8, 4).any(axis=2)
        product[:, 8 * (index % 2) : 8 * (index % 2) + 8] |= rows[:, :, None]
    for register in b:
        product |= register.reshape(count, 8, 4).any(axis=2)[:, None, :]
    values = [product[:, row, column] for row, column in fragments.C_PLACES]
    if results == 2:
        values = [values[0] | values[1], values[2] | values[3]]
    step = len(c) // results
    return [value | np.any(c[i * step : i * step + step], axis=0) for i, value in enumerate(values)]
