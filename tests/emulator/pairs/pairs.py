"""The table of pairs: what the right kernel gives, and what is wrong with the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import accumulate
from typing import NamedTuple

from correct.kernel import MASK, always, each


class FaultyPair(NamedTuple):
    """A kernel that is right, and has the fault if it is compiled with WRONG."""

    name: str
    fault: str
    want: Callable[[list[int]], Iterable[int]]
    """The first words of `out`, of the words of `in`, if it is right; the others stay zeros."""
    threads: int = 64
    ctas: int = 1
    dynamic: int = 0
    takes_map: bool = False
    in_cluster: bool = False
    """Whether its CTAs are one cluster."""


def total(count: int) -> Callable[[list[int]], list[int]]:
    return lambda x: [sum(x[:count])]


def summed(count: int) -> Callable[[list[int]], list[int]]:
    return lambda x: list(accumulate(x[:count]))


def counted(count: int, bins: int) -> Callable[[list[int]], list[int]]:
    return lambda x: [sum(word % bins == b for word in x[:count]) for b in range(bins)]


def mirrored(count: int = 64) -> Callable[[list[int]], list[int]]:
    return lambda x: x[:count][::-1]


def crossed(x: list[int]) -> list[int]:
    """Two blocks of 64 that read each other's words from the end."""
    return [*x[64:128][::-1], *x[:64][::-1]]


def weighed(count: int, value: Callable[[int, int, list[int]], int]) -> Callable[..., list[int]]:
    """Horner's sum over `count` stages."""
    return each(lambda t, x: reduce(lambda sum_, i: sum_ * 3 + value(t, i, x), range(count), 0))


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


def _halves(x: list[int]) -> list[int]:
    return [x[t] & 0xFFFF for t in range(64)]


def _queue(t: int, x: list[int]) -> int:
    queue = [x[(t + i * x[0] & MASK) % 64] for i in range(8)]
    return reduce(lambda sum_, i: sum_ * 3 + queue[(i + x[1] & MASK) % 8], range(8), 0)


def _left(x: list[int]) -> list[int]:
    return [x[t] + (x[t + 20] if t % 32 < 12 else 0) if t % 32 < 12 else 0 for t in range(64)]


