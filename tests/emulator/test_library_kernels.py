"""CUDA's own libraries, as nvcc compiles them: nothing here was written for the emulator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness import EARLY, LATE, compile_cu

import warpsim as emulator
from warpsim.launch import Launch, Pointer

SOURCE = Path(__file__).parent / "kernels" / "library.cu"
THREADS = 128
Values = np.ndarray


@functools.cache
def module() -> emulator.Module:
    return emulator.load(compile_cu(SOURCE, target="sm_90a"))


def groups(values: Values) -> Values:
    tiles = values[:THREADS].reshape(-1, 8)
    odd = ((tiles % 2 != 0) << np.arange(8)).sum(axis=1)
    return np.repeat(256 * tiles.sum(axis=1) + odd, 8)


WANT: dict[str, Callable[[Values], Values]] = {
    "reduce": lambda v: np.array([v[:THREADS].sum()]),
    "scan": lambda v: np.cumsum(v[:THREADS]),
    "sort": lambda v: np.sort(v[:THREADS]),
    "groups": groups,
    "exchange": lambda v: v[:THREADS][::-1],
    "pipelined": lambda v: sum(v[32 * step : 32 * step + THREADS] for step in range(4)),
}


@pytest.mark.parametrize(
    "schedule",
    [
        LATE,
        pytest.param(emulator.Schedule(seed=5), marks=pytest.mark.slow),
        pytest.param(EARLY, marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize("entry", WANT)
def test_a_library_s_kernel_is_right_under_every_schedule(entry, schedule):
    values = np.random.default_rng(0).integers(-999, 1000, 2 * THREADS).astype(np.int32)
    want = WANT[entry](values)
    out = np.zeros(len(want), np.int32)
    launch = Launch(
        entry=entry,
        grid=(1, 1, 1),
        block=(THREADS, 1, 1),
        arguments=(Pointer(array="out"), Pointer(array="in")),
    )
    arrays = {"out": out, "in": values}
    result = emulator.run(module(), launch, arrays, schedule=schedule, unwritten=["out"])
    assert result.findings == ()
    assert (out == want).all()
