"""Names that formulas may use besides metrics: the chip's limits, and what a caller knows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kernelexp.facts import chips
from kernelexp.model.arm import ProfiledEvidence

GIVEN: dict[str, tuple[str, str]] = {
    "chip_sms": ("SMs", ""),
    "chip_clock": ("highest SM clock", "Hz"),
    "chip_dram": ("device memory bandwidth", "B/s"),
    "chip_l2_size": ("L2 size", "B"),
    "chip_smem": ("shared memory bandwidth per SM", "B/clk"),
    "peak_flops": ("dense tensor peak", "FLOP/s"),
    "flops": ("useful FLOPs", "FLOP"),
    "minimum_bytes": ("least traffic with device memory", "B"),
    "time_ms": ("time", "ms"),
    "peer_ms": ("the peer's time", "ms"),
}
"""Label and unit by name."""

_SM_COUNTS = ("device__attribute_multiprocessor_count", "launch__sm_count")


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A value that a formula uses, and where it is from."""

    label: str
    value: float
    unit: str = ""
    source: str = ""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a variant from outside its profile; None and empty where unknown."""

    time_ms: float | None = None
    time_source: str = ""
    peer: str = ""
    """Whose kernel it is compared with."""
    peer_ms: float | None = None
    flops: float | None = None
    """Useful FLOPs of a launch."""
    flops_source: str = ""
    minimum_bytes: float | None = None
    """Bytes that a launch must at least exchange with device memory."""
    dtype: str = ""
    """The operands' type, as in chips.Chip.tensor: fp8, bf16."""


NOTHING = Run()


def family_of(evidence: ProfiledEvidence) -> str:
    """The chip that ncu's metrics are of; empty where the profile does not tell."""
    chip = chips.find(evidence.device)
    return chips.family(evidence.capability) or (chip.family if chip else "")


def inputs(evidence: ProfiledEvidence, run: Run = NOTHING) -> Mapping[str, Input]:
    """The names of GIVEN that have a value."""
    chip = chips.find(evidence.device)
    values = _of_chip(chip, run.dtype) if chip else {}
    for name in _SM_COUNTS:
        count = evidence.figures.get(name)
        if isinstance(count, int | float):
            values["chip_sms"] = _input("chip_sms", float(count), name)
    known = {
        "time_ms": (run.time_ms, run.time_source),
        "peer_ms": (run.peer_ms, run.peer),
        "flops": (run.flops, run.flops_source or "of the problem"),
        "minimum_bytes": (run.minimum_bytes, "of the problem"),
    }
    for name, (value, source) in known.items():
        if value is not None:
            values[name] = _input(name, value, source)
    return values


def _of_chip(chip: chips.Chip, dtype: str) -> dict[str, Input]:
    limits = {
        "chip_sms": chip.sms,
        "chip_clock": chip.clock,
        "chip_dram": chip.dram,
        "chip_l2_size": chip.l2_size,
        "chip_smem": chip.smem,
        "peak_flops": chip.tensor.get(dtype),
    }
    return {
        name: _input(name, limit.value, limit.source)
        for name, limit in limits.items()
        if limit is not None
    }


def _input(name: str, value: float, source: str) -> Input:
    label, unit = GIVEN[name]
    return Input(label=label, value=value, unit=unit, source=source)
