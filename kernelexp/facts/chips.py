"""Peak figures of each GPU, with the source of each: the peaks that a report refers to.

arch.py has what one SM of an architecture holds; this table is about cards, by the name that the
driver gives them. Figures are in base units: FLOP/s, bytes per second, Hz, bytes. A figure that no
source gives is None, never a guess. Tensor peaks are dense; where a datasheet gives the figure with
sparsity only, half of it. A peak of a floating-point type is that of accumulation in FP32.
"""

from __future__ import annotations

import math
import re

import msgspec

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
    """The architecture that kernelexp builds for; a key of arch.ARCHITECTURES where it is known."""
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
