"""Limits of each GPU architecture and peak figures of each GPU, with the source of each.

Source of the per-architecture figures: CUDA C++ Programming Guide 13.0, "Compute Capabilities",
tables "Technical Specifications per Compute Capability" (warps, threads, blocks, registers,
shared memory), "Throughput of Native Arithmetic Instructions" (lanes per clock), and the occupancy
calculator's allocation units (registers in units of 256 per warp, shared memory in units of 128
bytes, 1 KB of it reserved for each block from 8.0 on). Tensor memory: PTX ISA 9.1, "Tensor Memory"
(128 lanes of 512 columns of 32 bits per CTA).

Cards go by the name that the driver gives them: the peaks that a report refers to. Figures are in
base units: FLOP/s, bytes per second, Hz, bytes. A figure that no source gives is None, never a
guess. Tensor peaks are dense; where a datasheet gives the figure with sparsity only, half of it. A
peak of a floating-point type is that of accumulation in FP32."""

from __future__ import annotations

import math
import re

import msgspec

from kernelexp.model.errors import UsageError

FAMILIES: dict[str, str] = {
    "7.5": "tu102",
    "8.0": "ga100",
    "8.6": "ga102",
    "8.9": "ad102",
    "9.0": "gh100",
    "10.0": "gb100",
    "10.3": "gb110",
    "12.0": "gb202",
}
"""The chip whose metrics ncu lists, by compute capability; one chip stands for its siblings."""

_CUDA = "CUDA C++ Programming Guide 13.0, shared memory: 32 banks of 4 bytes per clock"
_A100 = "NVIDIA A100 datasheet, 80 GB SXM; NVIDIA A100 architecture white paper"
_ADA = "NVIDIA Ada GPU architecture white paper, appendix A, GeForce RTX 4090"
_L4 = "NVIDIA L4 datasheet"
_H100 = "NVIDIA H100 datasheet, SXM"
_H200 = "NVIDIA H200 datasheet, SXM"
_B200 = "NVIDIA Blackwell datasheet, HGX B200, per GPU"
_HALF = "; half of the figures with sparsity"
_H200_ATTRIBUTES = "device attributes of an H200, as ncu 2025.3.1 reports them"
_B200_ATTRIBUTES = "device attributes of a B200, as ncu reports them in siglip's data/after.csv"


class ChipLimit(msgspec.Struct, frozen=True, kw_only=True):
    """One figure that a chip cannot exceed."""

    value: float
    unit: str
    source: str


class Chip(msgspec.Struct, frozen=True, kw_only=True):
    """A card: what it does at most."""

    name: str
    family: str
    """The chip as ncu --list-chips names it."""
    arch: str
    """The architecture that kernelexp builds for; a key of ARCHITECTURES where it is known."""
    sms: ChipLimit
    clock: ChipLimit
    """The highest SM clock, in Hz."""
    tensor: dict[str, ChipLimit]
    """Dense peak by type of operand (fp8, bf16, tf32, int8), in FLOP/s (int8: operations)."""
    dram: ChipLimit
    """Bandwidth of device memory, in bytes per second."""
    l2_size: ChipLimit
    l2: ChipLimit | None = None
    """Bytes per L2 clock that all SMs together read from L2."""
    smem: ChipLimit = ChipLimit(value=128, unit="B/clk/SM", source=_CUDA)

    def flops_per_clock(self, kind: str) -> int:
        """Dense FLOPs that an SM's tensor cores do in a clock, for a key of `tensor`.

        A power of two: the one that the datasheet's peak comes to, which is of some clock below
        the highest. With 8,192 on an H200 and 16,384 on a B200 (FP8) the FLOPs of a launch over
        its cycles are what ncu reports as sm__pipe_tensor_cycles_active, 88.44% and 40.39%.
        """
        return 1 << round(math.log2(self.tensor[kind].value / (self.sms.value * self.clock.value)))


def _limit(value: float, unit: str, source: str) -> ChipLimit:
    return ChipLimit(value=value, unit=unit, source=source)


def _tensor(source: str, **tflops: float) -> dict[str, ChipLimit]:
    return {name: _limit(value * 1e12, "FLOP/s", source) for name, value in tflops.items()}


