"""The SASS of kernels that few write so: spinning, locks, recursion, calls through pointers."""

from __future__ import annotations

import functools

import pytest
from harness import assemble, compile_cu
from test_unusual_kernels import KERNELS, SCHEDULES, SOURCE, Kernel

import warpsim as emulator
from warpsim import Module, Schedule
from warpsim.launch import Launch, Pointer, Scalar


@functools.cache
def unusual() -> Module:
    return emulator.load_cubin(*assemble(compile_cu(SOURCE, target="sm_90a"), "sm_90a"))


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.entry)
def test_the_sass_of_an_unusual_kernel_is_right(kernel: Kernel, schedule: Schedule) -> None:
    arrays = kernel.arrays()
    arguments = [*(Pointer(array=name) for name in arrays)]
    arguments += [Scalar(type="u32", value=value) for value in kernel.scalars]
    launch = Launch(
        entry=kernel.entry,
        grid=(kernel.ctas, 1, 1),
        block=(kernel.threads, 1, 1),
        arguments=tuple(arguments),
    )
    result = emulator.run(unusual(), launch, arrays, schedule=schedule)
    assert result.findings == ()
    last = list(arrays)[-1]
    assert arrays[last].tolist() == kernel.want.astype(arrays[last].dtype).tolist()
