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


ARRAYS = ("out", "scratch")


def how(entry: str, *, threads: int = 64, ctas: int = 1) -> Launch:
    return Launch(
        entry=entry,
        grid=(ctas, 1, 1),
        block=(threads, 1, 1),
        arguments=tuple(Pointer(array=name) for name in ARRAYS),
    )


def launch(entry: str, *, threads: int = 64, ctas: int = 1, seed: int = 0) -> emulator.Result:
    arrays = {name: np.zeros(16384, np.uint32) for name in ARRAYS}
    schedule = Schedule(seed=seed) if seed else LATE
    one = how(entry, threads=threads, ctas=ctas)
    return emulator.run(module(), one, arrays, schedule=schedule, limit=100_000)


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


def test_a_race_in_one_kernel_of_a_job_hides_none_for_the_same_array_in_another() -> None:
    entries = ("no_fence", "no_order_either", "no_order_either")
    found = emulator.compare(
        module(),
        [how(entry, ctas=4) for entry in entries],
        {name: np.zeros(16384, np.uint32) for name in ARRAYS},
    ).findings
    at = {(f.launch, f.cause) for f in found if "scratch" in f.cause and "read" in f.cause}
    assert {launch for launch, _ in at} == {"launch 1, no_fence", "launch 2, no_order_either"}
    assert len({cause for _, cause in at}) < len(at)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_store_of_another_value_must_be_ordered_after_all_that_were_repeated(seed: int) -> None:
    (finding,) = launch("changed_after_repeats", ctas=6, threads=32, seed=seed).findings
    assert finding.name == "race"


@pytest.mark.parametrize("seed", [0, 1])
def test_polling_by_lanes_that_part_in_every_turn_is_seen_to_be_in_vain(seed: int) -> None:
    names = {f.name for f in launch("flag_that_nobody_sets", threads=64, seed=seed).findings}
    assert names == {"hang"}
