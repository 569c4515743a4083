"""Sparse products against dense ones of the matrix that the metadata describes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsim.arithmetic.matrices import fragments, sparse
from warpsim.arithmetic.matrices.fragments import WIDTH

ASCENDING = {0b0100: (0, 1), 0b1000: (0, 2), 0b1100: (0, 3), 0b1001: (1, 2), 0b1101: (1, 3),
             0b1110: (2, 3)}  # fmt: skip
"""What the PTX ISA lists as meaningful, and the two elements of four that are stored."""


def dense(kept: np.ndarray, groups: list[int], kind: str) -> np.ndarray:
    """The row of a matrix, from what is stored of it and its metadata: by the ISA's words."""
    row: list[int] = []
    stored = iter(kept)
    for nibble in groups:
        if kind == "tf32":
            group = [0, 0]
            group[{0b0100: 0, 0b1110: 1}[nibble]] = next(stored)
        elif WIDTH[kind] == 4:
            group = [0] * 8
            for pair in ASCENDING[nibble]:
                group[2 * pair : 2 * pair + 2] = next(stored), next(stored)
        else:
            group = [0] * 4
            for place in ASCENDING[nibble]:
                group[place] = next(stored)
        row += group
    return np.array(row, kept.dtype)


@settings(deadline=None, max_examples=25)
@given(data=st.data(), kind=st.sampled_from(["f16", "tf32", "e4m3", "s8", "u4"]))
def test_a_sparse_product_is_the_dense_one_of_the_matrix_it_describes(
    data: st.DataObject, kind: str
) -> None:
    stored = {"f16": 16, "tf32": 8, "e4m3": 32, "s8": 32, "u4": 64}[kind]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    choices = [0b0100, 0b1110] if kind == "tf32" else list(ASCENDING)
    result = rng.choice(choices, (2, sparse.groups(stored, WIDTH[kind]))).astype(np.uint8)
    if kind in ("s8", "u4"):
        a, b = (rng.integers(0, 16, shape).astype(np.uint8) for shape in ((2, stored), (3, 128)))
        d_type = "s32"
    else:
        dtype = np.uint8 if kind == "e4m3" else np.uint16 if kind == "f16" else np.uint32
        top = {"f16": 0x4B, "e4m3": 0x47, "tf32": 0x40}[kind] << 8 * (np.dtype(dtype).itemsize - 1)
        a, b = (rng.integers(0, top, shape).astype(dtype) for shape in ((2, stored), (3, 128)))
        d_type = "f32"
    k = 2 * stored
    b, c = b[:, :k], rng.integers(0, 0x40000000, (2, 3)).astype(np.uint32)
    matrix = np.stack([dense(row, list(meta), kind) for row, meta in zip(a, result, strict=True)])

    def multiply(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return fragments.products(x, y, z, kind, kind, d_type, False, fused=True)

    wanted = multiply(matrix[None], b[None], c[None])
    where = sparse.located(result, WIDTH[kind])[None]
    for by_row in (False, True):
        got = sparse.product(a[None], b[None], c[None], where, multiply, by_row=by_row)
        assert np.array_equal(got, wanted)


def test_what_is_not_stored_takes_no_part_even_if_b_is_infinite_there():
    one, infinity = 0x3C00, 0x7C00
    a = np.full((1, 1, 8), one, np.uint16)
    b = np.tile(np.array([one, one, infinity, infinity], np.uint16), 4)[None, None]
    where = sparse.located(np.full((1, 1, 4), 0b0100, np.uint8), 16)

    def multiply(*matrices: np.ndarray) -> np.ndarray:
        return fragments.products(*matrices, "f16", "f16", "f32", False)

    c = np.zeros((1, 1, 1), np.uint32)
    got = sparse.product(a, b, c, where, multiply, by_row=True)
    assert got.view(np.float32).tolist() == [[[8.0]]]


@pytest.mark.parametrize(
    ("width", "ordered", "meaningful"),
    [
        (16, True, set(ASCENDING)),
        (8, True, set(ASCENDING)),
        (8, False, set(range(16)) - {0b0000, 0b0101, 0b1010, 0b1111}),
        (32, True, {0b0100, 0b1110}),
        (32, False, {0b0100, 0b1110}),
    ],
)
def test_the_values_of_metadata_that_mean_something_are_those_of_the_isa(
    width: int, ordered: bool, meaningful: set[int]
) -> None:
    every = np.arange(16, dtype=np.uint8)
    assert set(every[~sparse.meaningless(every, width, ordered)].tolist()) == meaningful


def lanes(word_of: dict[int, int]) -> np.ndarray:
    words = np.zeros((1, 32), np.uint32)
    for lane, word in word_of.items():
        words[0, lane] = word
    return words


@pytest.mark.parametrize(
    ("width", "groups", "selector", "lane", "shift", "row", "group"),
    [
        # One lane of four: its lower half is of row 4r, its upper half of the row eight below.
        (16, 4, 0, 0, 0, 0, 0),
        (16, 4, 3, 7, 12, 1, 3),
        (32, 4, 2, 2, 16, 8, 0),
        # Two lanes: the second has the other half of the columns.
        (16, 8, 0, 1, 0, 0, 4),
        (16, 8, 1, 6, 28, 9, 3),
        (32, 8, 1, 3, 4, 0, 5),
        # Elements of 8 bits and fewer: the odd lane has the row eight below.
        (8, 8, 0, 1, 0, 8, 0),
        (8, 8, 1, 6, 28, 1, 7),
        (8, 16, 0, 2, 0, 0, 8),
        (4, 16, 0, 31, 28, 15, 15),
    ],
)
def test_each_nibble_of_a_lanes_word_belongs_to_a_group_of_a_row(
    width: int, groups: int, selector: int, lane: int, shift: int, row: int, group: int
) -> None:
    nibbles = sparse.nibbles(lanes({lane: 0xE << shift}), groups, width, selector)
    assert [place.tolist() for place in np.nonzero(nibbles)] == [[0], [row], [group]]


def test_lanes_that_the_selector_leaves_out_do_not_count():
    nibbles = sparse.nibbles(lanes({0: 0xFFFFFFFF, 1: 0xFFFFFFFF}), 8, 16, 1)
    assert not nibbles.any()
