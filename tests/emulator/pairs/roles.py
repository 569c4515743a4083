"""Warps with roles, and rings that TMA fills."""

from __future__ import annotations

from correct.kernel import MASK, each

from pairs.pair import FaultyPair, crossed, horner, mirrored, weighed


def _fed(x: list[int], size: int, count: int) -> list[int]:
    return [horner([x[size * i + size - 1 - t] for i in range(count)]) for t in range(size)]


def _boxes(x: list[int]) -> list[int]:
    return [
        x[40 * row + column] + x[40 * (row + 4) + column]
        for row in range(8)
        for column in range(32)
    ]


def _states(x: list[int]) -> list[int]:
    return [horner([x[64 * i + 63 - t] for i in range(3)]) for t in range(64)]


def _outbox(x: list[int]) -> list[int]:
    return [
        (x[63 - t] + peer & MASK) ^ (x[64 + t] + peer & MASK) for peer in (1, 0) for t in range(64)
    ]


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
