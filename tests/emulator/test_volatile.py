"""Plain accesses to words that others use volatile or by atomics: races, with both lines."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest
from harness import compile_cu

import warpsim
from warpsim.launch import Launch, Pointer
from warpsim.schedule import first_schedules

SOURCE = Path(__file__).parent / "kernels" / "volatile.cu"
LINES = SOURCE.read_text().splitlines()
KERNELS = ("flag", "data", "guard", "reuse", "warp_sum", "last_block", "lock")


@functools.cache
def module(wrong: bool) -> warpsim.Module:
    return warpsim.load(compile_cu(SOURCE, target="sm_90a", defines=["WRONG"] if wrong else []))


def findings(entry: str, *, wrong: bool) -> tuple[warpsim.Finding, ...]:
    arrays = {name: np.zeros(256, np.uint32) for name in ("out", "x")}
    launch = Launch(
        entry=entry,
        grid=(1 if entry in ("reuse", "warp_sum") else 2, 1, 1),
        block=(64 if entry in ("reuse", "warp_sum") else 32, 1, 1),
        arguments=tuple(Pointer(array=name) for name in arrays),
    )
    return warpsim.compare(module(wrong), [launch], arrays, unwritten=["out"]).findings


@pytest.mark.parametrize("entry", KERNELS)
def test_volatile_and_atomic_accesses_may_meet_each_other(entry: str) -> None:
    assert findings(entry, wrong=False) == ()


def test_lanes_that_a_stop_parts_meet_at_the_barrier_in_every_turn_of_a_loop() -> None:
    """They went on apart where the warp had come to the barrier whole in an earlier turn."""
    arrays = {"out": np.zeros(64, np.uint32), "x": np.arange(256, dtype=np.uint32)}
    arguments = (Pointer(array="out"), Pointer(array="x"))
    launch = Launch(entry="staged", grid=(1, 1, 1), block=(64, 1, 1), arguments=arguments)
    result = warpsim.compare(module(False), [launch], arrays, schedules=first_schedules(12))
    assert result.findings == ()


@pytest.mark.parametrize("entry", KERNELS)
def test_a_plain_access_may_not_meet_them(entry: str) -> None:
    assert {finding.name for finding in findings(entry, wrong=True)} == {"race"}


def test_a_race_names_both_lines_the_element_and_both_threads() -> None:
    (finding,) = findings("guard", wrong=True)
    guard = next(i for i, line in enumerate(LINES, 1) if "atomicMax" in line)
    assert finding.source is not None
    own = finding.source.own()
    assert own is not None
    assert own.line == guard
    assert "x[0] (4-byte elements)" in finding.sentence
    assert f"volatile.cu:{guard}" in finding.sentence
    assert len(re.findall(r"thread \(\d+, 0, 0\)", finding.sentence)) == 2
    assert re.search(r"here by thread \(\d+, 0, 0\) of block \(\d, 0, 0\);", finding.sentence)


def test_a_race_between_two_lines_names_the_earlier_one() -> None:
    stored = next(i for i, line in enumerate(LINES, 1) if "s[t] = t + 1" in line)
    read = next(i for i, line in enumerate(LINES, 1) if "[t ^ 32];" in line)
    for finding in findings("reuse", wrong=True):
        assert finding.source is not None
        earlier = re.search(r"at volatile\.cu:(\d+)", finding.sentence)
        assert earlier is not None
        assert {finding.source.line, int(earlier[1])} == {stored, read}
