"""The SASS of the conformance programs: what an H200 wrote, and what ncu counted there."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter

import numpy as np
import pytest
from conformance import golden, wavefronts
from conformance.case import Case
from conformance.record import MODULES, TARGET
from conformance.test_arithmetic import differing
from harness import assemble, compile_cu

from warpsim import Module, Schedule, load_cubin, run

_LATE = Schedule(seed=0, asynchrony="late")
_SCHEDULES = (
    _LATE,
    Schedule(seed=1, asynchrony="late"),
    Schedule(seed=2, asynchrony="early"),
    Schedule(seed=3, asynchrony="late"),
)
"""One after the other, from case to case."""
_QUICK = "fp8_conversion"
_AREAS = (
    "integer", "logic", "single", "double", "half", "predicate", "rare", "approximate",
    "float_conversion", "fp8_conversion", "integer_conversion", "atomics", "warp", "control",
    "memory", "sync", "copy", "tma", "tma_store", "cluster", "matrix", "mma", "wgmma",
    "sparse", "correct_arithmetic", "correct_divergence", "correct_memory",
    "correct_synchronisation", "correct_hopper",
)  # fmt: skip
_COUNTED = (
    "memory", "sync", "copy", "tma", "cluster", "matrix", "mma", "wgmma", "warp", "sparse",
)  # fmt: skip
_OTHERS = {
    "sm_80": {
        "integer": 101, "logic": 68, "single": 80, "double": 39, "half": 54, "predicate": 123,
        "approximate": 19, "float_conversion": 42, "integer_conversion": 184,
        "atomics": 79,
    },
    "sm_100a": {
        "integer": 104, "logic": 68, "single": 82, "double": 39, "half": 60, "predicate": 137,
        "approximate": 19, "float_conversion": 49, "fp8_conversion": 12,
        "integer_conversion": 194, "rare": 113, "atomics": 85, "warp": 9, "control": 8,
        "memory": 5, "sync": 5, "copy": 13, "tma": 16, "tma_store": 8, "cluster": 7, "matrix": 11,
        "mma": 13,
    },
}  # fmt: skip
"""Programs that ptxas takes for these."""
_SHARED = "sass__inst_executed_shared"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op"
_NOT_AS_COUNTED = {
    # ncu leaves one of the kernel's two LDGSTS of 16 bytes out of the counters of its source page;
    # l1tex__t_sectors_pipe_lsu_mem_global_op_ld, which the hardware counts, has both.
    ("copy", "cp_async"): {
        "memory_l1_wavefronts_shared",
        "memory_l1_wavefronts_shared_ideal",
        "memory_l2_theoretical_sectors_global",
        "memory_l2_theoretical_sectors_global_ideal",
    },
    # LD and ST to shared memory, which sass__inst_executed_shared_... has not; and polling.
    **{("cluster", f"neighbours {size}"): {f"{_SHARED}_loads"} for size in (2, 4)},
    **{
        ("cluster", f"remote_arrive {size}"): {f"{_SHARED}_loads", f"{_SHARED}_stores"}
        | (
            {f"{_REQUESTS}_st", "l1tex__t_sectors_pipe_lsu_mem_global_op_st"}
            if size == 2
            else set()
        )
        for size in (2, 4)
    },
}


@pytest.fixture(scope="module")
def source():  # type: ignore[no-untyped-def]
    """The PTX of an area's programs."""

    @functools.cache
    def one(name: str) -> str:
        area = MODULES[name]
        return compile_cu(area.source, target=TARGET) if area.source else area.origin()

    return one


@pytest.fixture(scope="module")
def module(source):  # type: ignore[no-untyped-def]
    """The SASS of an area's programs."""
    return functools.cache(lambda name: load_cubin(*assemble(source(name), TARGET)))


def executed(found: Module, case: Case, schedule: Schedule = _LATE):  # type: ignore[no-untyped-def]
    """(arrays, result) of a case."""
    arrays = {name: array.copy() for name, array in case.arrays.items()}
    return arrays, run(found, case.launch, arrays, schedule=schedule)


@pytest.mark.parametrize(
    "area",
    [pytest.param(a, marks=() if a == _QUICK else pytest.mark.slow) for a in _AREAS],
)
def test_the_sass_writes_what_the_gpu_wrote(area: str, module) -> None:  # type: ignore[no-untyped-def]
    outputs, cases = golden.load(area).outputs, golden.cases(area)
    problems = []
    for case, schedule in zip(cases, itertools.cycle(_SCHEDULES), strict=False):
        arrays, result = executed(module(area), case, schedule)
        problems += [f"{case.name}: {finding.sentence}" for finding in result.findings]
        for name in case.outputs:
            wrong = differing(arrays[name], outputs[case.name, name], case.bound)
            if wrong.any():
                problems.append(f"{case.name}: {name}: {np.count_nonzero(wrong)} differ")
    assert problems == [], "\n".join(problems)


def taken(text: str, target: str) -> str:
    """PTX without the entries that ptxas does not take for a target."""
    head, *entries = re.split(r"(?=^\.visible \.entry)", text, flags=re.M)
    head = re.sub(r"\.target sm_\w+", f".target {target}", head)
    while True:
        try:
            assemble(head + "".join(entries), target)
        except AssertionError as said:
            message = str(said)
        else:
            return head + "".join(entries)
        wrong = {int(line) for line in re.findall(r"line (\d+);", message)}
        assert wrong, message
        last, kept = head.count("\n"), []
        for entry in entries:
            first, last = last, last + entry.count("\n")
            kept += [] if wrong & set(range(first + 1, last + 2)) else [entry]
        entries = kept


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "area"), [(target, area) for target, areas in _OTHERS.items() for area in areas]
)
def test_the_sass_of_another_architecture_writes_the_same(target: str, area: str, source) -> None:  # type: ignore[no-untyped-def]
    answer = load_cubin(*assemble(taken(source(area), target), target))
    outputs, problems, compared = golden.load(area).outputs, [], 0
    for case, schedule in zip(golden.cases(area), itertools.cycle(_SCHEDULES), strict=False):
        if case.launch.entry not in answer.entries:
            continue
        arrays, result = executed(answer, case, schedule)
        compared += 1
        problems += [f"{case.name}: {finding.sentence}" for finding in result.findings]
        for name in case.outputs:
            if differing(arrays[name], outputs[case.name, name], case.bound).any():
                problems.append(f"{case.name}: {name}")
    assert problems == [], "\n".join(problems)
    assert compared == _OTHERS[target][area]


@pytest.mark.slow
@pytest.mark.parametrize("area", _COUNTED)
def test_the_sass_counts_what_ncu_counted(area: str, module) -> None:  # type: ignore[no-untyped-def]
    counted, apart = golden.counters(), {}
    for case in golden.cases(area):
        _, result = executed(module(area), case)
        kernel = result.counters.kernel
        wrong = {name for name, n in counted[area, case.name].items() if kernel[name] != n}
        if wrong:
            apart[area, case.name] = wrong
    assert apart == {key: names for key, names in _NOT_AS_COUNTED.items() if key[0] == area}


@pytest.mark.slow
def test_the_sass_counts_the_wavefronts_that_ncu_counted(module) -> None:  # type: ignore[no-untyped-def]
    counted, wrong = golden.wavefronts(), Counter[str]()
    for pattern, case in zip(wavefronts.patterns(), wavefronts.cases(), strict=True):
        result = run(module("wavefronts"), case.launch, case.arrays)
        for name in ("memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"):
            if result.counters.kernel[name] != counted[pattern.entry, pattern.name][name]:
                wrong[name] += 1
    assert not wrong
