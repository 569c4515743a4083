"""Tiles, ranks, union-find and histograms."""

from __future__ import annotations

from correct.kernel import each

from pairs.pair import FaultyPair, horner, weighed


def _row_tile(x: list[int]) -> list[int]:
    rows = [[word % 100 for word in x[32 * w :][:32]] for w in range(4)]
    return [row[31 - t] * 1000 + sum(row) for row in rows for t in range(32)]


def _two_tiles(x: list[int]) -> list[int]:
    last = x[4060:4096] + [0] * 28
    return [x[63 - t] + last[63 - t] for t in range(64)]


def _image(x: list[int]) -> list[int]:
    return [x[60 * y + 59 - column] for y in range(68) for column in range(60)]


def _counters(x: list[int]) -> list[int]:
    def of(t: int) -> int:
        return sum(row for row in range(8) if x[64 * row + t] % 4 == x[t] // 4 % 4)

    return [of(t) for t in range(64)]


def _wrapped(x: list[int]) -> list[int]:
    return [x[t * 1050 // 64] + (t * 1050 >= 65536) for t in range(64)]


def _wide(x: list[int]) -> list[int]:
    return [sum(word % 100 for word in x[:64]), 64]


def _halves(x: list[int]) -> list[int]:
    return [x[2 * t] & 0xFFFF | (x[2 * t + 1] & 0xFFFF) << 16 for t in range(32)]


def _maxima(x: list[int]) -> list[int]:
    return [horner([max(x[64 * i : 64 * i + 64]) for i in range(3)])] * 64


TILES = (
    FaultyPair(
        "buffer_written_that_is_still_read",
        "the buffer that is read is written",
        weighed(4, lambda t, i, x: x[64 * i + 63 - t]),
    ),
    FaultyPair(
        "last_row_taken_for_a_whole_one",
        "the last row is shorter than the others",
        lambda x: [sum(x)],
    ),
    FaultyPair(
        "halo_clamped_one_too_far",
        "an index is clamped to the length",
        lambda x: [x[min(i + 1, 4095)] - x[i] for i in range(3968, 4096)],
        ctas=2,
    ),
    FaultyPair(
        "second_array_inside_the_first",
        "two arrays overlap in dynamic shared memory",
        each(lambda t, x: x[63 - t] * 3 + x[64 + (t + 1) % 64]),
        dynamic=512,
    ),
    FaultyPair(
        "sorted_with_a_barrier_too_few",
        "no barrier in the short steps of a sort",
        lambda x: sorted(x[:128]),
    ),
    FaultyPair("maximum_cleared_while_it_grows", "no barrier after a maximum is cleared", _maxima),
    FaultyPair(
        "edge_of_an_image_not_guarded", "the rows past the last are not left out", _image, ctas=72
    ),
    FaultyPair("wide_counter_at_an_odd_word", "a 64-bit atomic at an odd word", _wide),
    FaultyPair(
        "halves_of_a_word_set_by_reading_it",
        "two threads set the halves of a word by `|=`",
        _halves,
    ),
    FaultyPair(
        "row_of_a_tile_normalised_by_another_row",
        "another warp's sum with no barrier",
        _row_tile,
        threads=128,
    ),
    FaultyPair(
        "last_tile_filled_with_what_lies_behind", "`cp.async` reads past the array", _two_tiles
    ),
    FaultyPair(
        "barrier_in_a_loop_of_as_many_trips_as_the_warp",
        "warps go through a loop with barriers a different number of times",
        weighed(4, lambda t, i, x: x[64 * i + 63 - t]),
    ),
    FaultyPair(
        "counters_of_which_the_last_is_not_cleared",
        "the last of a thread's counters is not cleared",
        _counters,
    ),
    FaultyPair("index_that_wraps_at_65536", "an index of 16 bits", _wrapped),
    FaultyPair(
        "half_of_the_threads_load_a_tile",
        "a quarter of a tile is not loaded",
        each(lambda t, x: x[t] + x[127 - t]),
    ),
)
