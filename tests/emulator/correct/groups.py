"""Cooperative groups."""

from __future__ import annotations

from functools import reduce
from operator import xor

from correct.kernel import MASK, Kernel, bits, each, warp_of


def _four_sizes(t: int, x: list[int]) -> int:
    four, sixteen = t // 4 * 4, t // 16 * 16
    total = x[t] + x[t - 1 if t % 4 else t] + x[sixteen + 5] + x[t ^ 1]
    any_ = any(x[i] % 7 == 0 for i in range(four, four + 4))
    all_ = all(x[i] % 3 != 9 for i in range(sixteen, sixteen + 16))
    same = bits(x[i] % 2 == x[t] % 2 for i in range(four, four + 4))
    return total + any_ + 2 * all_ + same + t // 4 + t % 16 * 2


def _branches(t: int, x: list[int]) -> int:
    tile = range(t // 8 * 8, t // 8 * 8 + 8)
    return sum(x[i] % 1000 for i in tile) if t // 8 % 2 else reduce(xor, [x[i] for i in tile])


def _counted(x: list[int]) -> list[int]:
    count = sum(word % 4 == 0 for word in x[:64])
    every = (1 << count) - 1
    return [count, every & MASK, every >> 32]


def _labels(t: int, x: list[int]) -> int:
    same = [i for i in warp_of(t) if x[i] % 3 == x[t] % 3]
    return max(same) + 100 * len(same)


def _two(t: int, x: list[int]) -> int:
    same = [i for i in warp_of(t) if x[i] % 2 == x[t] % 2]
    return same.index(t) + 100 * sum(x[i] % 8 for i in same)


def _scans(t: int, x: list[int]) -> int:
    before = range(t // 16 * 16, t)
    return sum(x[i] % 50 for i in before) + 1000 * min(x[i] % 9 for i in (*before, t))


def _warps(t: int, x: list[int]) -> int:
    tile = range(t // 64 * 64, t // 64 * 64 + 64)
    return sum(x[i] % 100 for i in tile) + x[tile[3]] + (130 in tile)


def _batches(t: int, x: list[int]) -> int:
    return sum(x[128 * i + t] + x[128 * i + 127 - t] for i in range(4))


def _four_times(x: list[int]) -> list[int]:
    a = [word % 1000 for word in x[:256]]
    for step in (1, 4):
        a = [a[t] + a[(t + step) % 256] + 1 for t in range(256)]
    return a


def _histogram(x: list[int]) -> list[int]:
    return [sum(word % 64 == bin_ for word in x[:512]) for bin_ in range(64)]


def _split(t: int, x: list[int]) -> int:
    return x[t % 64] ^ x[(t + 64) % 128]


KERNELS = (
    Kernel(
        "tiles_of_four_sizes",
        "`tiled_partition` of 2 to 16 lanes, with shuffles, votes and matches.",
        each(_four_sizes),
    ),
    Kernel(
        "tiles_where_some_take_a_branch",
        "Tiles of a warp reduce in two branches.",
        each(_branches),
    ),
    Kernel(
        "coalesced_lanes_share_an_atomic",
        "`coalesced_threads()`: one atomic for the lanes that are there.",
        _counted,
    ),
    Kernel(
        "coalesced_lanes_reduce_and_scan",
        "`reduce` and `inclusive_scan` of `coalesced_threads()`.",
        each(lambda t, x: t % 32 % 3 != 1),
    ),
    Kernel("partition_by_a_label", "`labeled_partition`.", each(_labels)),
    Kernel("partition_in_two", "`binary_partition` of a warp.", each(_two)),
    Kernel(
        "partition_within_a_branch",
        "`binary_partition` of the lanes of a branch.",
        each(lambda t, x: t < 40),
    ),
    Kernel("scans_of_tiles", "`exclusive_scan` and `inclusive_scan` of tiles.", each(_scans)),
    Kernel(
        "group_of_several_warps",
        "A tile of 64 threads, which meets in the reserved part of shared memory.",
        each(_warps, 256),
        threads=256,
    ),
    Kernel(
        "memcpy_async_of_a_group",
        "`cooperative_groups::memcpy_async` and `wait`.",
        each(lambda t, x: x[255 - t], 256),
    ),
    Kernel("memcpy_async_in_batches", "The same with `wait_prior`.", each(_batches)),
    Kernel(
        "block_barrier_split_in_two",
        "`barrier_arrive` and `barrier_wait` of a block.",
        each(lambda t, x: 3 * x[64 + t] + x[63 - t]),
    ),
    Kernel("grid_that_meets_four_times", "`grid.sync()` in a loop.", _four_times, ctas=4),
    Kernel(
        "elected_member_of_a_group",
        "`invoke_one` and `invoke_one_broadcast`.",
        lambda x: [2, *[7] * 64],
    ),
    Kernel(
        "atomic_update_by_a_group",
        "`reduce_update_async` into an atomic.",
        lambda x: [sum(word % 100 for word in x[:64])],
    ),
    Kernel(
        "cluster_adds_its_sums",
        "CTAs of a cluster read each other's sums.",
        lambda x: [sum(word % 1000 for word in x[:256])] * 4,
        ctas=4,
        cluster=4,
    ),
    Kernel(
        "cluster_histogram",
        "Bins in the shared memories of a cluster, reached by atomics.",
        _histogram,
        ctas=2,
        cluster=2,
    ),
    Kernel(
        "cluster_barrier_split_in_two",
        "`barrier_arrive` and `barrier_wait` of a cluster, the last before the end.",
        each(_split, 128),
        ctas=2,
        cluster=2,
    ),
)
