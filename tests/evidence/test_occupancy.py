"""Occupancy, against figures of NVIDIA's own calculator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.evidence.code import built
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.model.arm import Resources


def used(registers: int, smem_bytes: int, threads: int) -> Resources:
    return Resources(
        registers=registers,
        spill_store_bytes=0,
        spill_load_bytes=0,
        stack_bytes=0,
        static_smem_bytes=0,
        dynamic_smem_bytes=smem_bytes,
        threads=threads,
        cluster=1,
        sass_bytes=0,
    )


@pytest.mark.parametrize(
    ("registers", "smem_bytes", "threads", "ctas", "limits"),
    [
        (32, 0, 256, 8, ("warps", "registers")),
        (33, 0, 256, 6, ("registers",)),
        (255, 0, 256, 1, ("registers",)),
        (16, 0, 32, 32, ("CTAs",)),
        (16, 100 * 1024, 64, 2, ("shared memory",)),
        (216, 215_680, 224, 1, ("registers", "shared memory")),
        (16, 113 * 1024, 128, 2, ("shared memory",)),
        (16, 114 * 1024, 128, 1, ("shared memory",)),
        (16, 228 * 1024, 128, 0, ("shared memory",)),
    ],
)
def test_the_scarcest_resource_limits_the_ctas_of_an_sm(
    registers: int, smem_bytes: int, threads: int, ctas: int, limits: tuple[str, ...]
) -> None:
    result = built.occupancy(ARCHITECTURES["sm_100a"], used(registers, smem_bytes, threads))
    assert (result.ctas_per_sm, result.limited_by) == (ctas, limits)


@given(st.integers(1, 255), st.integers(0, 227 * 1024), st.integers(1, 1024))
def test_what_fits_an_sm_is_within_every_limit(registers: int, smem: int, threads: int) -> None:
    for arch in ARCHITECTURES.values():
        result = built.occupancy(arch, used(registers, smem, threads))
        ctas, warps = result.ctas_per_sm, result.warps_per_sm
        assert ctas <= arch.ctas_per_sm
        assert warps <= arch.warps_per_sm
        assert warps * 32 * registers <= arch.registers_per_sm
        assert ctas * (smem + arch.smem_reserved_bytes) <= arch.smem_per_sm_bytes


@given(st.integers(1, 254), st.integers(0, 200_000), st.integers(1, 1024))
def test_more_of_anything_never_fits_better(registers: int, smem: int, threads: int) -> None:
    arch = ARCHITECTURES["sm_90a"]
    ctas = built.occupancy(arch, used(registers, smem, threads)).ctas_per_sm
    assert built.occupancy(arch, used(registers + 1, smem, threads)).ctas_per_sm <= ctas
    assert built.occupancy(arch, used(registers, smem + 1024, threads)).ctas_per_sm <= ctas
