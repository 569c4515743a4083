"""Warp-synchronous code, locks, flags and queues."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate

from correct.kernel import MASK, always, each

from pairs.pair import FaultyPair, mirrored, total


def _masked(x: list[int]) -> list[int]:
    odd = [word if t % 2 == 0 else word * 5 + x[word % 64] & MASK for t, word in enumerate(x[:64])]
    return [32 + sum(word % 16 for word in odd[t // 32 * 32 :][:32]) for t in range(64)]


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
