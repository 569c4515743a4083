"""Correct kernels, though few are written so: no finding, no hang, the right result in full."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from correct.kernel import WORDS, Kernel
from correct.page import AREAS, SOURCES, kernels, page
from harness import EARLY, LATE, assemble, compile_cu

import warpsim as emulator
from warpsim import Schedule
from warpsim.launch import Launch, Pointer

SCHEDULES = (LATE, Schedule(seed=2, asynchrony="early"))
MORE_SCHEDULES = (Schedule(seed=1), EARLY)
LIMIT = 200_000
"""Warp instructions: any of these kernels needs a tenth of it."""


@functools.cache
def built(area: str) -> emulator.Module:
    ptx = compile_cu(SOURCES / f"{area}.cu", target=AREAS[area].target)
    return emulator.load(ptx)


@functools.cache
def assembled(area: str) -> emulator.Module:
    target = AREAS[area].target
    ptx = compile_cu(SOURCES / f"{area}.cu", target=target)
    return emulator.load_cubin(*assemble(ptx, target))


def launched(
    area: str,
    kernel: Kernel,
    schedule: Schedule,
    *,
    judged: bool = True,
    build: Callable[[str], emulator.Module] = built,
) -> tuple[emulator.Result, np.ndarray]:
    """(result, `out`) of a kernel, and `in` unchanged."""
    words = np.random.default_rng(0).integers(0, 2**32, WORDS, dtype=np.uint32)
    arrays = {"out": np.zeros(WORDS, np.uint32), "in": words}
    arrays["scratch"] = np.zeros(WORDS, np.uint32)
    launch = Launch(
        entry=kernel.name,
        grid=(kernel.ctas, 1, 1),
        block=(kernel.threads, 1, 1),
        cluster=(kernel.cluster, 1, 1),
        dynamic_smem_bytes=kernel.dynamic,
        arguments=(*(Pointer(array=name) for name in arrays), *kernel.maps),
    )
    result = emulator.run(
        build(area), launch, arrays, schedule=schedule, limit=LIMIT, judged=judged
    )
    return result, arrays["out"]


def wanted(kernel: Kernel) -> list[int]:
    words = np.random.default_rng(0).integers(0, 2**32, WORDS, dtype=np.uint32)
    first = [int(value) & 0xFFFF_FFFF for value in kernel.want(words.tolist())]
    return first + [0] * (WORDS - len(first))


def cases() -> Iterator[object]:
    for area, kernel in kernels():
        marks = [pytest.mark.slow] if AREAS[area].slow or kernel.slow else []
        yield pytest.param(area, kernel, id=kernel.name, marks=marks)


@pytest.mark.parametrize(
    "schedules",
    [SCHEDULES, pytest.param(MORE_SCHEDULES, marks=pytest.mark.slow)],
    ids=["two", "two more"],
)
@pytest.mark.parametrize(("area", "kernel"), list(cases()))
def test_a_correct_kernel_is_right_and_not_accused_under_any_schedule(area, kernel, schedules):
    want = wanted(kernel)
    for schedule in schedules:
        result, out = launched(area, kernel, schedule)
        assert result.findings == (), schedule
        assert out.tolist() == want, schedule


@pytest.mark.parametrize(("area", "kernel"), list(cases()))
def test_a_kernel_that_nobody_judges_is_right_too(area, kernel):
    result, out = launched(area, kernel, LATE, judged=False)
    assert out.tolist() == wanted(kernel)
    assert result.thread_instructions > 0


def test_the_page_lists_every_kernel_of_the_sources():
    listed = re.findall(r"^\| `(\w+)` \| \S", page(), re.MULTILINE)
    assert listed == [kernel.name for _, kernel in kernels()]


@pytest.mark.parametrize("area", AREAS)
def test_every_kernel_of_a_source_is_in_its_table(area):
    source = (SOURCES / f"{area}.cu").read_text()
    pattern = r"^KERNEL\((\w+)\)|^KERNEL_OF\(.*, (\w+)\)|^extern \"C\" __global__ void (\w+)\("
    named = {"".join(groups) for groups in re.findall(pattern, source, re.MULTILINE)}
    assert named == {kernel.name for at, kernel in kernels() if at == area}


def as_sass() -> Iterator[object]:
    """One of each kind of fault that this once found, and all others slowly."""
    for area, kernel in kernels():
        marks = [] if kernel.name == "tiles_of_four_sizes" else [pytest.mark.slow]
        yield pytest.param(area, kernel, id=kernel.name, marks=marks)


@pytest.mark.parametrize(("area", "kernel"), list(as_sass()))
def test_the_sass_of_a_correct_kernel_is_right_and_not_accused(area, kernel):
    want = wanted(kernel)
    for schedule in SCHEDULES:
        result, out = launched(area, kernel, schedule, build=assembled)
        assert (result.findings, out.tolist()) == ((), want), schedule
