"""Cooperative groups and libcu++."""

from __future__ import annotations

from itertools import accumulate

from correct.kernel import each

from pairs.pair import FaultyPair, crossed, mirrored, weighed


def _grid_twice(x: list[int]) -> list[int]:
    return [x[(t + 128) % 256] + 1 for t in range(256)]


def _tile_sums(x: list[int]) -> list[int]:
    return [sum(word % 1000 for word in x[t // 8 * 8 :][:8]) for t in range(64)]


def _places(x: list[int]) -> list[int]:
    return [int(t < sum(word % 2 for word in x[:64])) for t in range(64)]


def _dropped(x: list[int]) -> list[int]:
    # The first 16 read what the threads that left had stored.
    return [63 - t if t < 16 else x[63 - t] for t in range(48)][::-1]


def _overwritten(x: list[int]) -> list[int]:
    return [word + 1 for half in (x[64:128][::-1], x[:64][::-1]) for word in half[::-1]]


GROUPS = (
    FaultyPair(
        "grid_meets_once_of_twice",
        "`__syncthreads` in place of the grid's second barrier",
        _grid_twice,
        ctas=4,
    ),
    FaultyPair(
        "grid_met_by_the_even_blocks",
        "half of the blocks come to the grid's barrier",
        mirrored(256),
        ctas=4,
    ),
    FaultyPair(
        "block_met_by_the_even_threads",
        "half of the threads come to the block's `sync()`",
        each(lambda t, x: x[63 - t] + t % 2),
    ),
    FaultyPair(
        "sum_of_a_tile_wanted_by_all_its_lanes",
        "`shfl_down` where every lane needs the sum",
        _tile_sums,
    ),
    FaultyPair(
        "place_that_only_the_leader_has", "the leader's place is not handed to its lanes", _places
    ),
    FaultyPair(
        "copy_of_a_group_without_its_wait", "`sync()` of a group in place of `cg::wait`", mirrored()
    ),
    FaultyPair(
        "batches_of_a_group_waited_for_one_too_few",
        "the last of a group's copies is not waited for",
        weighed(4, lambda t, i, x: x[64 * i + 63 - t]),
    ),
    FaultyPair(
        "barrier_of_the_library_waited_for_too_late",
        "a value is read between `arrive` and `wait`",
        each(lambda t, x: x[63 - t] + 3 * x[64 + t]),
    ),
    FaultyPair(
        "barrier_that_a_thread_leaves_without_dropping",
        "threads end with no `arrive_and_drop`",
        _dropped,
    ),
    FaultyPair(
        "stage_of_a_pipeline_released_before_its_use",
        "`consumer_release` before the stage is read",
        weighed(6, lambda t, i, x: x[64 * i + 63 - t]),
    ),
    FaultyPair("latch_that_counts_one_warp", "a latch for one of two warps", mirrored()),
    FaultyPair(
        "ticket_of_an_atomic_ref_of_the_block",
        "a ticket of the scope of the block",
        each(lambda t, x: sum(x[64 * i + t] for i in range(4))),
        ctas=4,
    ),
    FaultyPair(
        "published_by_a_relaxed_store", "a relaxed store in place of a release", mirrored(), ctas=2
    ),
    FaultyPair(
        "turn_never_handed_on",
        "a warp does not pass the turn on",
        lambda x: list(accumulate(x[:4])),
        threads=128,
    ),
    FaultyPair(
        "cluster_left_before_its_memory_was_read",
        "no barrier of the cluster at the end",
        crossed,
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "overwritten_between_arrival_and_wait",
        "what peers read is overwritten before the wait",
        _overwritten,
        ctas=2,
        in_cluster=True,
    ),
)
