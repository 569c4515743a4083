"""Limits of each GPU architecture, with their source.

Source of the per-architecture figures: CUDA C++ Programming Guide 13.0, "Compute Capabilities",
tables "Technical Specifications per Compute Capability" (warps, threads, blocks, registers,
shared memory), "Throughput of Native Arithmetic Instructions" (lanes per clock), and the occupancy
calculator's allocation units (registers in units of 256 per warp, shared memory in units of 128
bytes, 1 KB of it reserved for each block from 8.0 on). Tensor memory: PTX ISA 9.1, "Tensor Memory"
(128 lanes of 512 columns of 32 bits per CTA).
"""

from __future__ import annotations

import msgspec

from kernelexp.model.errors import UsageError

SCHEDULERS = 4
"""Of warps, on an SM of any architecture since sm_50."""


class Arch(msgspec.Struct, frozen=True, kw_only=True):
    """The capacity of one SM of an architecture, and the limits of one CTA."""

    name: str
    """The target that nvcc compiles for, such as sm_100a."""
    card: str
    """A card of this architecture, for sentences."""
    cards: str
    """The best known of its cards, by NVIDIA's list of compute capabilities."""
    warps_per_sm: int
    ctas_per_sm: int
    smem_per_sm_bytes: int
    tmem_columns: int = 0
    """Columns of tensor memory per SM; 0 where there is none."""
    threads_per_cta: int = 1024
    registers_per_sm: int = 65_536
    registers_per_thread: int = 255
    register_unit: int = 256
    """Registers are given to a warp in units of this many."""
    smem_unit_bytes: int = 128
    smem_reserved_bytes: int = 1024
    """Shared memory that the system takes for itself in each CTA."""
    cluster_size: int = 1
    """The largest portable cluster."""
    fma_lanes: int = 128
    """FP32 operations per clock and SM."""

    @property
    def smem_per_cta_bytes(self) -> int:
        """The most that a CTA can opt in to."""
        return self.smem_per_sm_bytes - self.smem_reserved_bytes

    @property
    def capability(self) -> str:
        """9.0 for sm_90a, 12.0 for sm_120a."""
        digits = self.name.removeprefix("sm_").rstrip("af")
        return f"{digits[:-1]}.{digits[-1]}"

    def per_clock(self, pipe: str) -> float:
        """Warp instructions per clock that an SM's pipe takes: fma, alu, xu, lsu.

        On an H200 ncu's counts over its shares of the peak give 4, 2, 0.5 and 1.
        """
        return {"fma": self.fma_lanes / 32, "alu": 2.0, "xu": 0.5, "lsu": 1.0}[pipe]


def _kb(size: int) -> int:
    return size * 1024


ARCHITECTURES: dict[str, Arch] = {
    arch.name: arch
    for arch in (
        Arch(
            name="sm_80",
            card="A100",
            cards="A100, A30",
            warps_per_sm=64,
            ctas_per_sm=32,
            smem_per_sm_bytes=_kb(164),
            fma_lanes=64,
        ),
        Arch(
            name="sm_86",
            card="A40",
            cards="A40, A10, RTX 3090",
            warps_per_sm=48,
            ctas_per_sm=16,
            smem_per_sm_bytes=_kb(100),
        ),
        Arch(
            name="sm_89",
            card="L40S",
            cards="L40S, L4, RTX 4090",
            warps_per_sm=48,
            ctas_per_sm=24,
            smem_per_sm_bytes=_kb(100),
        ),
        Arch(
            name="sm_90a",
            card="H200",
            cards="H100, H200, GH200",
            warps_per_sm=64,
            ctas_per_sm=32,
            smem_per_sm_bytes=_kb(228),
            cluster_size=8,
        ),
        Arch(
            name="sm_100a",
            card="B200",
            cards="B200, GB200",
            warps_per_sm=64,
            ctas_per_sm=32,
            smem_per_sm_bytes=_kb(228),
            tmem_columns=512,
            cluster_size=8,
        ),
        Arch(
            name="sm_103a",
            card="B300",
            cards="B300, GB300",
            warps_per_sm=64,
            ctas_per_sm=32,
            smem_per_sm_bytes=_kb(228),
            tmem_columns=512,
            cluster_size=8,
        ),
        Arch(
            name="sm_120a",
            card="RTX PRO 6000 Blackwell",
            cards="RTX PRO 6000 Blackwell, RTX 5090",
            warps_per_sm=48,
            ctas_per_sm=24,
            smem_per_sm_bytes=_kb(100),
            cluster_size=8,
        ),
    )
}


def find(name: str) -> Arch:
    """The limits of architecture `name`; UsageError if kernelexp does not know it."""
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise UsageError(f"unknown architecture {name!r}: kernelexp knows {known}.")
    return ARCHITECTURES[name]
