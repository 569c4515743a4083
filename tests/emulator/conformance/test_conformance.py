"""The emulator against an H200: the same PTX, the same launches, the same inputs."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from harness import compile_cu

from kernelexp.facts.counters import PTX
from warpsim import Module, Schedule, load, run

from . import counting, golden, wavefronts
from .case import Case
from .record import MODULES, TARGET
from .test_arithmetic import differing

LATE = Schedule(seed=0, asynchrony="late")
SCHEDULES = (LATE, Schedule(seed=3, asynchrony="early"))

LEFT_OUT: tuple[tuple[str, str], ...] = ()
"""Areas that the emulator does not reproduce yet, with the schedule."""


@pytest.fixture(scope="session")
def ptx():  # type: ignore[no-untyped-def]
    """The PTX of an area, compiled once."""

    @functools.cache
    def text(name: str) -> str:
        area = MODULES[name]
        return compile_cu(area.source, target=TARGET) if area.source else area.origin()

    return text


@pytest.mark.parametrize(
    ("area", "schedule"),
    [
        pytest.param(
            area, schedule, id=f"{area}, {schedule}", marks=[pytest.mark.slow] * (schedule != LATE)
        )
        for area in golden.recorded()
        for schedule in SCHEDULES
        if (area, schedule.asynchrony) not in LEFT_OUT
    ],
)
def test_the_emulator_writes_what_the_gpu_wrote(area: str, schedule: Schedule, ptx) -> None:  # type: ignore[no-untyped-def]
    outputs = golden.load(area).outputs
    module = load(ptx(area))
    problems = [
        problem
        for case in golden.cases(area)
        for problem in emulated_problems(module, case, schedule, outputs)
    ]
    assert not problems, "\n".join(problems[:20])


def emulated_problems(
    module: Module, case: Case, schedule: Schedule, outputs: dict[tuple[str, str], np.ndarray]
) -> list[str]:
    """What sets the emulator's launch of a case apart from the GPU's."""
    arrays = {name: array.copy() for name, array in case.arrays.items()}
    result = run(module, case.launch, arrays, schedule=schedule)
    problems = [f"{case.name}: {finding.sentence}" for finding in result.findings]
    for name in case.outputs:
        gpu = outputs[case.name, name]
        wrong = np.flatnonzero(differing(arrays[name], gpu, case.bound))
        if len(wrong):
            at = wrong[0]
            sample = f"{int(arrays[name][at]):#x}, on the GPU {int(gpu[at]):#x}"
            problems.append(f"{case.name}: {name}: {len(wrong)} differ; [{at}] is {sample}")
    return problems


def test_the_emulator_counts_the_wavefronts_that_ncu_counted(ptx) -> None:  # type: ignore[no-untyped-def]
    module = load(ptx("wavefronts"))
    counted = golden.wavefronts()
    problems = []
    for pattern, case in zip(wavefronts.patterns(), wavefronts.cases(), strict=True):
        result = run(module, case.launch, case.arrays)
        ncu = counted[pattern.entry, pattern.name]
        for metric in (
            "memory_l1_wavefronts_shared",
            "memory_l1_wavefronts_shared_ideal",
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld",
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st",
        ):
            got = result.counters.kernel[f"{PTX}{metric}"]
            gpu = ncu.get(metric, ncu.get(f"{metric}.sum"))
            if got != gpu:
                problems.append(f"{case.name}: {metric} {got}, ncu counted {gpu}")
    assert not problems, "\n".join(problems)


@functools.cache
def _counted() -> dict[tuple[str, str], dict[str, int]]:
    return golden.counters()


@pytest.mark.parametrize(
    "area", [pytest.param(a, marks=[pytest.mark.slow] * (a == "sparse")) for a in counting.AREAS]
)
def test_the_emulator_counts_what_ncu_counted(area: str, ptx) -> None:  # type: ignore[no-untyped-def]
    module = load(ptx(area))
    differing = {}
    for case in golden.cases(area):
        result = run(module, case.launch, {name: a.copy() for name, a in case.arrays.items()})
        counted = _counted()[area, case.name]
        apart = {m: (result.counters.kernel[f"{PTX}{m}"], n) for m, n in counted.items()}
        apart = {metric: pair for metric, pair in apart.items() if pair[0] != pair[1]}
        if apart:
            differing[area, case.name] = apart
    explained = {key for key in counting.DIFFERENT if key[0] == area}
    assert set(differing) == explained, differing
