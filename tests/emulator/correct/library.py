"""libcu++ and CUB."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import reduce

from correct.kernel import MASK, Kernel, each


def _arranged(x: list[int]) -> list[int]:
    items = [(x[i] if i < 250 else 1) + i // 4 for i in range(256)]
    return [*items[:250], *[0] * 6, *items]


def _warp_scans(x: list[int]) -> list[int]:
    small = [word % 100 for word in x[:64]]
    scans = [sum(small[t // 16 * 16 : t + 1]) for t in range(64)]
    heads = []
    for t in range(64):
        lane = t % 32
        end = min(lane + 10, 32) if lane % 10 == 0 else lane
        heads.append(sum(small[t : t + end - lane]))
    sorts = [*sorted(x[:64]), *sorted(x[64:128])]
    return [*scans, *heads, *sorts]


def _edges(x: list[int]) -> list[int]:
    items = [word % 2 for word in x[:256]]
    return [1, *(int(a != b) for a, b in itertools.pairwise(items))]


def _merged(x: list[int]) -> list[int]:
    return sorted(x[:180], reverse=True)


def _parity(x: list[int]) -> list[int]:
    return [x[63 - t] + i for i in range(3) for t in range(64)]


def _turns(x: list[int]) -> list[int]:
    return [reduce(lambda value, word: (value * 2 + word % 2) & MASK, x[:6], 0)]


def _dropped(t: int, x: list[int]) -> int:
    alive = [sum(u % 7 > i for u in range(64)) for i in range(6)]
    return sum(alive) if t % 7 == 6 else 0


def _steps(count: int, factor: int) -> Callable[[int, list[int]], int]:
    def value(t: int, x: list[int]) -> int:
        return reduce(lambda total, i: total * factor + x[64 * i + 63 - t], range(count), 0)

    return value


KERNELS = (
    Kernel(
        "cub_reductions",
        "`BlockReduce` by raking and by warps, of all threads and of 50.",
        lambda x: [sum(x[:64]), max(x[:50])],
    ),
    Kernel(
        "cub_scans",
        "`BlockScan` of three items per thread, with the total.",
        lambda x: [sum(w % 100 for w in x[:i]) + sum(w % 100 for w in x[:192]) for i in range(192)],
    ),
    Kernel(
        "cub_radix_sort_of_pairs",
        "`BlockRadixSort` of keys with values, blocked to striped.",
        lambda x: sorted(range(256), key=lambda i: x[i]),
    ),
    Kernel(
        "cub_load_and_store_in_every_arrangement",
        "`BlockLoad` and `BlockStore`, transposed, vectorised, and cut off.",
        _arranged,
    ),
    Kernel(
        "cub_histograms",
        "`BlockHistogram` by sorting.",
        lambda x: [sum(word % 32 == bin_ for word in x[:256]) for bin_ in range(32)],
    ),
    Kernel(
        "cub_warp_scans_and_sorts",
        "`WarpScan`, segmented `WarpReduce`, and `WarpMergeSort`, which reads beyond its keys.",
        _warp_scans,
    ),
    Kernel(
        "cub_discontinuities_and_exchange",
        "`BlockExchange` and `BlockDiscontinuity` in one memory.",
        _edges,
    ),
    Kernel("cub_merge_sort", "`BlockMergeSort` of fewer items than it has room for.", _merged),
    Kernel(
        "barrier_with_a_completion_function",
        "`cuda::barrier` whose last arrival runs a function.",
        lambda x: [sum(x[:64])] * 64,
    ),
    Kernel(
        "barrier_whose_threads_drop_out",
        "`arrive_and_drop`: fewer threads in each phase.",
        each(_dropped),
    ),
    Kernel(
        "barrier_waited_for_by_parity_with_a_time_limit",
        "`try_wait_parity_for`.",
        _parity,
    ),
    Kernel(
        "barrier_of_the_device",
        "`cuda::barrier` of the device's scope, in global memory.",
        each(lambda t, x: x[127 - t], 128),
        ctas=2,
    ),
    Kernel(
        "atomic_ref_in_every_order",
        "`cuda::atomic_ref` of every order and scope.",
        lambda x: [max(x[:128])] * 128,
        ctas=2,
    ),
    Kernel("waiting_at_an_atomic", "`wait` and `notify_all` of an atomic.", _turns, ctas=6),
    Kernel(
        "semaphore_of_two",
        "`cuda::counting_semaphore`: eight warps, two places.",
        lambda x: [9] * 256,
        threads=256,
    ),
    Kernel(
        "latch_before_the_others_go_on",
        "`cuda::latch`: one warp counts down, the other waits.",
        each(lambda t, x: 1 if t < 32 else x[63 - t]),
    ),
    Kernel(
        "pipeline_of_producers_and_consumers",
        "`cuda::pipeline` with producer and consumer threads.",
        each(_steps(5, 3)),
        threads=128,
    ),
    Kernel(
        "pipeline_of_the_whole_block",
        "`cuda::pipeline` of three stages that all threads fill and empty.",
        each(_steps(6, 5)),
    ),
    Kernel(
        "memcpy_async_at_a_barrier",
        "`cuda::memcpy_async` that arrives at a `cuda::barrier`: a bulk copy.",
        each(lambda t, x: x[63 - t]),
    ),
)
