"""One mistake is one finding, however many words, threads and CTAs it shows in."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from harness import LATE, compile_cu

import warpsim as emulator
from warpsim import Schedule
from warpsim.launch import Launch, Pointer

SOURCE = Path(__file__).parent / "kernels" / "grouped.cu"


@functools.cache
def module() -> emulator.Module:
    return emulator.load(compile_cu(SOURCE, target="sm_90a"))


def launch(entry: str, *, threads: int = 64, ctas: int = 1, seed: int = 0) -> emulator.Result:
    arrays = {name: np.zeros(16384, np.uint32) for name in ("out", "scratch")}
    how = Launch(
        entry=entry,
        grid=(ctas, 1, 1),
        block=(threads, 1, 1),
        arguments=tuple(Pointer(array=name) for name in arrays),
    )
    schedule = Schedule(seed=seed) if seed else LATE
    return emulator.run(module(), how, arrays, schedule=schedule, limit=100_000)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_missing_barrier_over_thousands_of_words_is_one_finding(seed: int) -> None:
    (finding,) = launch("no_barrier", threads=256, seed=seed).findings
    assert finding.name == "race"
    assert finding.count > 1
    assert "nothing orders the two accesses" in finding.sentence


@pytest.mark.parametrize("seed", [0, 1])
def test_a_missing_fence_between_many_ctas_is_one_finding(seed: int) -> None:
    (finding,) = launch("no_fence", ctas=32, seed=seed).findings
    assert finding.name == "race"
    assert finding.count > 1
    assert "scratch" in finding.sentence


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_store_of_another_value_must_be_ordered_after_all_that_were_repeated(seed: int) -> None:
    (finding,) = launch("changed_after_repeats", ctas=6, threads=32, seed=seed).findings
    assert finding.name == "race"


@pytest.mark.parametrize("seed", [0, 1])
def test_polling_by_lanes_that_part_in_every_turn_is_seen_to_be_in_vain(seed: int) -> None:
    names = {f.name for f in launch("flag_that_nobody_sets", threads=64, seed=seed).findings}
    assert names == {"hang"}
