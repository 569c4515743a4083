"""Lanes, warps and indices that are not where one would have them: found, and nothing else is."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from harness import compile_cu

import warpsim
from warpsim import compiled
from warpsim.launch import Launch, Pointer
from warpsim.schedule import first_schedules

SOURCE = Path(__file__).parent / "kernels" / "divergence.cu"
FOUND = {
    "neighbour": ("out-of-bounds", 32),
    "dynamic": ("out-of-bounds", 32),
    "dead_frame": ("uninitialised-read", 32),
    "lanes_disagree": ("race", 32),
    "warps_disagree": ("race", 96),
    "bytes": ("race", 64),
    "halves": ("race", 32),
    "aggregated": ("shuffle-source", 32),
    "registers": ("setmaxnreg", 128),
}
"""The finding that each kernel shows if it is wrong, and the threads of its block."""


@functools.cache
def module(wrong: bool) -> warpsim.Module:
    return warpsim.load(compile_cu(SOURCE, target="sm_90a", defines=["WRONG"] if wrong else []))


def compared(entry: str, *, wrong: bool) -> warpsim.ScheduleComparison:
    arrays = {"out": np.zeros(128, np.uint32), "x": np.zeros(128, np.uint32)}
    launch = Launch(
        entry=entry,
        grid=(1, 1, 1),
        block=(FOUND.get(entry, ("", 32))[1], 1, 1),
        arguments=tuple(Pointer(array=name) for name in arrays),
        dynamic_smem_bytes=128 if entry == "dynamic" else 0,
    )
    return warpsim.compare(module(wrong), [launch], arrays, schedules=first_schedules(5))


@pytest.fixture(params=[True, False], ids=["compiled", "Python"])
def how(request: pytest.FixtureRequest) -> None:
    if not request.param:
        compiled.unload()


@pytest.mark.usefixtures("how")
@pytest.mark.parametrize("entry", FOUND)
def test_the_right_form_is_not_accused(entry: str) -> None:
    comparison = compared(entry, wrong=False)
    assert (comparison.findings, comparison.differing) == ((), ())


@pytest.mark.usefixtures("how")
@pytest.mark.parametrize("entry", FOUND)
def test_the_wrong_one_is_found_in_every_schedule(entry: str) -> None:
    for result in compared(entry, wrong=True).results:
        assert FOUND[entry][0] in {finding.name for finding in result.findings}


@pytest.mark.usefixtures("how")
def test_who_is_active_behind_a_branch_depends_on_the_schedule() -> None:
    assert compared("who_is_active", wrong=False).differing == ()
    assert compared("who_is_active", wrong=True).differing == ("out",)
