"""Blocks in everyday CUDA: what each right kernel gives, and what is wrong with the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import accumulate

from correct.kernel import MASK, each

from pairs.pair import FaultyPair, counted, mirrored, total


def summed(count: int) -> Callable[[list[int]], list[int]]:
    return lambda x: list(accumulate(x[:count]))


def _greatest(x: list[int]) -> list[int]:
    return [max(x[:64]), x.index(max(x[:64]))]


def _products(x: list[int]) -> list[int]:
    return [
        sum(x[32 * y + k] * x[256 + 8 * k + column] for k in range(32))
        for y in range(8)
        for column in range(8)
    ]


def _tile(x: list[int]) -> list[int]:
    return [
        sum(x[8 * i + column] * x[64 + 8 * y + i] for i in range(8))
        for y in range(8)
        for column in range(8)
    ]


def _queue(t: int, x: list[int]) -> int:
    queue = [x[(t + i * x[0] & MASK) % 64] for i in range(8)]
    return reduce(lambda sum_, i: sum_ * 3 + queue[(i + x[1] & MASK) % 8], range(8), 0)


def _left(x: list[int]) -> list[int]:
    return [x[t] + (x[t + 20] if t % 32 < 12 else 0) if t % 32 < 12 else 0 for t in range(64)]


BLOCKS = (
    FaultyPair("tree_reduction", "no barrier in the loop", total(128), threads=128),
    FaultyPair("unrolled_last_warp", "no `__syncwarp` between its steps", total(64)),
    FaultyPair(
        "barrier_in_the_branch_of_a_reduction", "a barrier that half a warp reaches", total(64)
    ),
    FaultyPair(
        "two_reductions_with_one_buffer",
        "no barrier before the buffer is used again",
        each(lambda t, x: sum(x[:64]) ^ sum(x[64:128]) * 3),
    ),
    FaultyPair(
        "shuffle_in_half_a_warp",
        "a full mask in a branch of half the lanes",
        each(lambda t, x: x[t] + (x[t ^ 8] if t % 32 < 16 else 0)),
    ),
    FaultyPair("shuffle_from_a_lane_that_left", "a source lane outside the mask", _left),
    FaultyPair(
        "accumulator_that_nobody_cleared",
        "an accumulator in shared memory starts with anything",
        each(lambda t, x: sum(x[:64])),
    ),
    FaultyPair("greatest_and_its_index", "value and index are stored apart", _greatest),
    FaultyPair("scan_in_one_buffer", "no barrier between reading and writing", summed(64)),
    FaultyPair("scan_in_two_buffers", "the buffers are never swapped", summed(64)),
    FaultyPair("scan_up_and_down", "no barrier on the way down", summed(64)),
    FaultyPair(
        "sums_of_warps_scanned",
        "sums of other warps are read with no barrier",
        summed(128),
        threads=128,
    ),
    FaultyPair(
        "exclusive_scan_by_a_read_before_the_first",
        "thread 0 reads the word before the array",
        lambda x: [0, *x[:63], *range(4)],
    ),
    FaultyPair(
        "bins_cleared_without_a_barrier", "no barrier after the bins are cleared", counted(256, 64)
    ),
    FaultyPair("bins_without_atomics", "bins are counted by `++`", counted(64, 16)),
    FaultyPair(
        "bins_of_each_warp", "bins of two warps are added with no barrier", counted(256, 32)
    ),
    FaultyPair(
        "more_bins_than_threads", "the bins past the threads are not cleared", counted(256, 96)
    ),
    FaultyPair(
        "a_bin_too_few",
        "an index of one bin past the last",
        lambda x: counted(63, 32)([*x[:7], *x[8:64]]),
    ),
    FaultyPair(
        "counters_of_bytes",
        "bytes of one word are set by `|=`",
        each(lambda t, x: x[63 - t] % 2),
    ),
    FaultyPair(
        "stencil_with_a_late_halo",
        "the halo is loaded after the barrier",
        each(lambda t, x: sum(x[t : t + 3])),
    ),
    FaultyPair(
        "stencil_over_the_edge",
        "the word before the array is read",
        each(lambda t, x: x[t] + (x[t - 1] if t else 0)),
    ),
    FaultyPair(
        "tile_transposed",
        "no barrier between writing rows and reading columns",
        each(lambda t, x: x[t % 16 * 16 + t // 16], 256),
        threads=256,
    ),
    FaultyPair("tiles_multiplied", "no barrier before the next tile is loaded", _products),
    FaultyPair("tile_with_a_row_too_many", "a row past the last of a tile is read", _tile),
    FaultyPair(
        "smoothed_in_place",
        "neighbours are read while they are written",
        each(lambda t, x: x[t] + x[(t + 1) % 128], 128),
        ctas=2,
    ),
    FaultyPair(
        "vector_load_of_a_shifted_pointer",
        "a vector load that is not aligned",
        each(lambda t, x: sum(x[4 * t : 4 * t + 4])),
    ),
    FaultyPair(
        "memory_of_two_phases",
        "memory is used again with no barrier",
        lambda x: [x[t] & 0xFFFF for t in range(64)],
    ),
    FaultyPair(
        "counter_read_before_all_have_added",
        "a counter is read with no barrier",
        lambda x: [sum(word % 2 for word in x[:64])] * 64,
    ),
    FaultyPair(
        "compacted_by_a_counter",
        "the rest of a compacted array is not filled",
        lambda x: [int(t < sum(word % 2 for word in x[:64])) for t in range(64)],
    ),
    FaultyPair("local_array_too_short", "an index past a local array", each(_queue)),
    FaultyPair(
        "address_of_a_local_variable_shared",
        "a thread follows a pointer to another's local variable",
        mirrored(),
    ),
    FaultyPair(
        "dynamic_memory_too_small",
        "stores past the dynamic shared memory",
        each(lambda t, x: x[63 - t] + x[64 + t % 32]),
        dynamic=384,
    ),
)
