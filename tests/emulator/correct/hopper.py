"""What sm_90 adds: clusters, mbarriers, bulk and tensor copies; and C++'s calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from correct.kernel import MASK, Kernel, always, each, signed
from warpsim.launch import TensorMap

MAP = TensorMap(array="in", element="u32", shape=(40, 12), strides_bytes=(160,), box=(32, 8))


def _steps(count: int, size: int) -> Callable[[int, list[int]], int]:
    def value(t: int, x: list[int]) -> int:
        return reduce(lambda total, i: total * 3 + x[size * i + size - 1 - t], range(count), 0)

    return value


def _reduced(x: list[int]) -> list[int]:
    small = [word % 100 for word in x[:64]]
    return [*(2 * word for word in small), *(max(0, signed(word)) for word in small)]


def _remote(t: int, x: list[int]) -> int:
    other = 64 if t < 64 else 0
    return x[other + 63 - t % 64] + sum(i for i in range(64) if i % 4 == t % 4)


def _other(t: int, x: list[int]) -> int:
    return x[127 - t]


def _box(x: list[int], left: int, top: int, *, rows: int = 12, base: int = 0) -> list[int]:
    def at(column: int, row: int) -> int:
        inside = 0 <= column < 40 and 0 <= row < rows
        return x[base + 40 * row + column] if inside else 0

    return [at(left + i % 32, top + i // 32) for i in range(256)]


def _called(t: int, x: list[int]) -> int:
    value = x[t]
    for _ in range(4):
        value = (value + 1, value * 2, ~value)[value % 3] & MASK
    return value


KERNELS = (
    Kernel(
        "bulk_copies_in_a_ring",
        "A warp fills a ring by bulk copies and returns before the others have read it.",
        each(_steps(8, 64)),
        threads=96,
    ),
    Kernel(
        "transactions_expected_apart_from_the_arrival",
        "`mbarrier.expect_tx` without an arrival, for two copies.",
        each(lambda t, x: x[63 - t]),
    ),
    Kernel(
        "barrier_state_tested_with_work_between",
        "`mbarrier.test_wait` by the state that the arrival returned.",
        each(lambda t, x: x[63 - t]),
    ),
    Kernel(
        "arrivals_that_do_not_complete",
        "`mbarrier.arrive.noComplete` before the last arrivals.",
        always(1),
    ),
    Kernel(
        "warps_with_roles_and_their_own_registers",
        "`setmaxnreg` by a producer and a consumer warpgroup.",
        each(_steps(4, 128), 128),
        threads=256,
    ),
    Kernel(
        "bulk_stores_and_reductions",
        "Bulk stores and reductions; the source is written again after `wait_group.read`.",
        _reduced,
    ),
    Kernel(
        "reductions_into_the_shared_memory_of_another",
        "`cp.reduce.async.bulk` between the CTAs of a cluster.",
        each(lambda t, x: x[(t + 64) % 128] + 1, 128),
        ctas=2,
        cluster=2,
    ),
    Kernel(
        "remote_stores_and_reductions_that_signal",
        "`st.async` and `red.async`, counted by one mbarrier.",
        each(_remote, 128),
        ctas=2,
        cluster=2,
    ),
    Kernel(
        "arrivals_at_another_cta",
        "Stores to another CTA, then `mbarrier.arrive.release.cluster` there.",
        each(_other, 128),
        ctas=2,
        cluster=2,
    ),
    Kernel(
        "cluster_sum_by_remote_atomics",
        "All CTAs of a cluster add in one CTA's shared memory.",
        lambda x: [sum(word % 100 for word in x[:256])] * 64,
        ctas=4,
        cluster=4,
    ),
    Kernel(
        "relaxed_cluster_barrier_within_a_cta",
        "`barrier.cluster.arrive.relaxed` between the warps of one CTA.",
        each(lambda t, x: x[63 - t % 64], 128),
        ctas=2,
        cluster=2,
    ),
    Kernel(
        "multicast_to_both",
        "Each CTA of a pair copies its half for both.",
        each(lambda t, x: x[t % 64] + x[127 - t % 64], 128),
        ctas=2,
        cluster=2,
    ),
    Kernel(
        "copies_from_one_shared_memory_to_another",
        "`cp.async.bulk` between the shared memories of a cluster.",
        each(_other, 128),
        ctas=2,
        cluster=2,
    ),
    Kernel(
        "launched_early_and_waiting_for_the_one_before",
        "`griddepcontrol.wait` and `.launch_dependents`.",
        each(lambda t, x: x[t] + 1),
    ),
    Kernel("clocks_that_only_rise", "`clock64()`, `%globaltimer`, `__nanosleep`.", always(1)),
    Kernel("waiting_for_a_time", "Loops that wait until a clock has gone on.", always(1)),
    Kernel(
        "special_registers",
        "Sizes of the grid, the cluster and shared memory.",
        each(lambda t, x: 3 + 10 * (t // 64) + 100 + 1000 + 3, 192),
        ctas=3,
    ),
    Kernel(
        "virtual_functions",
        "`new`, virtual functions and `delete`.",
        each(lambda t, x: t * t if x[t] % 2 else 3 * t),
    ),
    Kernel(
        "lambda_called_through_a_pointer", "Pointers to lambdas, picked by data.", each(_called)
    ),
    Kernel(
        "boxes_by_a_parameter",
        "A tensor map as a parameter; the box begins before the array.",
        lambda x: _box(x, 16, -2),
        maps=(MAP,),
    ),
    Kernel(
        "boxes_by_a_map_in_global_memory",
        "A tensor map copied to global memory, and fenced there.",
        lambda x: _box(x, 16, -2),
        maps=(MAP,),
    ),
    Kernel(
        "boxes_by_a_map_made_on_the_device",
        "`tensormap.replace` in shared memory, `cp_fenceproxy` to global memory.",
        lambda x: _box(x, 0, 0, rows=6, base=256),
        maps=(MAP,),
    ),
)
