"""Faults that public projects had, in small kernels: found in the wrong form, and only there."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from correct.hopper import MAP
from correct.page import SOURCES as DRIVER
from harness import assemble, compile_cu
from reported.faults import (
    FAULTS,
    NOTHING,
    RESULT,
    SOURCES,
    TARGETS,
    Fault,
    faults,
    on_a_card,
)

import warpsim
from warpsim.launch import Launch, Pointer
from warpsim.schedule import USUAL, first_schedules

WORDS = 4096
EVERY = [pytest.param(area, fault, id=fault.name) for area, fault in faults()]


@functools.cache
def module(area: str, wrong: bool) -> warpsim.Module:
    defines = ["WRONG"] if wrong else []
    source = SOURCES / f"{area}.cu"
    target, include = TARGETS[area], [SOURCES, DRIVER]
    return warpsim.load(compile_cu(source, target=target, include=include, defines=defines))


IN_SASS = {
    "map_changed_in_flight": "overwritten-in-use",
    "half_of_the_operands_waited_for": "uninitialised-read",
    "peers_half_not_waited_for": "uninitialised-read",
    "barrier_hoisted_out_of_a_loop": "uninitialised-read",
    "stale_index_of_a_barrier": "hang",
    "leaves_before_its_peer_has_read": "remote-cta-exited",
}
"""What SASS shows of faults that PTX names by their causes, some of them."""


@functools.cache
def sass(area: str, wrong: bool = False) -> warpsim.Module:
    defines = ["WRONG"] if wrong else []
    target, include = TARGETS[area], [SOURCES, DRIVER]
    text = compile_cu(SOURCES / f"{area}.cu", target=target, include=include, defines=defines)
    return warpsim.load_cubin(*assemble(text, target))


def compared(
    area: str,
    fault: Fault,
    *,
    wrong: bool,
    code: warpsim.Module | None = None,
    schedules: int = USUAL,
) -> tuple[warpsim.ScheduleComparison, np.ndarray]:
    """What several schedules show, and the result of the first."""
    arrays = {name: np.zeros(WORDS, np.uint32) for name in ("out", "in", "scratch")}
    arrays["in"][:] = np.random.default_rng(0).integers(0, 2**32, WORDS, dtype=np.uint32)
    launch = Launch(
        entry=fault.name,
        grid=(fault.ctas, 1, 1),
        block=(fault.threads, 1, 1),
        cluster=(fault.cluster, 1, 1),
        arguments=(*(Pointer(array=name) for name in arrays), *([MAP] * fault.takes_map)),
    )
    comparison = warpsim.compare(
        code or module(area, wrong),
        [launch],
        arrays,
        schedules=first_schedules(schedules),
        limit=100_000,
    )
    return comparison, arrays["out"]


@pytest.mark.parametrize(("area", "fault"), EVERY)
def test_the_right_form_is_not_accused(area: str, fault: Fault) -> None:
    comparison, _ = compared(area, fault, wrong=False)
    assert (comparison.findings, comparison.warnings) == ((), ())
    assert (comparison.differing, comparison.varying) == ((), ())


@pytest.mark.slow
@pytest.mark.parametrize(("area", "fault"), EVERY)
def test_the_sass_of_the_right_form_is_not_accused(area: str, fault: Fault) -> None:
    comparison, _ = compared(area, fault, wrong=False, code=sass(area))
    assert (comparison.findings, comparison.warnings) == ((), ())


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [pytest.param(item, id=item.name) for _, item in faults() if item.name in IN_SASS]
)
def test_the_sass_of_a_fault_shows_it(fault: Fault) -> None:
    # Without clocks a CTA that leaves too early is only seen where a schedule lets it.
    code = sass("hopper", wrong=True)
    comparison, _ = compared("hopper", fault, wrong=True, code=code, schedules=10)
    assert IN_SASS[fault.name] in {finding.name for finding in comparison.findings}


@pytest.mark.parametrize(("area", "fault"), EVERY)
def test_the_fault_is_found_as_the_table_says(area: str, fault: Fault) -> None:
    comparison, result = compared(area, fault, wrong=True)
    names = {finding.name for finding in (*comparison.findings, *comparison.warnings)}
    if fault.finding == RESULT:
        _, right = compared(area, fault, wrong=False)
        assert "out" in comparison.differing or (result != right).any()
    else:
        assert names == set() if fault.finding == NOTHING else fault.finding in names


def test_every_kernel_of_the_sources_is_in_the_table() -> None:
    for area, rows in FAULTS.items():
        assert set(module(area, wrong=False).entries) == {fault.name for fault in rows}


def test_every_hopper_kernel_was_run_on_a_card_in_both_forms_under_each_tool() -> None:
    runs = {(name, form): [run["tool"] for run in runs] for name, form, runs in on_a_card()}
    names = {fault.name for fault in FAULTS["hopper"]}
    assert runs.keys() == {(name, form) for name in names for form in ("right", "wrong")}
    tools = ["none", "racecheck", "synccheck", "memcheck", "initcheck"]
    assert all(run == tools for run in runs.values())
