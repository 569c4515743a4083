"""CTAs and warps that wait for each other through memory."""

from __future__ import annotations

import itertools

import numpy as np

from correct.kernel import MASK, Kernel, always, each


def _levels(x: list[int]) -> list[int]:
    """Levels of a search from vertex 0, of 256 vertices with three edges each."""
    level = [0] * 256
    level[0] = 1
    for depth in range(1, 5):
        edges = [(v, x[3 * v + e] % 256) for v in range(256) for e in range(3)]
        for to in {to for v, to in edges if level[v] == depth and level[to] == 0}:
            level[to] = depth + 1
    return level


def _geometric(count: int) -> int:
    value = 0
    for _ in range(count):
        value = (value * 3 + 1) & MASK
    return value


def _scan(x: list[int]) -> list[int]:
    return list(itertools.accumulate(word % 100 for word in x[: 40 * 64]))


def _stolen(x: list[int]) -> list[int]:
    return [sum(100 + task for task in range(2 + 3 * queue)) for queue in range(4)]


def _in_order(x: list[int]) -> list[int]:
    total = np.zeros(64, np.float32)
    for cta in range(4):
        mine = np.array([x[64 * cta + t] % 1000 for t in range(64)], np.float32)
        total = total * np.float32(0.5) + mine
    return [int(word) for word in total.view(np.uint32)]


def _six_slots(t: int, x: list[int]) -> int:
    return sum(x[64 * i + 63 - t] for i in range(6))


def _keys(x: list[int]) -> list[int]:
    keys = [x[t] % 40 + 1 for t in range(256)]
    return [keys.count(key) for key in range(41)]


def _greatest(x: list[int]) -> list[int]:
    floats = np.array([x[t] % 1000 << 16 for t in range(256)], np.uint32).view(np.float32)
    return [int(floats.max().view(np.uint32))]


KERNELS = (
    Kernel(
        "same_value_stored_by_all",
        "Many threads store one and the same value, with nothing that orders them.",
        lambda x: [int(any(w % 2 for w in x[:64])) + 7] * 256,
        ctas=4,
    ),
    Kernel(
        "breadth_first_search",
        "CTAs store the same level for a vertex that several of them reach.",
        _levels,
        ctas=4,
    ),
    Kernel(
        "monotone_flags_without_order",
        "Values that only fall are read with `volatile` while others lower them.",
        always(1, 256),
        ctas=4,
    ),
    Kernel(
        "spin_lock_of_warps",
        "A lock in shared memory that a lane of each of 16 warps takes.",
        lambda x: [sum(x[32 * w] for w in range(16))] * 512,
        threads=512,
    ),
    Kernel(
        "lock_taken_by_cas_released_by_a_store",
        "A lock of 40 CTAs, released by a volatile store.",
        lambda x: [sum(x[:40])],
        ctas=40,
    ),
    Kernel(
        "ticket_lock",
        "CTAs are served in the order of their tickets.",
        lambda x: [_geometric(40)],
        ctas=40,
    ),
    Kernel(
        "lock_with_back_off",
        "A lock whose waiters sleep longer and longer.",
        always(40, 1),
        ctas=40,
    ),
    Kernel(
        "queue_lock",
        "A lock whose waiters each poll a word of their own (MCS).",
        lambda x: [sum(x[:40])],
        ctas=40,
    ),
    Kernel(
        "readers_and_a_writer",
        "A sequence lock: readers try again when the writer was there.",
        always(1, 4),
        ctas=4,
    ),
    Kernel(
        "flag_by_release_and_acquire",
        "`st.release` after a barrier hands over what all threads of a CTA wrote.",
        each(lambda t, x: x[t % 64], 192),
        ctas=4,
    ),
    Kernel(
        "flag_and_value_in_one_word",
        "Value and flag in one volatile word: no fence is needed.",
        each(lambda t, x: x[(t + 37) % 256], 256),
        ctas=4,
    ),
    Kernel(
        "flag_and_value_in_16_bytes",
        "The same in one relaxed vector access of 16 bytes.",
        each(lambda t, x: 3 * x[(t + 45) % 256] + 3, 256),
        ctas=4,
    ),
    Kernel(
        "decoupled_look_back",
        "A scan in one pass: a warp looks back at 32 tiles at a time, polling.",
        _scan,
        ctas=40,
    ),
    Kernel(
        "last_cta_reduces",
        "Whichever CTA is the last adds up what all have left.",
        lambda x: [sum(x[:512])],
        ctas=8,
    ),
    Kernel(
        "persistent_ctas_take_tiles",
        "A tile counter: CTAs take tiles until there are none.",
        each(lambda t, x: 3 * x[t], 13 * 64),
        ctas=4,
    ),
    Kernel(
        "persistent_ctas_prefetch_the_next_tile",
        "The number of the next tile is fetched while this one is worked on.",
        each(lambda t, x: x[t] + 11, 13 * 64),
        ctas=4,
    ),
    Kernel(
        "work_stealing_queues",
        "CTAs take tasks from other CTAs' queues when their own is empty.",
        _stolen,
        ctas=4,
    ),
    Kernel(
        "split_k_turns_in_order",
        "CTAs add to one tile in turn, so that the sum is the same each time.",
        _in_order,
        ctas=4,
    ),
    Kernel(
        "sense_reversing_barrier",
        "A barrier of the grid that is made ready for its next use by the last to come.",
        each(lambda t, x: x[255 - t] + 2, 256),
        ctas=4,
    ),
    Kernel(
        "producer_and_consumer_by_named_barriers",
        "Two slots handed to and fro by `bar.arrive` and `bar.sync`.",
        each(_six_slots),
        threads=128,
    ),
    Kernel("hash_table_by_cas", "Keys inserted with `atomicCAS`, open addressing.", _keys, ctas=4),
    Kernel(
        "list_by_cas",
        "A stack of nodes without a lock, walked by the last thread.",
        lambda x: [sum(range(1, 129))],
        ctas=2,
    ),
    Kernel(
        "float_maximum_by_cas",
        "A maximum by `atomicCAS`, begun with a volatile read.",
        _greatest,
        ctas=4,
    ),
)
