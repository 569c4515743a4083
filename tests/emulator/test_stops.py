"""Warps are stopped between two accesses: what only shows then."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from harness import assemble, compile_cu, run
from harness import ptx as ptx_of

import warpsim
from warpsim.launch import Launch, Pointer
from warpsim.schedule import Schedule, first_schedules

SOURCE = Path(__file__).parent / "kernels" / "stops.cu"
BY_RESULT = ("lost_update", "look_back", "last_of_all", "sleep")
BLOCKS = 6


@functools.cache
def ptx(wrong: bool) -> str:
    return compile_cu(SOURCE, target="sm_90a", defines=["WRONG"] if wrong else [])


def compared(module: warpsim.Module, entry: str, schedules: int = 3) -> warpsim.ScheduleComparison:
    arrays = {name: np.zeros(64, np.uint32) for name in ("out", "x")}
    launch = Launch(
        entry=entry,
        grid=(BLOCKS, 1, 1),
        block=(32, 1, 1),
        arguments=tuple(Pointer(array=name) for name in arrays),
    )
    return warpsim.compare(module, [launch], arrays, schedules=first_schedules(schedules))


@pytest.mark.parametrize("entry", [*BY_RESULT, "unlock"])
def test_right_kernels_have_one_result_however_they_are_stopped(entry: str) -> None:
    comparison = compared(warpsim.load(ptx(wrong=False)), entry, schedules=21)
    assert (comparison.findings, comparison.differing, comparison.varying) == ((), (), ())


@pytest.mark.parametrize("entry", BY_RESULT)
def test_a_stop_shows_another_result(entry: str) -> None:
    assert "out" in compared(warpsim.load(ptx(wrong=True)), entry).varying


@pytest.mark.parametrize("entry", BY_RESULT)
def test_a_stop_shows_another_result_of_sass(entry: str) -> None:
    module = warpsim.load_cubin(*assemble(ptx(wrong=True), "sm_90a"))
    assert "out" in compared(module, entry).varying


def test_an_unlock_without_a_fence_is_a_race_in_every_schedule() -> None:
    for schedule in compared(warpsim.load(ptx(wrong=True)), "unlock").results:
        assert {finding.name for finding in schedule.findings} == {"race"}


def test_a_value_stored_after_its_flag_is_read_before_anybody_wrote_it() -> None:
    arrays = {name: np.zeros(64, np.uint32) for name in ("out", "x")}
    launch = Launch(
        entry="look_back",
        grid=(BLOCKS, 1, 1),
        block=(32, 1, 1),
        arguments=tuple(Pointer(array=name) for name in arrays),
    )
    module = warpsim.load(ptx(wrong=True))
    comparison = warpsim.compare(module, [launch], arrays, unwritten=["out"])
    assert {finding.name for finding in comparison.findings} == {"uninitialised-read"}


def test_stops_change_no_count_of_a_kernel_whose_way_no_order_decides() -> None:
    body = "atom.global.add.u32 %r1, [%x], 1; fence.acq_rel.gpu; red.global.add.u32 [%x+4], %r1;"
    counts = []
    for seed in range(4):
        arrays = {"x": np.zeros(2, np.uint32)}
        result = run(ptx_of(body, ["x"]), arrays, threads=128, schedule=Schedule(seed=seed))
        assert arrays["x"].tolist() == [128, 127 * 64]
        counts.append((result.warp_instructions, result.thread_instructions))
    assert len(set(counts)) == 1


def test_the_chance_of_a_stop_halves_every_two_seeds() -> None:
    chances = [Schedule(seed=seed).chance_of_stop for seed in range(18)]
    assert chances[:7] == [0, 1 / 2, 1 / 2, 1 / 4, 1 / 4, 1 / 8, 1 / 8]
    assert chances[15:] == [1 / 256, 1 / 256, 1 / 2]
