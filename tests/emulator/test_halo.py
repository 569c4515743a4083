"""Reads of a neighbouring CTA's elements, which the same warp of that CTA reads, too."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from harness import compile_cu

import warpsim
from warpsim.launch import Launch, Pointer
from warpsim.schedule import USUAL, first_schedules

SOURCE = Path(__file__).parent / "kernels" / "halo.cu"


@functools.cache
def module() -> warpsim.Module:
    return warpsim.load(compile_cu(SOURCE))


@pytest.mark.parametrize("entry", ["neighbour_in_x", "neighbour_in_y"])
@pytest.mark.parametrize("schedule", first_schedules(USUAL), ids=str)
def test_a_later_read_by_the_owner_does_not_hide_a_neighbours(
    entry: str, schedule: warpsim.Schedule
) -> None:
    arrays = {"a": np.arange(4 * 3 * 128, dtype=np.int32)}
    launch = Launch(entry=entry, grid=(4, 2, 1), block=(128, 1, 1), arguments=(Pointer(array="a"),))
    result = warpsim.run(module(), launch, arrays, schedule=schedule)
    assert "race" in {finding.name for finding in result.findings}
