"""Protocols between CTAs, warps and engines: flags, counters, queues, chains of fences."""

from __future__ import annotations

import itertools
from functools import reduce

from correct.kernel import Kernel, each

CTAS = 72
"""Of 32 warps each: more than are resident at once."""


def _folded(x: list[int], first: int, step: int, count: int, factor: int = 3) -> int:
    """x[first], x[first + step] ..., each added to `factor` times the sum so far."""
    return reduce(lambda sum_, i: sum_ * factor + x[first + step * i], range(count), 0)


def _rounds(t: int, x: list[int]) -> int:
    order = [64 * (turn % 4) + t for turn in range(12)]
    return reduce(lambda sum_, at: sum_ * 3 + x[at], order, 0)


def _ring(t: int, x: list[int]) -> int:
    warp, lane = t // 32 + 1, t % 32
    return _folded(x, (lane + warp) % 32, 32, 8)


def _stored(x: list[int]) -> list[int]:
    return [x[at] + at // 64 for at in range(6 * 64)]


def _depths(t: int, x: list[int]) -> int:
    base, lane = 256 * (t // 32), t % 32
    count = 2 if t < 32 else 7
    first = sum(x[base + 32 * i + 31 - lane] for i in range(count))
    return first * 3 + x[base + 7 * 32 + 31 - lane]


def _announced(x: list[int]) -> list[int]:
    back = [x[63 - t] for t in range(64)]
    return [*back, *(word + 1 for word in back)]


def _worked(t: int, x: list[int]) -> int:
    total = x[t % 64] % 7
    for _ in range(5):
        total = total * 3 + 1
    return total + sum(word % 1000 for word in x[:256])


def _multicast(t: int, x: list[int]) -> int:
    return x[64 * (3 if t // 64 % 2 else 0) + 63 - t % 64]


def _passed(x: list[int]) -> list[int]:
    values = [x[64 * rank : 64 * rank + 64] for rank in range(4)]
    for _ in range(5):
        values = [[3 * word + rank for word in reversed(values[rank - 1])] for rank in range(4)]
    return list(itertools.chain(*values))


def _quarters(x: list[int]) -> list[int]:
    values = list(x[:64])
    for i in range(4):
        old = list(values)
        for t in range(64):
            if i < t % 32 // 8 + 1:
                values[t] = old[t] * 3 + old[t ^ 7]
    return values


def _peers(x: list[int]) -> list[int]:
    return [sum(w % 6 + 1 for w in x[:64] if w % 5 == key) for key in range(5)]


def _after_the_other(t: int, x: list[int]) -> int:
    return sum(1 + sum(x[(lane + i) % 32] % 256 * i for i in range(32)) for lane in range(t, 32))


KERNELS = (
    Kernel(
        "chain_through_a_third_cta",
        "CTA 2 acquires from CTA 1 what CTA 1 acquired from CTA 0.",
        each(lambda t, x: x[63 - t]),
        ctas=3,
    ),
    Kernel(
        "relaxed_flag_between_fences",
        "A relaxed flag, with a fence before it is set and one after it was seen.",
        each(lambda t, x: x[63 - t]),
        ctas=2,
    ),
    Kernel(
        "counter_as_release_sequence",
        "Six warps add with `red.release`; who sees the last sum has seen them all.",
        each(lambda t, x: x[t] + x[64 + t] + x[128 + t]),
        ctas=4,
    ),
    Kernel(
        "queue_of_one_producer_and_one_consumer",
        "Four slots between two CTAs: head and tail by acquire and release.",
        lambda x: [_folded(x, 0, 1, 20, 5)],
        ctas=2,
    ),
    Kernel(
        "queue_of_warps_in_shared_memory",
        "Four slots between two warps: volatile words and `__threadfence_block()`.",
        each(lambda t, x: _folded(x, 31 - t, 32, 9), 32),
    ),
    Kernel(
        "node_published_by_an_exchange",
        "CTAs push nodes to a list by compare-and-swap; the last one walks it.",
        lambda x: [sum(x[:40])],
        ctas=40,
    ),
    Kernel(
        "ownership_handed_round_by_compare_and_swap",
        "A buffer goes round four CTAs three times; atomics are polled.",
        each(_rounds),
        ctas=4,
    ),
    Kernel(
        "acquire_and_release_of_the_cta",
        "`st.release.cta` and `atom.acquire.cta` in shared memory.",
        each(lambda t, x: x[31 - t], 32),
    ),
    Kernel(
        "last_cta_of_each_group_reduces_again",
        "Groups of CTAs use one workspace one after the other, over two waves.",
        lambda x: [sum(x[24 * group : 24 * group + 24]) for group in range(3)],
        threads=1024,
        ctas=CTAS,
    ),
    Kernel(
        "split_k_workspace_with_a_semaphore",
        "The parts of a tile add in turn to a workspace, over two waves.",
        each(lambda t, x: _folded(x, 96 * (t // 32) + t % 32, 32, 3), 24 * 32),
        threads=1024,
        ctas=CTAS,
    ),
    Kernel(
        "scan_in_one_pass_over_waves",
        "A look-back whose later tiles belong to a later wave.",
        lambda x: itertools.accumulate(x[:CTAS]),
        threads=1024,
        ctas=CTAS,
    ),
    Kernel(
        "a_depth_of_copies_for_each_warp",
        "`cp.async.wait_group 6` in one warp, 1 in the other.",
        each(_depths),
    ),
    Kernel(
        "groups_of_copies_by_some_lanes",
        "Groups of `cp.async` that are empty in some lanes.",
        each(lambda t, x: x[31 - t] + 3 * x[63 - t], 32),
        threads=32,
    ),
    Kernel(
        "copies_that_arrive_and_are_counted",
        "`cp.async.mbarrier.arrive` without `.noinc`.",
        each(lambda t, x: x[63 - t]),
    ),
    Kernel(
        "ring_by_named_barriers",
        "Three slots, six named barriers whose numbers are in registers.",
        each(_ring),
        threads=96,
    ),
    Kernel(
        "bytes_expected_after_the_copies",
        "`expect_tx` in pieces, by two threads, after the copies have begun.",
        each(lambda t, x: x[127 - t] + x[t]),
    ),
    Kernel(
        "one_waits_for_the_copy_and_a_barrier_tells_the_others",
        "Only one thread waits for the mbarrier; the others learn it by `__syncthreads()`.",
        each(lambda t, x: _folded(x, 63 - t, 64, 5)),
    ),
    Kernel(
        "stage_stored_when_a_barrier_says_that_it_is_full",
        "Writers fence and arrive; another warp stores two stages in turn.",
        _stored,
        threads=96,
    ),
    Kernel(
        "bulk_store_read_back_by_the_cta",
        "What a bulk store wrote is loaded after `wait_group 0` and a barrier.",
        each(lambda t, x: x[63 - t]),
    ),
    Kernel(
        "bulk_store_announced_to_another_cta",
        "The same in other CTAs, behind a flag, by loads and by a bulk copy.",
        _announced,
        ctas=3,
    ),
    Kernel(
        "written_by_threads_and_copied_by_another_cta",
        "Global memory from ordinary stores to another CTA's bulk copy.",
        each(lambda t, x: 3 * x[63 - t]),
        ctas=2,
    ),
    Kernel(
        "arrivals_drop_out_of_a_ring",
        "`mbarrier.arrive_drop`: one warp fewer in each phase.",
        lambda x: [sum(x[4 * i + warp] for warp in range(i, 4)) for i in range(3)],
        threads=128,
    ),
    Kernel(
        "work_between_arriving_and_waiting",
        "A cluster's barrier split in two, with work between.",
        each(_worked, 256),
        ctas=4,
        cluster=4,
    ),
    Kernel(
        "multicast_to_every_second_cta",
        "Two multicasts with masks that do not name their issuers' neighbours.",
        each(_multicast, 256),
        ctas=4,
        cluster=4,
    ),
    Kernel(
        "stages_freed_in_every_cta_of_a_multicast",
        "Consumers of both CTAs arrive at the barrier of the one that copies.",
        each(lambda t, x: _folded(x, 63 - t % 64, 64, 7), 128),
        threads=96,
        ctas=2,
        cluster=2,
    ),
    Kernel(
        "values_passed_round_a_ring_of_ctas",
        "`st.async` to the right, credits to the left.",
        _passed,
        ctas=4,
        cluster=4,
    ),
    Kernel(
        "quarters_of_a_warp_exchange",
        "`__syncwarp()` of eight lanes, as often as their number says.",
        _quarters,
    ),
    Kernel(
        "peers_found_in_a_loop",
        "`__match_any_sync` of lanes that leave a loop one after the other.",
        _peers,
    ),
    Kernel(
        "lanes_ready_one_after_the_other",
        "Lanes of one warp that wait for each other, in a loop in which none of them waits.",
        each(_after_the_other, 32),
        threads=32,
    ),
)
