"""The second table of pairs, of six more sources."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate

from correct.kernel import MASK, always, each

from pairs.pairs import FaultyPair, crossed, mirrored, total, weighed


def _horner(words: list[int]) -> int:
    return reduce(lambda sum_, word: sum_ * 3 + word, words, 0)


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


def _fed(x: list[int], size: int, count: int) -> list[int]:
    return [_horner([x[size * i + size - 1 - t] for i in range(count)]) for t in range(size)]


def _boxes(x: list[int]) -> list[int]:
    return [
        x[40 * row + column] + x[40 * (row + 4) + column]
        for row in range(8)
        for column in range(32)
    ]


def _states(x: list[int]) -> list[int]:
    return [_horner([x[64 * i + 63 - t] for i in range(3)]) for t in range(64)]


def _outbox(x: list[int]) -> list[int]:
    return [
        (x[63 - t] + peer & MASK) ^ (x[64 + t] + peer & MASK) for peer in (1, 0) for t in range(64)
    ]


def _ranks(x: list[int]) -> list[int]:
    digits = [word % 16 for word in x[:64]]
    return [digits[:t].count(digits[t]) for t in range(64)]


def _roots(x: list[int]) -> list[int]:
    root = list(range(64))

    def find(a: int) -> int:
        while root[a] != a:
            a = root[a]
        return a

    for t in range(64):
        a, b = find(t), find(x[t] % 64 & ~7)
        root[max(a, b)] = min(a, b)
    return [find(t) for t in range(64)]


def _senses(x: list[int]) -> list[int]:
    now = x[:128]
    for _ in range(3):
        now = [now[t] * 3 + now[(t + 32) % 128] & MASK for t in range(128)]
    return now


def _loops(x: list[int]) -> list[int]:
    n = [word % 4 + 1 for word in x[:32]]
    sums = [sum(x[32 * i + k] % 100 for k in range(32) if n[k] > i) for i in range(4)]
    return [sum(sums[: n[t]]) for t in range(32)]


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


def _kept(x: list[int]) -> list[int]:
    return [word for word in x[:32] if word % 2]


def _keys(x: list[int]) -> list[int]:
    return [x[t % 8 + 1] | 1 for t in range(64)]


def _maxima(x: list[int]) -> list[int]:
    return [_horner([max(x[64 * i : 64 * i + 64]) for i in range(3)])] * 64


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
ROLES = (
    FaultyPair(
        "phases_begun_anew_with_each_tile",
        "phases start again with each tile",
        lambda x: _fed(x, 32, 15),
    ),
    FaultyPair(
        "stage_released_by_one_of_two_consumers",
        "one of two consumers releases a stage",
        weighed(6, lambda t, i, x: x[64 * i + 63 - t]),
        threads=96,
    ),
    FaultyPair(
        "next_stage_released_instead_of_this_one",
        "a consumer releases another stage than it read",
        lambda x: _fed(x, 32, 7),
    ),
    FaultyPair(
        "arrival_before_the_bytes_are_expected",
        "the arrival comes before its bytes are expected",
        mirrored(),
    ),
    FaultyPair(
        "two_staging_buffers_and_a_wait_for_two",
        "`wait_group.read 2` with two buffers",
        each(lambda t, x: x[t] * 5 + t // 64, 320),
    ),
    FaultyPair(
        "store_waited_for_by_another_lane",
        "another thread than the one that committed waits",
        lambda x: [*(word + 7 for word in x[:64]), *[1] * 64],
    ),
    FaultyPair(
        "reduction_announced_before_it_was_written",
        "`wait_group.read` before a bulk reduction is announced",
        each(lambda t, x: sum(x[64 * i + t] for i in range(4))),
        ctas=4,
    ),
    FaultyPair(
        "sent_to_a_peer_without_a_proxy_fence",
        "no proxy fence before a copy to a peer",
        lambda x: [3 * word for word in crossed(x)],
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "outbox_filled_again_while_it_is_sent",
        "the source of a copy to a peer is written again",
        _outbox,
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "named_barrier_with_another_count",
        "`bar.arrive` and `bar.sync` with different counts",
        mirrored(32),
    ),
    FaultyPair(
        "ring_of_named_barriers_without_empty",
        "the second buffer is never waited for to be empty",
        lambda x: _fed(x, 32, 6),
    ),
    FaultyPair(
        "fence_before_the_stores_instead_of_after",
        "the proxy fence precedes the stores",
        lambda x: [word * 9 for word in x[:32]],
        threads=32,
    ),
    FaultyPair(
        "tested_once_instead_of_in_a_loop",
        "`try_wait` with no loop",
        each(lambda t, x: x[63 - t] + 1),
    ),
    FaultyPair(
        "state_of_an_earlier_phase_waited_for",
        "`test_wait` with the state of an earlier phase",
        _states,
    ),
    FaultyPair(
        "halves_sent_to_a_barrier_that_may_not_be_there",
        "a multicast before the peer has initialised its barrier",
        lambda x: [*x[:64][::-1], *x[:64][::-1]],
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "freed_in_three_of_four_blocks",
        "a multicast's stage is freed by three of four blocks",
        lambda x: _fed(x, 32, 4) * 4,
        ctas=4,
        in_cluster=True,
    ),
    FaultyPair(
        "bytes_expected_where_nothing_comes",
        "bytes are expected at the sender's barrier",
        mirrored(),
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "box_with_its_coordinates_exchanged",
        "coordinates of a box exchanged",
        lambda x: [x[40 * (4 + i // 32) + 8 + i % 32] for i in range(256)],
        takes_map=True,
    ),
    FaultyPair(
        "boxes_of_a_tile_of_which_one_is_forgotten",
        "one of two boxes is never fetched",
        _boxes,
        takes_map=True,
    ),
)
EXCHANGES = (
    FaultyPair(
        "sequence_of_a_slot_set_before_its_value",
        "a slot's sequence number is set before its value",
        total(8),
        ctas=4,
    ),
    FaultyPair(
        "slot_given_back_before_it_was_read",
        "a slot is given back before its value is read",
        total(8),
        ctas=4,
    ),
    FaultyPair(
        "look_back_of_a_warp",
        "sums are loaded before their states",
        lambda x: [0, *accumulate(x[:5])],
        threads=32,
        ctas=6,
    ),
    FaultyPair(
        "node_published_by_a_plain_store",
        "a plain store publishes a node",
        lambda x: [x[0] ^ x[1]],
        ctas=2,
    ),
    FaultyPair(
        "partial_sum_read_before_its_turn",
        "another partial sum's flag is waited for",
        each(lambda t, x: sum(x[64 * i + t] for i in range(4))),
        ctas=4,
    ),
    FaultyPair(
        "turn_taken_by_one_thread_for_all",
        "one thread waits for the turn, with no barrier after it",
        each(lambda t, x: _horner([x[64 * i + t] for i in range(4)])),
        ctas=4,
    ),
    FaultyPair(
        "next_tile_in_the_slot_of_this_one",
        "the next tile's number overwrites this one's",
        each(lambda t, x: x[t] + 5, 512),
        ctas=2,
    ),
    FaultyPair(
        "counter_read_by_peers_while_the_leader_adds",
        "no `__syncwarp` between a counter's reads and its update",
        _ranks,
        threads=32,
    ),
    FaultyPair(
        "value_of_a_key_read_before_it_is_there",
        "a key is seen before its value is there",
        _keys,
        ctas=2,
    ),
    FaultyPair("roots_found_by_plain_loads", "plain loads of words that others swap", _roots),
    FaultyPair(
        "sense_that_is_read_plainly",
        "a flag in shared memory polled by plain loads, and not for ever",
        _senses,
        threads=128,
    ),
    FaultyPair(
        "rank_that_counts_the_lane_itself", "a rank counts the lane itself", _kept, threads=32
    ),
    FaultyPair(
        "fence_of_the_block_between_blocks",
        "`__threadfence_block` between blocks",
        mirrored(),
        ctas=2,
    ),
    FaultyPair(
        "steps_of_a_warp_by_volatile_alone", "`volatile` in place of `__syncwarp`", total(64)
    ),
    FaultyPair(
        "mask_taken_before_lanes_left_the_loop",
        "a mask with lanes that have left the loop",
        _loops,
        threads=32,
    ),
    FaultyPair(
        "longest_path_relaxed_by_plain_stores",
        "plain loads and stores in place of `atomicMax`",
        each(lambda t, x: t + 1),
    ),
)
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
TENSORS = (
    FaultyPair(
        "matrix_loaded_before_the_barrier",
        "`ldmatrix` of what another warp stored, before the barrier",
        always(256),
    ),
    FaultyPair(
        "matrices_loaded_past_the_last_row",
        "a row past the last by `ldmatrix`",
        always(64, 32),
        threads=32,
    ),
    FaultyPair(
        "result_stored_as_matrices_and_read_by_others",
        "`__syncwarp` after `stmatrix` to another warp",
        each(lambda t, x: x[t ^ 32]),
    ),
    FaultyPair(
        "stage_released_with_its_product_in_flight",
        "the stage of a `wgmma` in flight is released",
        always(896, 128),
        threads=160,
    ),
    FaultyPair(
        "product_waited_for_without_a_commit",
        "`wgmma.wait_group` with no commit",
        always(64, 128),
        threads=128,
    ),
    FaultyPair(
        "accumulators_cleared_after_the_fence",
        "accumulators are written after `wgmma.fence`",
        each(lambda t, x: x[t] % 64 * 4 + 70, 128),
        threads=128,
    ),
    FaultyPair(
        "first_turn_that_nobody_gave", "nobody gives the first turn", always(192, 256), threads=256
    ),
)
TENSOR_MEMORY = (
    FaultyPair(
        "other_parity_waited_for", "the parity that passes at once", always(16, 128), threads=128
    ),
    FaultyPair(
        "operand_refilled_while_it_is_multiplied",
        "an operand of an MMA in flight is written",
        always(112, 128),
        threads=128,
    ),
    FaultyPair(
        "accumulator_overwritten_before_it_was_loaded",
        "an accumulator is overwritten before it is loaded",
        always(_horner([16 * i for i in range(1, 7)]), 128),
        threads=160,
    ),
    FaultyPair("columns_never_given_back", "no `tcgen05.dealloc`", always(16, 128), threads=128),
    FaultyPair(
        "columns_given_back_while_others_load",
        "no barrier before `tcgen05.dealloc`",
        always(16, 128),
        threads=128,
    ),
    FaultyPair(
        "first_product_added_to_nothing",
        "the first MMA adds to what nobody wrote",
        always(32, 128),
        threads=128,
    ),
    FaultyPair(
        "operands_written_without_a_proxy_fence",
        "no proxy fence between stores and an MMA",
        always(16, 128),
        threads=128,
    ),
    FaultyPair(
        "lanes_of_another_warp_loaded",
        "another warp's lanes of tensor memory",
        each(lambda t, x: 16 << t // 32, 128),
        threads=128,
    ),
    FaultyPair(
        "columns_of_the_product_not_those_loaded",
        "columns that no product wrote",
        always(16, 128),
        threads=128,
    ),
    FaultyPair(
        "second_accumulator_committed_with_the_first",
        "two commits to one barrier",
        always(32, 128),
        threads=128,
    ),
    FaultyPair(
        "tensor_memory_stored_and_not_waited_for",
        "no `tcgen05.wait::st` before others load",
        each(lambda t, x: t, 128),
        threads=256,
    ),
)
