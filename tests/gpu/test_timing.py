"""Rows, waiting and warm-up, on launches that end when a list says so."""

import random

import pytest

from kernelexp.evidence.measure import arrays
from kernelexp.evidence.measure.gpu_timing import (
    Hang,
    TimedLaunch,
    Timer,
    orders,
    sparse,
    strides,
    time_share,
    warm_up,
)
from kernelexp.model.measurement import Row


class Ended:
    """An event that a GPU has passed, or never will."""

    def __init__(self, at_ms, passed=True):
        self.at_ms, self.passed = at_ms, passed

    def query(self):
        return self.passed

    def elapsed_time(self, later):
        return later.at_ms - self.at_ms


class Listed:
    """Launches of arm a take a + 1 ms; the arms in `hanging` do not end."""

    def __init__(self, launches=1, hanging=(), slower=0.0):
        self.launches, self.hanging, self.slower = launches, hanging, slower
        self.seen = []

    def enqueue(self, arm, turn, byte):
        self.seen.append((arm, turn))
        takes = (arm + 1) * (1.0 + self.slower * len(self.seen))
        return TimedLaunch(arm=arm, start=Ended(0.0), end=Ended(takes, arm not in self.hanging))


def test_a_row_is_a_random_order_of_the_arms_and_then_the_same_backwards():
    source = orders([0, 1, 2], random.Random(1))
    rows = [next(source) for _ in range(200)]
    assert all(row == row[::-1] and sorted(row) == [0, 0, 1, 1, 2, 2] for row in rows)
    assert len({row[:3] for row in rows}) == 6


def test_each_row_has_a_set_to_itself_and_the_next_row_the_next():
    sampler = Listed()
    Timer(sampler, random.Random(1), 1.0).rows([0, 1], 3)
    assert [turn for _, turn in sampler.seen] == [0] * 4 + [1] * 4 + [2] * 4


def test_times_are_microseconds_of_one_launch():
    timer = Timer(Listed(launches=10), random.Random(1), 1.0)
    (row,) = timer.rows([0, 1], 1)
    assert dict(zip(row.order, row.times_us, strict=True)) == {0: 100.0, 1: 200.0}


def test_a_launch_that_does_not_end_is_named():
    timer = Timer(Listed(hanging=(2,)), random.Random(1), limit_s=0.01)
    with pytest.raises(Hang, match=r"had not ended after 0\.01 s") as caught:
        timer.rows([0, 1, 2], 1)
    assert caught.value.arm == 2


def test_a_checked_row_ends_with_either_launch_of_the_checked_arm():
    sampler = Listed()
    timer = Timer(sampler, random.Random(1), 1.0)
    lengths = set()
    for _ in range(100):
        sampler.seen.clear()
        timer.until([0, 1, 2], 1, turn=0)
        assert sampler.seen[-1] == (1, 0)
        lengths.add(len(sampler.seen))
    assert lengths == {1, 2, 3, 4, 5, 6}


def test_an_arm_with_a_stride_takes_part_in_every_so_many_th_row_from_the_first_on():
    timer = Timer(Listed(), random.Random(1), 1.0)
    timer.strides = {2: 3}
    assert [2 in row.order for row in timer.rows([0, 1, 2], 7)] == [True, False, False] * 2 + [True]
    timer.rows([0, 1, 2], 1)
    timer.begin()
    (row,) = timer.rows([0, 1, 2], 1)
    assert 2 in row.order


def test_slow_arms_get_the_time_of_a_few_fast_ones():
    row = Row(order=(0, 1, 2, 2, 1, 0), times_us=(1.0, 3.9, 60.0, 60.0, 3.9, 1.0))
    assert strides(row, [0, 1, 2]) == {2: 15}


def test_a_fast_peer_makes_no_candidate_slow():
    row = Row(order=(0, 1, 2, 2, 1, 0), times_us=(10.0, 39.0, 0.1, 0.1, 39.0, 10.0))
    assert strides(row, [0, 1]) == {}


def test_peers_take_half_of_the_time_and_some_rows_all_the_same():
    row = Row(order=(0, 1, 2, 2, 1, 0), times_us=(100.0, 30.0, 900.0, 900.0, 30.0, 100.0))
    result = sparse(row, [1, 2], timing_s=1.0)
    assert result == {1: 1, 2: 18}
    share = sum(2 * time / result[arm] for arm, time in ((1, 30.0), (2, 900.0)))
    assert share / (share + 200.0) <= 0.5
    assert sparse(row, [1, 2], timing_s=0.02) == {1: 1, 2: 6}
    assert sparse(row, [], timing_s=1.0) == {}


def test_an_arm_that_sits_out_rows_meets_every_set_of_arrays():
    timer = Timer(Listed(), random.Random(1), 1.0)
    timer.strides, timer.window = {2: 2}, 2
    assert [2 in row.order for row in timer.rows([0, 1, 2], 8)] == [True, True, False, False] * 2


def test_the_time_of_some_arms_is_a_share_of_a_row():
    row = Row(order=(0, 1, 1, 0), times_us=(10.0, 30.0, 30.0, 10.0))
    assert time_share([row, row], [0]) == 0.25
    assert time_share([row], [0, 1]) == 1.0


def test_a_checked_row_of_many_arms_has_some_of_them_and_no_slow_one():
    sampler = Listed()
    timer = Timer(sampler, random.Random(1), 1.0)
    timer.strides = {7: 15}
    seen = set()
    for _ in range(100):
        sampler.seen.clear()
        timer.until(range(24), 1, turn=0)
        assert len(sampler.seen) <= 8
        seen |= {arm for arm, _ in sampler.seen}
    assert seen == set(range(24)) - {7}


def test_warm_up_ends_when_rows_stand_still():
    warmth = warm_up(Timer(Listed(), random.Random(1), 1.0), [0, 1], longest_s=5.0)
    assert warmth.drift == 0.0
    assert warmth.spent_s < 5.0


def test_warm_up_gives_up_on_a_card_that_never_stands_still_and_says_by_how_much():
    timer = Timer(Listed(slower=1.0), random.Random(1), 1.0)
    warmth = warm_up(timer, [0, 1], longest_s=0.3)
    assert warmth.drift > 0.005


@pytest.mark.parametrize(
    ("time_us", "set_bytes", "hot", "sets", "launches"),
    [
        (1000.0, 1 << 30, False, 2, 1),
        (50.0, 1 << 20, False, 2, 1),
        (20.0, 1 << 20, False, 25, 25),
        (1.0, 1 << 20, False, 64, 64),
        (20.0, 1 << 20, True, 2, 1),
        (1000.0, 60 << 30, False, 1, 1),
        (20.0, 10 << 30, False, 4, 4),
    ],
)
def test_sets_and_graphs_follow_from_the_kernels_length(time_us, set_bytes, hot, sets, launches):
    chosen = arrays.choose(time_us, set_bytes, free_bytes=100 << 30, hot=hot)
    assert (chosen.sets, chosen.launches_per_sample) == (sets, launches)
