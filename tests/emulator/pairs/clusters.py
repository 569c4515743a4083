"""Clusters with distributed shared memory."""

from __future__ import annotations

from pairs.pair import FaultyPair, counted, crossed


def _bins_of_cluster(x: list[int]) -> list[int]:
    return counted(128, 64)(x)


def _ring(x: list[int]) -> list[int]:
    return [x[64 * ((cta - 3) % 4) + t] + 3 for cta in range(4) for t in range(64)]


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
