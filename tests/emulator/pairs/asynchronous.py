"""Bulk copies, mbarriers, products in flight, stages of a cluster."""

from __future__ import annotations

from correct.kernel import MASK, always, each

from pairs.pair import FaultyPair, horner, mirrored


def _returned(x: list[int]) -> list[int]:
    """Each block gets its peer's words from the end, and reads those from the end."""
    return [*x[64:128], *x[:64]]


def _three_times(x: list[int]) -> list[int]:
    return [
        horner([x[128 * i + 64 * (1 - b) + 63 - t] for i in range(3)])
        for b in range(2)
        for t in range(64)
    ]


ASYNCHRONOUS = (
    FaultyPair(
        "bulk_copy_of_a_length_that_is_no_multiple_of_16", "a bulk copy of 248 bytes", mirrored()
    ),
    FaultyPair("barrier_at_an_odd_word", "an mbarrier that is not at a multiple of 8", mirrored()),
    FaultyPair(
        "bytes_expected_at_the_other_stage",
        "the bytes of two stages are expected at the first",
        each(lambda t, x: x[63 - t] * 3 + x[64 + t]),
    ),
    FaultyPair(
        "consumer_begins_in_the_phase_of_the_producer",
        "a consumer begins with the producer's parity",
        each(lambda t, x: horner([x[64 * i + 32 + t] for i in range(6)]), 32),
    ),
    FaultyPair(
        "thread_that_arrives_twice",
        "a thread arrives twice in a phase",
        each(lambda t, x: horner([x[64 * i + 63 - t] for i in range(4)])),
    ),
    FaultyPair(
        "arrival_at_the_own_barrier",
        "threads arrive at their own block's barrier for their peer's",
        _returned,
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "bytes_expected_by_one_of_two",
        "one block expects the bytes of both",
        lambda x: [*x[:64][::-1], *x[:64][::-1]],
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "stage_of_a_peer_overwritten_before_it_was_read",
        "a stage is released to a peer before it is read",
        _three_times,
        ctas=2,
        in_cluster=True,
    ),
    FaultyPair(
        "last_product_not_waited_for",
        "`wgmma.wait_group 1` before the result is used",
        always(128, 128),
        threads=128,
    ),
    FaultyPair(
        "store_waited_for_without_a_commit",
        "`wait_group.read` of a bulk store that is not committed",
        lambda x: [word + i & MASK for i in range(2) for word in x[64 * i : 64 * i + 64]],
    ),
    FaultyPair(
        "refilled_between_the_barrier_and_the_wait",
        "the barrier comes before the wait for the bulk store's read",
        lambda x: [word + i & MASK for i in range(3) for word in x[64 * i : 64 * i + 64]],
    ),
    FaultyPair(
        "copy_longer_than_its_stage",
        "a bulk copy of 16 bytes more than its stage",
        each(lambda t, x: x[63 - t] + x[127 - t] * 5),
    ),
)
