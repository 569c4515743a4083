"""A fault does not hide the next one: the access is left out, and the emulation goes on."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from harness import compile_cu

import warpsim
from warpsim import Result, Schedule, compiled
from warpsim.launch import Launch, Pointer

SOURCE = Path(__file__).parent / "kernels" / "several.cu"
LINES = SOURCE.read_text().splitlines()


@functools.cache
def module(several: bool) -> warpsim.Module:
    defines = ["SEVERAL"] if several else []
    return warpsim.load(compile_cu(SOURCE, target="sm_90a", defines=defines))


def launched(
    entries: Sequence[str],
    *,
    several: bool = True,
    schedule: Schedule | None = None,
    judged: bool = True,
) -> tuple[Result, ...]:
    arrays = {"out": np.zeros(256, np.uint32), "x": np.arange(256, dtype=np.uint32)}
    launches = [
        Launch(
            entry=entry,
            grid=(1, 1, 1),
            block=(64, 1, 1),
            arguments=tuple(Pointer(array=name) for name in arrays),
        )
        for entry in entries
    ]
    return warpsim.run_each(module(several), launches, arrays, schedule=schedule, judged=judged)


def lines(result: Result) -> dict[int, str]:
    """The findings by line of the source."""
    owns = [(finding, finding.source.own()) for finding in result.findings if finding.source]
    return {own.line: finding.name for finding, own in owns if own}


def planted(words: str) -> int:
    return next(i for i, line in enumerate(LINES, 1) if words in line)


@pytest.mark.parametrize("compile_", [True, False], ids=["compiled", "Python"])
def test_every_fault_of_a_launch_is_found_once_per_line(compile_: bool) -> None:
    if not compile_:
        compiled.unload()
    (result,) = launched(["several"])
    assert lines(result) == {
        planted("x[256 + t] = 1"): "out-of-bounds",
        planted("x[100000 + t]"): "out-of-bounds",
        planted("(char *)x + 2"): "misaligned",
        planted("atomicAdd"): "out-of-bounds",
        planted("s[t] = t + 1"): "race",
        planted("s[60 + t]"): "out-of-bounds",
    }
    assert [finding.later for finding in result.findings] == [False, *[True] * 5]
    assert result.findings[-1].where().endswith("after an earlier fault")
    assert not result.finished


def test_what_stands_beside_a_fault_is_executed() -> None:
    arrays = {"out": np.zeros(256, np.uint32), "x": np.arange(256, dtype=np.uint32)}
    launch = Launch(
        entry="several",
        grid=(1, 1, 1),
        block=(64, 1, 1),
        arguments=tuple(Pointer(array=name) for name in arrays),
    )
    warpsim.run(module(True), launch, arrays)
    assert (arrays["x"] == np.arange(256)).all()
    assert (arrays["out"][64:128] == 0xFFFFFFFF).all(), "what is loaded past the end is poison"
    assert (arrays["out"][192:196:2] == [61, 63]).all(), "the lanes that stay inside are executed"


def test_the_first_fault_ends_a_launch_that_is_to_end_there() -> None:
    (result,) = launched(["several"], schedule=Schedule(first=True))
    assert lines(result) == {planted("x[256 + t] = 1"): "out-of-bounds"}


def test_a_loop_that_counts_poison_ends() -> None:
    (result,) = launched(["rounds"])
    assert set(lines(result).values()) == {"out-of-bounds"}
    assert result.given_up
    assert result.warp_instructions < 1_000_000


def test_a_later_launch_is_executed_too() -> None:
    first, later = launched(["several", "second"])
    assert not first.given_up
    assert set(lines(later).values()) == {"out-of-bounds"}


def test_without_the_faults_nothing_is_found() -> None:
    assert [launched([entry], several=False)[0].findings for entry in ("several", "rounds")] == [
        (),
        (),
    ]


@pytest.mark.parametrize("compile_", [True, False], ids=["compiled", "Python"])
def test_a_launch_that_nobody_judges_has_the_faults_that_end_it_and_no_race(compile_: bool) -> None:
    if not compile_:
        compiled.unload()
    (result,) = launched(["several"], judged=False)
    assert set(lines(result).values()) == {"out-of-bounds", "misaligned"}
    assert not result.finished
    assert not any(row.tally.accesses for row in result.counters.instructions)
