"""Observations, chains of atomics, scopes, one thread for others, between CTAs."""

from __future__ import annotations

from itertools import accumulate

from correct.kernel import MASK, each

from pairs.pair import FaultyPair, horner, mirrored


def _rounds(x: list[int]) -> list[int]:
    now = [x[64 * b : 64 * b + 64] for b in range(4)]
    for _ in range(3):
        now = [
            [a[t] * 3 + b[63 - t] & MASK for t in range(64)]
            for a, b in zip(now, now[1:] + now[:1], strict=True)
        ]
    return [word for block in now for word in block]


ORDER = (
    FaultyPair(
        "counter_reset_by_a_warp_that_has_not_seen_it",
        "a lock's counter is reset by a warp that has not seen it",
        mirrored(),
        ctas=2,
    ),
    FaultyPair(
        "word_stored_before_a_relaxed_one",
        "a relaxed store is taken to announce what was stored before it",
        lambda x: [x[0] | 1, x[1]],
        ctas=2,
    ),
    FaultyPair(
        "relayed_by_a_store_that_releases_nothing",
        "the second of three blocks hands on by a relaxed store",
        lambda x: x[:1],
        ctas=3,
    ),
    FaultyPair(
        "sum_stored_instead_of_added",
        "a relaxed store breaks a chain of atomics",
        lambda x: x[:1],
        ctas=3,
    ),
    FaultyPair(
        "release_of_a_block_to_an_acquire_of_all",
        "a release of a block's scope to an acquire of the system's",
        lambda x: x[:1],
        ctas=2,
    ),
    FaultyPair(
        "round_begun_before_the_count_is_cleared",
        "a grid's barrier begins its next round before its count is 0",
        _rounds,
        ctas=4,
    ),
    FaultyPair(
        "node_linked_after_it_was_pushed",
        "a node's link is stored after it was pushed",
        lambda x: [sum(x[1:5])],
        ctas=2,
    ),
    FaultyPair(
        "changed_cleared_while_it_is_looked_at",
        "no barrier between reading a flag and clearing it",
        lambda x: accumulate((word % 64 for word in x[:64]), max),
    ),
    FaultyPair(
        "reader_that_leaves_before_it_has_read",
        "a reader gives its lock back before it reads",
        lambda x: [2],
        ctas=2,
    ),
    FaultyPair(
        "leader_counted_from_one",
        "the leader's lane is counted from 1",
        lambda x: [sum(word for word in x[:64] if word % 3 == 0)],
    ),
    FaultyPair(
        "any_producer_waited_for_instead_of_all",
        "the first of three producers is waited for",
        each(lambda t, x: x[t] + x[64 + t] * 3 + x[128 + t] * 9),
        ctas=4,
    ),
    FaultyPair(
        "stores_of_lanes_announced_by_the_first",
        "no `__syncwarp` before a lane announces the others' stores",
        mirrored(32),
        threads=32,
        ctas=2,
    ),
    FaultyPair(
        "flag_seen_by_the_first_lane_for_all",
        "lanes read before one of them has seen the flag",
        mirrored(32),
        threads=32,
        ctas=2,
    ),
    FaultyPair(
        "mailbox_emptied_before_its_letter_was_read",
        "a mailbox is emptied before its letter is read",
        lambda x: [horner(x[:3])],
        ctas=2,
    ),
)
