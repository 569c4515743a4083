"""Ordinary kernels, each right and with a fault: the fault is found, and the right one is not
accused."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from correct.hopper import MAP
from correct.kernel import WORDS
from correct.page import SOURCES as DRIVER
from harness import compile_cu
from pairs.page import FIRST, MISSED, RARE, RESULTS, SOURCES, TABLES, TARGETS, TAUGHT, pairs
from pairs.pair import FaultyPair
from reported.faults import SOURCES as MACROS

import warpsim
from warpsim.execute import Result, first_schedules
from warpsim.launch import Launch, Pointer
from warpsim.schedule import USUAL, Schedule


def parameters(area: str, pair: FaultyPair) -> pytest.ParameterSet:
    slow = area not in FIRST and pair.name not in TAUGHT
    return pytest.param(area, pair, id=pair.name, marks=[pytest.mark.slow] * slow)


EVERY = [parameters(area, pair) for area, pair in pairs()]


@functools.cache
def module(area: str, wrong: bool) -> warpsim.Module:
    source, include = SOURCES / f"{area}.cu", [MACROS, DRIVER]
    defines = ["WRONG"] if wrong else []
    return warpsim.load(compile_cu(source, target=TARGETS[area], include=include, defines=defines))


def given() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2**32, WORDS, dtype=np.uint32)


def executed(
    area: str, pair: FaultyPair, schedule: Schedule, *, wrong: bool
) -> tuple[Result, dict[str, np.ndarray]]:
    """What a launch shows, and its arrays after it."""
    arrays = {name: np.zeros(WORDS, np.uint32) for name in ("out", "in", "scratch")}
    arrays["in"][:] = given()
    launch = Launch(
        entry=pair.name,
        grid=(pair.ctas, 1, 1),
        block=(pair.threads, 1, 1),
        cluster=(pair.ctas if pair.in_cluster else 1, 1, 1),
        dynamic_smem_bytes=pair.dynamic,
        arguments=(*(Pointer(array=name) for name in arrays), *([MAP] * pair.takes_map)),
    )
    result = warpsim.run(module(area, wrong), launch, arrays, schedule=schedule, limit=100_000)
    return result, arrays


def launched(
    area: str, pair: FaultyPair, schedule: Schedule, *, wrong: bool
) -> tuple[set[str], bool]:
    """What is reported, and whether the result is right."""
    result, arrays = executed(area, pair, schedule, wrong=wrong)
    want = np.zeros(WORDS, np.uint32)
    first = [value & 0xFFFF_FFFF for value in pair.want(given().tolist())]
    want[: len(first)] = first
    names = {finding.name for finding in (*result.findings, *result.warnings)}
    return names, bool((arrays["out"] == want).all())


def noticed(area: str, pair: FaultyPair, count: int) -> tuple[set[str], bool]:
    """What the first schedules report of the fault, and whether all their results are right."""
    names, right = set(), True
    for schedule in first_schedules(count):
        result, as_wanted = launched(area, pair, schedule, wrong=True)
        names |= result
        right = right and as_wanted
    return names, right


@pytest.mark.parametrize(("area", "pair"), EVERY)
def test_the_right_form_is_right_and_not_accused(area: str, pair: FaultyPair) -> None:
    for schedule in first_schedules(USUAL):
        assert launched(area, pair, schedule, wrong=False) == (set(), True), schedule


@pytest.mark.parametrize(("area", "pair"), EVERY)
def test_the_fault_is_found_as_the_table_says(area: str, pair: FaultyPair) -> None:
    names, right = noticed(area, pair, USUAL)
    if pair.name in (*MISSED, *RARE):
        assert (names, right) == (set(), True)
    elif pair.name in RESULTS:
        assert (names, right) == (set(), False)
    else:
        assert names


@pytest.mark.parametrize("name", RARE)
def test_a_rare_fault_is_found_in_20_schedules(name: str) -> None:
    ((area, pair),) = [(area, pair) for area, pair in pairs() if pair.name == name]
    names, right = noticed(area, pair, 20)
    assert names or not right


def test_every_kernel_of_a_source_is_in_its_table() -> None:
    pattern = r"^(?:KERNEL|TENSOR_KERNEL)\((\w+)\)|^KERNEL_OF\(.*, (\w+)\)"
    for area, rows in TABLES.items():
        named = re.findall(pattern, (SOURCES / f"{area}.cu").read_text(), re.MULTILINE)
        assert {"".join(groups) for groups in named} == {pair.name for pair in rows}
