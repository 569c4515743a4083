"""Elimination, transforms, paths, joins, compression, search in shared memory."""

from __future__ import annotations

from itertools import groupby, pairwise

from correct.kernel import MASK, each

from pairs.pair import FaultyPair, horner


def _eliminated(x: list[int]) -> list[int]:
    a = [[x[8 * i + j] | (i == j) for j in range(8)] for i in range(8)]
    for k in range(7):
        for i in range(k + 1, 8):
            f = a[i][k]
            a[i] = [own * 3 - f * p & MASK for own, p in zip(a[i], a[k], strict=True)]
    return [word for row in a for word in row]


def _transformed(x: list[int]) -> list[int]:
    now = x[:64]
    for h in (1, 2, 4, 8, 16, 32):
        now = [now[t ^ h] - now[t] if t & h else now[t] + now[t ^ h] for t in range(64)]
    return [word & MASK for word in now]


def _paths(x: list[int]) -> list[int]:
    d = [[0 if i == j else x[8 * i + j] % 1000 + 1 for j in range(8)] for i in range(8)]
    for k in range(8):
        d = [[min(d[i][j], d[i][k] + d[k][j]) for j in range(8)] for i in range(8)]
    return [word for row in d for word in row]


def _torus(x: list[int]) -> list[int]:
    now = [word & 1 for word in x[:64]]
    for _ in range(4):
        now = [int(now[t - 1] + now[(t + 1) % 64] == 1) for t in range(64)]
    return now


def _centres(x: list[int]) -> list[int]:
    values, centre = [word % 1000 for word in x[:64]], [0, 250, 500, 750]
    for i in range(3):
        parts: list[list[int]] = [[], [], [], []]
        for value in values:
            parts[min(range(4), key=lambda c: abs(value - centre[c]))].append(value)
        centre = [sum(p) // len(p) + i if p else centre[c] for c, p in enumerate(parts)]
    return centre


def _softened(x: list[int]) -> list[int]:
    digits = [word % 1000 for word in x[:64]]
    total = sum(digits)
    return [total * 2 + max(digits) + digit for digit in digits]


def _levels(x: list[int]) -> list[int]:
    level, frontier = {0: 0}, [0]
    for i in range(1, 8):
        frontier = [
            to for v in frontier for k in (1, 2) if level.setdefault(to := (2 * v + k) % 64, i) == i
        ]
        frontier = list(dict.fromkeys(frontier))
    return [level.get(v, 0) for v in range(64)]


def _ring(x: list[int]) -> list[int]:
    return [horner([x[6 * i + 5 - t] for i in range(4)]) for t in range(6)]


ALGORITHMS = (
    FaultyPair(
        "row_eliminated_while_it_is_the_pivot",
        "no barrier between reading a pivot's row and writing the next",
        _eliminated,
    ),
    FaultyPair(
        "transform_with_half_its_barriers",
        "no barrier between a butterfly's loads and stores",
        _transformed,
    ),
    FaultyPair(
        "paths_through_the_next_vertex_too_early",
        "no barrier between the vertices of Floyd and Warshall",
        _paths,
    ),
    FaultyPair(
        "phases_of_a_sort_not_parted", "no barrier between odd and even", lambda x: sorted(x[:128])
    ),
    FaultyPair(
        "neighbour_at_the_edge_of_a_torus", "the left neighbour of the first cell is -1", _torus
    ),
    FaultyPair(
        "sums_of_clusters_kept_from_the_last_round",
        "sums are not cleared for the next round",
        _centres,
    ),
    FaultyPair(
        "table_probed_while_it_is_built",
        "no barrier between building a table and probing it",
        each(lambda t, x: 1),
    ),
    FaultyPair(
        "maximum_of_the_own_warp_taken_for_all",
        "the maximum of one warp for that of all",
        _softened,
    ),
    FaultyPair(
        "length_of_the_last_run",
        "the end of the last run is not stored",
        lambda x: [len(list(run)) for _, run in groupby(word % 2 for word in x[:64])],
    ),
    FaultyPair(
        "end_of_the_last_row",
        "the end of the last row is not stored",
        each(lambda t, x: sum(x[3 * t : 3 * t + 3])),
    ),
    FaultyPair("frontier_read_while_it_grows", "no barrier between two levels", _levels),
    FaultyPair(
        "pattern_looked_for_past_the_end",
        "a window reaches past the array",
        lambda x: [sum((a + 3 * b) % 4 == 1 for a, b in pairwise(x))],
        ctas=2,
    ),
    FaultyPair(
        "rows_with_padding_stored_as_vectors",
        "vectors are stored to rows of 33 words",
        each(lambda t, x: x[32 * (t % 8) + t // 8] + x[32 * (t % 8) + 31 - t // 8]),
    ),
    FaultyPair(
        "digit_scattered_into_its_own_source",
        "no barrier between reading and scattering",
        lambda x: sorted(word % 256 for word in x[:64]),
    ),
    FaultyPair(
        "masks_of_both_warps_in_one_word",
        "two warps store their masks to one word",
        each(lambda t, x: x[t] if x[t] % 3 else 0),
    ),
    FaultyPair(
        "second_element_past_the_end", "four elements too many", each(lambda t, x: x[t] + x[95 - t])
    ),
    FaultyPair(
        "swizzled_on_one_side_only",
        "a tile is swizzled where it is written only",
        each(lambda t, x: x[t % 8 * 8 + t // 8]),
    ),
    FaultyPair("ring_masked_where_its_length_is_no_power_of_two", "`& 11` for `% 12`", _ring),
    FaultyPair(
        "offset_that_overflows",
        "a product of 32 bits overflows",
        each(lambda t, x: x[(t << 30 >> 24) % 4096 + t]),
    ),
)
