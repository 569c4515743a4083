"""Sets of warps that run together."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from warpsim.machine.core.warps import ALL
from warpsim.machine.schedule.batches import runs
from warpsim.machine.sync.gates import Fragment


@given(st.lists(st.integers(0, 40), max_size=30).map(sorted), st.integers(1, 8))
def test_every_fragment_is_in_one_run_and_a_run_s_warps_are_equally_far_apart(
    warps: list[int], resident: int
) -> None:
    fragments = [Fragment(warp, ALL, 0) for warp in warps]
    result = runs(fragments, resident)
    assert sorted(map(id, itertools.chain.from_iterable(result))) == sorted(map(id, fragments))
    for run in result:
        steps = {b.warp - a.warp for a, b in itertools.pairwise(run)}
        assert len(steps) < 2
        assert 0 not in steps


def test_the_warps_of_one_cta_of_four_run_together() -> None:
    fragments = [Fragment(warp, ALL, 0) for warp in (2, 6, 10, 14)]
    assert runs(fragments, resident=4) == [fragments]


def test_a_warp_s_second_fragment_runs_by_itself() -> None:
    fragments = [Fragment(warp, ALL, 0) for warp in (0, 1, 1, 2)]
    assert [len(run) for run in runs(fragments, resident=8)] == [3, 1]
