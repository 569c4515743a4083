"""Pipelines by `cp.async`, mbarriers, bulk and tensor copies, `wgmma`."""

from __future__ import annotations

from correct.kernel import always, each

from pairs.pair import FaultyPair, mirrored, weighed


def _box(x: list[int], y: int) -> list[int]:
    rows = range(y, y + 8)
    return [x[40 * row + column] if row < 12 else 0 for row in rows for column in range(32)]


def _after_product(x: list[int]) -> list[int]:
    return [64 + t % 64 for t in range(128)]


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
