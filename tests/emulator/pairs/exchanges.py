"""Look-back, queues with sequence numbers, locks: words exchanged between CTAs and warps."""

from __future__ import annotations

from itertools import accumulate

from correct.kernel import MASK, each

from pairs.pair import FaultyPair, horner, mirrored, total


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


def _kept(x: list[int]) -> list[int]:
    return [word for word in x[:32] if word % 2]


def _keys(x: list[int]) -> list[int]:
    return [x[t % 8 + 1] | 1 for t in range(64)]


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
        each(lambda t, x: horner([x[64 * i + t] for i in range(4)])),
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
