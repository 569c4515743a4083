"""Lanes that part, leave early, and meet at places of their own."""

from __future__ import annotations

from functools import reduce
from operator import xor

from correct.kernel import MASK, Kernel, bits, each, warp_of


def _halves(t: int, x: list[int]) -> int:
    half = [x[i] for i in warp_of(t) if i // 16 == t // 16]
    return sum(half) if t % 32 < 16 else reduce(xor, half)


def _turns(t: int, x: list[int]) -> int:
    total = 0
    for i in range(t % 32 + 1):
        if i == 7:
            continue
        total = (total + x[(t + i) % 64]) & MASK
        if total % 11 == 3:
            break
    return total


def _some_lanes(x: list[int]) -> list[int]:
    s = x[:32]
    for _ in range(3):
        left = {t: s[t + (t < 31) if t % 3 == 1 else t - 1] for t in range(32) if t % 3}
        for t, value in left.items():
            s[t] = (value + 1) & MASK
    return s


def _equal(t: int, x: list[int]) -> int:
    same = [i for i in warp_of(t) if x[i] % 5 == x[t] % 5]
    every = t < 32 or len({x[i] % 5 for i in warp_of(t)}) == 1
    total = sum(same) if every else max(same)
    return bits(i in same for i in warp_of(t)) ^ total ^ (MASK if every else 0)


def _parity(t: int, x: list[int]) -> int:
    mine = [i for i in warp_of(t) if i % 2 == t % 2]
    any_, all_ = any(x[i] % 4 == 0 for i in mine), all(x[i] < 1 << 31 for i in mine)
    uniform = len({x[i] & 1 for i in mine}) == 1
    together = reduce(lambda a, b: a | b, mine)
    return any_ | all_ << 1 | uniform << 2 | together << 8


def _votes(t: int, x: list[int]) -> int:
    some = any(x[i] % 64 == 5 for i in range(128))
    return sum(x[i] & 1 for i in range(128)) << 2 | some << 1 | 1


def _collatz(n: int) -> int:
    steps = 0
    while n != 1 and steps < 20:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
        if steps == 19:
            return 99
    return steps


def _returns(t: int, x: list[int]) -> int:
    got = [_collatz(x[i] % 30 + 1) if x[i] % 2 else 0 for i in range(64)]
    return got[t] + got[t + 1 if t % 8 < 7 else t]


def _switch(t: int, x: list[int]) -> int:
    value = x[t]
    case = value % 9
    if case in (0, 1):
        return (value + (5 if case == 0 else 0)) * 3
    if case in (2, 3, 4):
        return (value ^ (77 if case == 2 else 0)) - t
    return (~value if case == 7 else value) + 1


def _goto(t: int, x: list[int]) -> int:
    value, tries = x[t], 0
    while value % 5:
        value = (value * 5 & MASK) // 4 + 1
        tries += 1
        if tries == 6:
            value += value % 2
            break
    return value + tries


def _queue(t: int, x: list[int]) -> int:
    return sum(x[i] % 13 for i in warp_of(t)) * (t % 32 + 1)


def _two_warps(t: int, x: list[int]) -> int:
    return x[63 - t] if t < 64 else x[191 - t] + 1


def _branches(t: int, x: list[int]) -> int:
    return sum(x[63 - t] + i for i in range(3) if x[64] & 1 << i)


KERNELS = (
    Kernel(
        "exit_before_a_loop_of_barriers",
        "Threads return; the others go on meeting at `__syncthreads()`.",
        each(lambda t, x: x[69 - t] + 3, 70),
        threads=128,
    ),
    Kernel(
        "warp_exits_between_two_barriers",
        "A warp returns between two barriers, and is not waited for at the second.",
        each(lambda t, x: 1 if t // 32 == 1 else x[127 - t], 128),
        threads=128,
    ),
    Kernel(
        "lane_0_exits_before_a_vote",
        "The lane that usually leads a warp has returned.",
        each(lambda t, x: bits(i % 32 and x[i] & 1 for i in warp_of(t)) if t % 32 else 0),
    ),
    Kernel(
        "halves_shuffle_by_themselves",
        "Two branches of a warp shuffle, each with the mask of its own lanes.",
        each(_halves),
    ),
    Kernel(
        "loop_of_as_many_turns_as_the_lane",
        "Lanes leave a loop one after the other, by its condition and by `break`.",
        each(lambda t, x: _turns(63 - t, x)),
    ),
    Kernel(
        "syncwarp_between_divergent_paths",
        "Two branches meet at two `__syncwarp()` with one mask.",
        each(lambda t, x: x[t + 8] + 1 if t < 8 else x[t - 8] if t < 16 else t, 32),
        threads=32,
    ),
    Kernel(
        "syncwarp_in_a_loop_of_some_lanes",
        "`__syncwarp()` with a computed mask, in a loop that other lanes skip.",
        _some_lanes,
        threads=32,
    ),
    Kernel(
        "leader_of_the_active_lanes_adds",
        "One atomic for all lanes that `__activemask()` names, however many these are.",
        lambda x: [bits(x[32 * w + i] % 3 == 0 for i in range(32)) for w in range(2)],
    ),
    Kernel(
        "groups_of_equal_values",
        "`__match_any_sync`, and a reduction by each of the masks that it gives.",
        each(_equal),
    ),
    Kernel("votes_by_masks_of_parity", "Votes of two groups of lanes at one place.", each(_parity)),
    Kernel(
        "elected_lane_writes",
        "`elect.sync`: one lane writes for its warp.",
        lambda x: [x[0] + 1, x[32] + 1],
    ),
    Kernel(
        "barrier_for_some_warps",
        "Named barriers for two warps each, with a thread count.",
        each(_two_warps, 128),
        threads=128,
    ),
    Kernel(
        "barrier_with_a_vote",
        "`__syncthreads_count`, `_or` and `_and`.",
        each(_votes, 128),
        threads=128,
    ),
    Kernel(
        "unaligned_barrier_by_part_of_a_warp",
        "`barrier.sync` without `.aligned` in both branches of a warp.",
        each(lambda t, x: x[63 - t]),
    ),
    Kernel(
        "barrier_in_a_branch_of_all",
        "`__syncthreads()` under a condition that is the same for all threads.",
        each(_branches),
    ),
    Kernel(
        "function_with_several_returns",
        "A function that is not inlined, called by some lanes, which return from three places.",
        each(_returns),
    ),
    Kernel(
        "switch_with_fall_through", "A `switch` whose cases run into each other.", each(_switch)
    ),
    Kernel("goto_into_a_common_tail", "A loop made of `goto`, left from two places.", each(_goto)),
    Kernel(
        "queue_of_the_lanes_that_have_work",
        "A ballot in a loop's condition: all lanes serve one lane per turn.",
        each(_queue),
    ),
    Kernel(
        "lane_mask_registers",
        "`%lanemask_lt` and its like, `%laneid`, `warpSize`.",
        each(lambda t, x: (1 << t % 32) - 1 + 32),
    ),
)