def _masked(x: list[int]) -> list[int]:
    odd = [word if t % 2 == 0 else word * 5 + x[word % 64] & MASK for t, word in enumerate(x[:64])]
    return [32 + sum(word % 16 for word in odd[t // 32 * 32 :][:32]) for t in range(64)]


def _box(x: list[int], y: int) -> list[int]:
    rows = range(y, y + 8)
    return [x[40 * row + column] if row < 12 else 0 for row in rows for column in range(32)]


def _bins_of_cluster(x: list[int]) -> list[int]:
    return counted(128, 64)(x)


def _ring(x: list[int]) -> list[int]:
    return [x[64 * ((cta - 3) % 4) + t] + 3 for cta in range(4) for t in range(64)]


def _after_product(x: list[int]) -> list[int]:
    return [64 + t % 64 for t in range(128)]


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
WARPS = (
    FaultyPair(
        "warp_transposes_through_shared_memory",
        "no `__syncwarp` between store and load",
        each(lambda t, x: x[t ^ 31]),
    ),
    FaultyPair(
        "place_announced_by_a_leader",
        "no `__syncwarp` after the leader's store",
        lambda x: [int(t < sum(word % 2 for word in x[:64])) for t in range(64)],
    ),
    FaultyPair(
        "half_of_a_warp_synchronised",
        "`__syncwarp` of a half where the halves exchange",
        lambda x: [x[t ^ 16] for t in range(32)],
    ),
    FaultyPair(
        "scan_of_a_warp_in_shared_memory",
        "a warp's scan in shared memory without `__syncwarp`",
        lambda x: [*accumulate(x[:32]), *accumulate(x[32:64])],
    ),
    FaultyPair(
        "mask_of_lanes_that_happen_to_be_there",
        "`__activemask` taken for the whole warp behind a branch",
        _masked,
    ),
    FaultyPair(
        "leader_of_a_branch_counts_for_the_warp",
        "the leaders of two warps add with no atomic",
        lambda x: [sum(word % 2 for word in x[:64])],
    ),
    FaultyPair(
        "last_block_adds_up",
        "no fence before the ticket",
        each(lambda t, x: 3 * sum(x[64 * i + t] for i in range(4))),
        ctas=4,
    ),
    FaultyPair(
        "last_block_without_a_barrier_before_the_ticket",
        "the ticket is taken before the other warps have stored",
        each(lambda t, x: 3 * sum(x[64 * i + t] for i in range(4))),
        ctas=4,
    ),
    FaultyPair(
        "total_read_by_whoever_is_first",
        "every block stores the total so far",
        lambda x: [sum(word % 100 for word in x[:256])],
        ctas=4,
    ),
    FaultyPair(
        "second_barrier_of_a_grid",
        "a barrier's count is not raised for its second use",
        each(lambda t, x: x[(t + 192) % 256] + 1, 256),
        ctas=4,
    ),
    FaultyPair(
        "barrier_of_a_grid_that_one_thread_waits_at",
        "the other threads do not wait for the one that does",
        each(lambda t, x: x[(t + 64) % 256], 256),
        ctas=4,
    ),
    FaultyPair(
        "barrier_of_a_grid_that_counts_threads",
        "a count of threads where blocks arrive",
        each(lambda t, x: x[t], 256),
        ctas=4,
    ),
    FaultyPair(
        "ticket_of_the_scope_of_a_block", "`atomicAdd_block` between blocks", always(15, 1), ctas=4
    ),
    FaultyPair(
        "table_read_through_the_read_only_path", "`__ldg` of what the kernel wrote", mirrored()
    ),
    FaultyPair(
        "work_taken_from_a_counter",
        "the next piece is announced before all have read the last",
        each(lambda t, x: x[t] + 1, 512),
        ctas=2,
    ),
    FaultyPair(
        "work_taken_beyond_the_end",
        "a loop that runs past the arrays",
        each(lambda t, x: x[t] ^ 1, 4096),
        ctas=4,
    ),
    FaultyPair("lock_without_fences", "a lock with no fences", total(4), ctas=4),
    FaultyPair(
        "lock_released_by_a_plain_store", "a lock released by a plain store", total(4), ctas=4
    ),
    FaultyPair(
        "ticket_lock_served_too_early",
        "the next holder is let in before the store",
        lambda x: [sum(x[:4])],
        ctas=4,
    ),
    FaultyPair("locks_of_every_lane", "no fence before a lane releases the lock", total(64)),
    FaultyPair(
        "two_locks_in_opposite_order", "two locks are taken in opposite order", total(2), ctas=2
    ),
    FaultyPair(
        "mutual_exclusion_without_atomics",
        "Peterson's algorithm with no fence between store and load",
        total(2),
        ctas=2,
    ),
    FaultyPair("flag_without_a_fence", "a flag with no fences", mirrored(), ctas=2),
    FaultyPair(
        "value_fetched_before_its_flag",
        "the value is read before its flag is waited for",
        total(1),
        ctas=2,
    ),
    FaultyPair(
        "ring_without_room",
        "a producer does not wait for room",
        lambda x: [reduce(lambda sum_, word: sum_ * 3 + word, x[:8], 0)],
        ctas=2,
    ),
    FaultyPair(
        "table_made_once",
        "a plain check whether a table has been made",
        lambda x: [x[2] | 1] * 4,
        ctas=4,
    ),
    FaultyPair(
        "look_back_with_two_words",
        "a look-back's flag is set before its value",
        lambda x: [0, *accumulate(x[:3])],
        ctas=4,
    ),
    FaultyPair(
        "look_back_with_a_packed_word",
        "the halves of a look-back's word are stored apart",
        lambda x: [0, *accumulate(x[:3])],
        ctas=4,
    ),
    FaultyPair(
        "release_of_the_scope_of_a_block",
        "a release of the scope of a block, to another block",
        total(1),
        ctas=2,
    ),
    FaultyPair("flag_of_another_warp", "a flag in shared memory with no fence", total(1)),
    FaultyPair(
        "snapshot_taken_while_it_changes",
        "a reader does not look whether the version has changed",
        always(1, 1),
        ctas=2,
    ),
)
PIPELINES = (
    FaultyPair(
        "copy_that_nobody_waits_for", "`cp.async` is not waited for", each(lambda t, x: x[255 - t])
    ),
    FaultyPair(
        "copy_waited_for_by_its_thread_only",
        "no barrier after each thread's wait for its `cp.async`",
        each(lambda t, x: x[255 - t]),
    ),
    FaultyPair(
        "last_stage_not_waited_for",
        "the last group of `cp.async` is not waited for",
        weighed(4, lambda t, i, x: x[64 * i + 63 - t]),
    ),
    FaultyPair(
        "stage_refilled_before_all_have_read_it",
        "no barrier before `cp.async` fills a stage again",
        weighed(4, lambda t, i, x: x[64 * i + 63 - t]),
    ),
    FaultyPair(
        "copies_waited_for_without_a_commit", "`cp.async.wait_group` with no commit", mirrored()
    ),
    FaultyPair(
        "copies_arrive_at_a_barrier",
        "arrivals of copies that the count does not expect",
        mirrored(),
    ),
    FaultyPair(
        "store_to_what_a_copy_fills",
        "a store to a word that `cp.async` still fills",
        each(lambda t, x: 7 if (63 - t) % 8 == 0 else x[63 - t]),
    ),
    FaultyPair(
        "parity_that_never_flips",
        "the parity waited for stays 0",
        weighed(4, lambda t, i, x: x[64 * i + 63 - t]),
    ),
    FaultyPair("leaders_arrive_where_all_are_counted", "a count of 64, and 2 arrivals", mirrored()),
    FaultyPair("barrier_used_before_its_init", "no barrier after `mbarrier.init`", mirrored()),
    FaultyPair(
        "memory_of_a_barrier_used_for_data",
        "data over an mbarrier that is still valid",
        lambda x: [x[0]] * 64,
    ),
    FaultyPair(
        "stage_released_before_its_last_read",
        "a stage is released before its last read",
        lambda x: weighed(4, lambda t, i, y: y[64 * i + t] + y[64 * i + 63 - t])(x)[:32],
    ),
    FaultyPair(
        "producer_that_never_waits",
        "a producer that does not wait until a stage is empty",
        lambda x: weighed(6, lambda t, i, y: y[64 * i + t] + y[64 * i + 63 - t])(x)[:32],
    ),
    FaultyPair(
        "one_thread_waits_for_all", "one thread waits, with no barrier after it", mirrored()
    ),
    FaultyPair(
        "fewer_bytes_expected_than_copied",
        "half the bytes of two copies are expected",
        each(lambda t, x: x[32 * (1 - t // 32) + t % 32]),
    ),
    FaultyPair(
        "bulk_copy_to_an_odd_address",
        "a bulk copy to an address that is not a multiple of 16",
        lambda x: x[:32],
    ),
    FaultyPair(
        "block_ends_before_its_store_has_read",
        "the block ends while its bulk store may still read",
        each(lambda t, x: x[t] + 1),
    ),
    FaultyPair(
        "store_of_a_tile_not_yet_written",
        "a bulk store of what the other warp may still write",
        each(lambda t, x: x[t] + 1),
    ),
    FaultyPair(
        "loaded_then_written_back",
        "no proxy fence between the threads' stores and a bulk store",
        each(lambda t, x: x[t] * 3),
    ),
    FaultyPair(
        "reduced_by_two_blocks",
        "a block adds by `+=` where another reduces in bulk",
        each(lambda t, x: x[t] + x[64 + t]),
        ctas=2,
    ),
    FaultyPair(
        "box_over_the_edge",
        "the bytes of a box's part inside the array are expected",
        lambda x: _box(x, 8),
        takes_map=True,
    ),
    FaultyPair(
        "box_to_an_address_of_64_bytes",
        "a box to an address that is not a multiple of 128",
        lambda x: _box(x, 0),
        takes_map=True,
    ),
    FaultyPair(
        "box_read_before_it_came",
        "a barrier that counts the first of two boxes",
        lambda x: _box(x, 4),
        takes_map=True,
    ),
    FaultyPair(
        "operand_without_a_proxy_fence",
        "`wgmma` reads what threads stored with no proxy fence",
        always(64, 128),
        threads=128,
    ),
    FaultyPair(
        "operand_overwritten_during_the_product",
        "an operand of `wgmma` is overwritten before the wait",
        _after_product,
        threads=128,
    ),
)
CLUSTERS = (
    FaultyPair(
        "written_to_a_peer",
        "a barrier of the block where the cluster has to meet",
        crossed,
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "peer_that_may_not_have_started",
        "a store to a peer that may not run yet",
        crossed,
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "bins_of_a_cluster",
        "a block adds to bins that its peer may not have cleared",
        _bins_of_cluster,
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "read_between_arrival_and_wait",
        "a peer's memory is read between arrival and wait",
        crossed,
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "relaxed_arrival_of_a_cluster",
        "a relaxed arrival where data are handed over",
        crossed,
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "stores_that_count_bytes",
        "4 bytes more are expected than come",
        crossed,
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "multicast_to_one_only",
        "a multicast whose mask leaves out a block that waits",
        lambda x: [*x[:64][::-1], *x[:64][::-1]],
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "ring_of_a_cluster",
        "one trip of a ring meets in the block only",
        _ring,
        ctas=4,
        in_cluster=True,
    ),
    FaultyPair(
        "flag_in_a_peer",
        "a relaxed flag in a peer's memory",
        lambda x: x[:2][::-1],
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "peer_beyond_the_cluster",
        "a rank past the last of the cluster",
        crossed,
        ctas=2,
        in_cluster=True,
    ),
)