_A100_OF_80GB = Chip(
    name="A100",
    family="ga100",
    arch="sm_80",
    sms=_limit(108, "", _A100),
    clock=_limit(1.410e9, "Hz", _A100),
    tensor=_tensor(_A100, bf16=312, fp16=312, tf32=156, int8=624),
    dram=_limit(2.039e12, "B/s", _A100),
    l2_size=_limit(40 << 20, "B", _A100),
    l2=_limit(5120, "B/clk", _A100),
)
CHIPS: dict[str, Chip] = {
    chip.name: chip
    for chip in (
        _A100_OF_80GB,
        msgspec.structs.replace(
            _A100_OF_80GB,
            name="A100 40GB",
            dram=_limit(1.555e12, "B/s", "NVIDIA A100 architecture white paper, 40 GB SXM"),
        ),
        Chip(
            name="RTX 4090",
            family="ad102",
            arch="sm_89",
            sms=_limit(128, "", _ADA),
            clock=_limit(2.520e9, "Hz", _ADA),
            tensor=_tensor(_ADA, fp8=330.3, bf16=165.2, fp16=165.2, tf32=82.6, int8=660.6),
            dram=_limit(1.008e12, "B/s", _ADA),
            l2_size=_limit(72 << 20, "B", _ADA),
        ),
        Chip(
            name="L4",
            family="ad102",
            arch="sm_89",
            sms=_limit(58, "", _L4 + ": 30.3 FP32 TFLOPS are those of 58 SMs at 2.04 GHz"),
            clock=_limit(2.040e9, "Hz", "NVIDIA L4 product brief, boost clock"),
            tensor=_tensor(_L4 + _HALF, fp8=242.5, bf16=121, fp16=121, tf32=60, int8=242.5),
            dram=_limit(300e9, "B/s", _L4),
            l2_size=_limit(48 << 20, "B", "NVIDIA Ada GPU architecture white paper, L4"),
        ),
        Chip(
            name="H100",
            family="gh100",
            arch="sm_90a",
            sms=_limit(132, "", "NVIDIA H100 architecture white paper, SXM5"),
            clock=_limit(1.980e9, "Hz", "highest SM clock that nvidia-smi reports for H100 SXM"),
            tensor=_tensor(_H100 + _HALF, fp8=1979, bf16=989.5, fp16=989.5, tf32=494.5, int8=1979),
            dram=_limit(3.35e12, "B/s", _H100),
            l2_size=_limit(50 << 20, "B", "NVIDIA H100 architecture white paper, SXM5"),
        ),
        Chip(
            name="H200",
            family="gh100",
            arch="sm_90a",
            sms=_limit(132, "", _H200_ATTRIBUTES),
            clock=_limit(1.980e9, "Hz", _H200_ATTRIBUTES),
            tensor=_tensor(_H200 + _HALF, fp8=1979, bf16=989.5, fp16=989.5, tf32=494.5, int8=1979),
            dram=_limit(4.8e12, "B/s", _H200),
            l2_size=_limit(62_914_560, "B", _H200_ATTRIBUTES),
        ),
        Chip(
            name="B200",
            family="gb100",
            arch="sm_100a",
            sms=_limit(148, "", _B200_ATTRIBUTES),
            clock=_limit(1.965e9, "Hz", _B200_ATTRIBUTES),
            tensor=_tensor(_B200 + _HALF, fp8=4500, bf16=2250, fp16=2250, tf32=1100, int8=4500),
            dram=_limit(7.7e12, "B/s", _B200),
            l2_size=_limit(132_644_864, "B", _B200_ATTRIBUTES),
        ),
    )
}
"""By name."""


def find(device: str) -> Chip | None:
    """The chip that a device's name is of: `NVIDIA H100 80GB HBM3`, `H200`; None if not here.

    A name is matched in whole words, so that an L40S is no L4; of two that match, the longer one.
    Cards of a name that differ, such as an H100 for PCIe, are not in the table: None.
    """
    words = " ".join(re.split(r"[\s_-]+", device)).casefold()
    if re.search(r"\b(pcie|nvl|gh200|laptop|4090 d)\b", words):
        return None
    named = [chip for chip in CHIPS.values() if _names(chip, words)]
    return max(named, key=lambda chip: len(chip.name), default=None)


def _names(chip: Chip, words: str) -> bool:
    every = chip.name.casefold().split()
    return all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", words) for word in every)


def family(capability: str) -> str:
    """The chip whose metrics ncu has for a compute capability such as 9.0; empty if unknown."""
    return FAMILIES.get(capability, "")


def family_of_arch(arch: str) -> str:
    """The chip whose metrics ncu has for an architecture of nvcc's such as sm_90a; else empty."""
    digits = arch.removeprefix("sm_").rstrip("af")
    return family(f"{digits[:-1]}.{digits[-1:]}")


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
    cluster_size_optin: int = 1
    """The largest with cudaFuncAttributeNonPortableClusterSizeAllowed."""
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
            cluster_size_optin=16,
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
            cluster_size_optin=16,
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
            cluster_size_optin=16,
        ),
        Arch(
            name="sm_120a",
            card="RTX PRO 6000 Blackwell",
            cards="RTX PRO 6000 Blackwell, RTX 5090",
            warps_per_sm=48,
            ctas_per_sm=24,
            smem_per_sm_bytes=_kb(100),
            cluster_size=8,
            cluster_size_optin=8,
        ),
    )
}


def find_arch(name: str) -> Arch:
    """The limits of architecture `name`; UsageError if kernelexp does not know it."""
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise UsageError(f"unknown architecture {name!r}: kernelexp knows {known}.")
    return ARCHITECTURES[name]
