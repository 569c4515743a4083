"""Products with a sparse A: half of a row's elements are stored, and metadata says which they are.

Of a group of four elements along K two are stored, of TF32 one of two, of four bits two neighbours
in each of two of the four pairs of a group of eight. A nibble of metadata belongs to each group.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from warpsim.arithmetic.formats import Bits, Mask

Places = npt.NDArray[np.intp]
_NIBBLES = np.arange(0, 32, 4, dtype=np.uint32)
_BY_LANE = 8
"""Nibbles of a lane's word."""
_ONE_OF_TWO = np.array([0b0100, 0b1110], np.uint8)
"""Of TF32: the first, or the second, as if it were two elements of 16 bits each."""


def nibbles(words: Bits, groups: int, width: int, selector: int) -> Bits:
    """The metadata of each row's groups, [n, 16, groups], from the lanes' words [n, 32].

    A quarter as many lanes of each four as a row has groups bring them: those from `selector` times
    that number on. Lane 4r + i brings, of elements of 16 bits and more, four nibbles of row r and
    four of row r + 8; of narrower ones, eight of row r if i is even, else of row r + 8 (PTX ISA,
    "Matrix fragments for multiply-accumulate operation with sparse matrix A").
    """
    lanes = groups // 4
    quads = words.reshape(-1, 8, 4)[:, :, selector * lanes : (selector + 1) * lanes]
    values = (quads[..., None] >> _NIBBLES & np.uint32(15)).astype(np.uint8)
    split = (lanes, 2, _BY_LANE // 2) if width >= 16 else (lanes // 2, 2, _BY_LANE)
    rows = values.reshape(len(values), 8, *split).transpose(0, 3, 1, 2, 4)
    return np.ascontiguousarray(rows).reshape(len(values), 16, groups)


def groups(stored: int, width: int) -> int:
    """Groups of a row of which `stored` elements of `width` bits are stored."""
    return stored // {32: 1, 4: 4}.get(width, 2)


def meaningless(bits: Bits, width: int, ordered: bool) -> Mask:
    """Which nibbles of metadata mean nothing, so that the behaviour is undefined."""
    if width == 32:
        return ~np.isin(bits, _ONE_OF_TWO)
    first, second = bits & np.uint8(3), bits >> np.uint8(2)
    return first >= second if ordered else first == second


def located(bits: Bits, width: int) -> Places:
    """Where along K each stored element of A belongs, by its nibbles [..., groups]."""
    group = np.arange(bits.shape[-1])
    if width == 32:
        return group * 2 + (bits >> np.uint8(3))
    indices = np.stack([bits & np.uint8(3), bits >> np.uint8(2)], axis=-1).astype(np.intp)
    inside = indices.reshape(*bits.shape[:-1], -1) + np.repeat(group * 4, 2)
    if width != 4:
        return inside
    pairs = np.stack([2 * inside, 2 * inside + 1], axis=-1)
    return pairs.reshape(*bits.shape[:-1], -1)


def product(
    a: Bits, b: Bits, c: Bits, where: Places, multiply: Callable[..., Bits], *, by_row: bool
) -> Bits:
    """multiply(A, B, C) of stored elements [n, M, k], of B [n, N, K], and C [n, M, N].

    What is not stored takes no part, whatever B has there. As long as B is finite, zeros in its
    place give the same sum; otherwise, or where the sum depends on which elements are neighbours,
    each row of A is multiplied `by_row`: with what B has for its stored elements. So it is if
    metadata places two of them alike, as on an H200.
    """
    if not by_row and not _repeats(where):
        return multiply(_expanded(a, where, b.shape[2]), b, c)
    own = np.take_along_axis(b[:, None], where[:, :, None], axis=-1)
    count, rows, columns = c.shape
    alone = (
        a.reshape(count * rows, 1, -1),
        own.reshape(count * rows, columns, -1),
        c.reshape(count * rows, 1, columns),
    )
    return multiply(*alone).reshape(c.shape)


def _repeats(where: Places) -> bool:
    ordered = np.sort(where, axis=-1)
    return bool((ordered[..., 1:] == ordered[..., :-1]).any())


def _expanded(a: Bits, where: Places, k: int) -> Bits:
    """[n, M, K] with zeros."""
    dense = np.zeros((*a.shape[:2], k), a.dtype)
    np.put_along_axis(dense, where, a, axis=-1)
    return dense
