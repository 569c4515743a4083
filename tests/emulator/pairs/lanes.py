"""Lanes, widths, alignments, atomics of narrow types, matrices by their rows."""

from __future__ import annotations

from itertools import accumulate

from correct.kernel import MASK, each

from pairs.pair import FaultyPair, mirrored

_HALVES = 0, 0x3C00, 0x4000


def _unrolled(t: int, x: list[int]) -> int:
    return sum(word * (2 * (i % 4) + 1) for i, word in enumerate(x[30 * t : 30 * t + 30]))


def _vector(t: int, x: list[int]) -> int:
    return sum(
        word * factor for word, factor in zip(x[t % 16 * 4 :][:4], (1, 3, 5, 7), strict=True)
    )


LANES = (
    FaultyPair(
        "sum_of_lanes_before_the_first",
        "a scan by `shfl_up` that adds where no lane is",
        lambda x: [word & MASK for word in accumulate(x[:32])],
        threads=32,
    ),
    FaultyPair(
        "width_of_a_shuffle_forgotten",
        "a shuffle of 32 lanes for one of 8",
        each(lambda t, x: sum(x[t // 8 * 8 : t // 8 * 8 + 8]), 32),
        threads=32,
    ),
    FaultyPair(
        "floats_compared_as_integers",
        "negative floats compared as integers",
        lambda x: [min(word % 100 for word in x[:64])],
    ),
    FaultyPair(
        "compare_and_swap_with_what_was_read_once",
        "a compare and swap is tried again with the old value",
        lambda x: [sum(word % 64 for word in x[:64])],
    ),
    FaultyPair(
        "pair_of_halves_added_at_an_odd_half",
        "two halves are added at an odd half",
        each(lambda t, x: _HALVES[2]),
    ),
    FaultyPair(
        "matrix_rows_of_24_bytes", "`ldmatrix` of rows of 24 bytes", lambda x: x[:32], threads=32
    ),
    FaultyPair(
        "address_of_shared_memory_given_to_another_block",
        "another block follows an address of shared memory",
        mirrored(),
        ctas=2,
    ),
    FaultyPair(
        "rows_of_a_fragment_exchanged",
        "the rows of a fragment are exchanged",
        lambda x: [*(t // 4 * 16 for t in range(32)), *[128] * 32],
        threads=32,
    ),
    FaultyPair(
        "lock_kept_on_the_early_way_out",
        "a lock is kept by `continue`",
        lambda x: [sum(word for word in x[:8] if word % 2 == 0)],
    ),
    FaultyPair(
        "wide_array_after_an_odd_number_of_words",
        "64-bit words begin at an odd word of dynamic memory",
        each(lambda t, x: (x[63 - t] * x[127 - t] >> 32) + x[63 - t]),
        dynamic=784,
    ),
    FaultyPair(
        "three_of_four_bytes_written", "three of a word's four bytes are written", mirrored()
    ),
    FaultyPair("remainder_of_an_unrolled_loop", "the last two of 30 are left out", each(_unrolled)),
    FaultyPair(
        "leader_elected_before_the_branch",
        "a reduction in a branch names every lane",
        each(lambda t, x: sum(word % 2 for word in x[:64])),
    ),
    FaultyPair("words_of_a_vector_read_one_too_far", "a vector past the array", each(_vector)),
    FaultyPair(
        "halves_of_a_warp_take_the_same_slots",
        "two halves of a warp store to the same words",
        lambda x: x[:64],
    ),
)
