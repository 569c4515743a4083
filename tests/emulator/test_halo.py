"""Reads of an element by several threads: not only the last may race with a store to it."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from harness import compile_cu

import warpsim
from warpsim.launch import Launch, Pointer, Scalar
from warpsim.schedule import USUAL, first_schedules

SOURCE = Path(__file__).parent / "kernels" / "halo.cu"
SCHEDULES = pytest.mark.parametrize("schedule", first_schedules(USUAL), ids=str)


@functools.cache
def module() -> warpsim.Module:
    return warpsim.load(compile_cu(SOURCE))


def findings(
    entry: str, number: int, schedule: warpsim.Schedule, *, grid: tuple[int, int, int], block: int
) -> set[str]:
    arrays = {"a": np.arange(8192, dtype=np.int32)}
    arguments = (Pointer(array="a"), Scalar(type="s32", value=number))
    launch = Launch(entry=entry, grid=grid, block=(block, 1, 1), arguments=arguments)
    result = warpsim.run(module(), launch, arrays, schedule=schedule)
    return {finding.name for finding in result.findings}


@SCHEDULES
@pytest.mark.parametrize("distance", [32, 64, 96, 128, 256, 384, 512, 640, 1024])
def test_of_a_thread_ahead(distance: int, schedule: warpsim.Schedule) -> None:
    assert "race" in findings("ahead", distance, schedule, grid=(12, 1, 1), block=128)


@SCHEDULES
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_of_a_cta_below(rows: int, schedule: warpsim.Schedule) -> None:
    assert "race" in findings("below", rows, schedule, grid=(4, 4, 1), block=128)


@SCHEDULES
@pytest.mark.parametrize("owner", [0, 3, 11])
def test_by_all_ctas(owner: int, schedule: warpsim.Schedule) -> None:
    assert "race" in findings("of_one", owner, schedule, grid=(12, 1, 1), block=128)


@SCHEDULES
@pytest.mark.parametrize("distance", [32, 512, 768])
def test_in_shared_memory(distance: int, schedule: warpsim.Schedule) -> None:
    """Of a CTA of more warps than have columns of their own."""
    assert "race" in findings("ahead_in_shared", distance, schedule, grid=(1, 1, 1), block=1024)


@SCHEDULES
@pytest.mark.parametrize("distance", [32, 64, 96])
def test_a_barrier_orders_all_readers(distance: int, schedule: warpsim.Schedule) -> None:
    assert not findings("ahead_with_barrier", distance, schedule, grid=(12, 1, 1), block=128)
