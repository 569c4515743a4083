"""The card that a program is shown: what cudaGetDeviceProperties() and its kin give."""

from __future__ import annotations

from kernelexp.facts import chips
from kernelexp.facts.chips import find_arch
from kernelexp.model.errors import UsageError

MEMORY_BYTES: dict[str, int] = {
    "A100": 80 << 30,
    "A100 40GB": 40 << 30,
    "RTX 4090": 24 << 30,
    "L4": 24 << 30,
    "H100": 80 << 30,
    "H200": 141 << 30,
    "B200": 180 << 30,
}
"""As the datasheets named in chips.py have it."""
SMALL = "small"
SMALL_SMS = 8


def describe(name: str) -> tuple[dict[str, str], str]:
    """Returns what the program sees of a card, and the architecture that it is compiled for.

    "small" is an H200 with few SMs: programs that take their grid from the number of SMs have less
    to do on it.
    """
    chip = chips.find("H200" if name == SMALL else name)
    if chip is None:
        known = ", ".join([*chips.CHIPS, SMALL])
        raise UsageError(f"--device {name!r} is no card that kernelexp knows: {known}.")
    limits = find_arch(chip.arch)
    digits = chip.arch.removeprefix("sm_").rstrip("af")
    sms = SMALL_SMS if name == SMALL else int(chip.sms.value)
    numbers = {
        "memory": MEMORY_BYTES[chip.name],
        "major": int(digits[:-1]),
        "minor": int(digits[-1]),
        "sms": sms,
        "clock_khz": int(chip.clock.value / 1e3),
        "l2": int(chip.l2_size.value),
        "warps_per_sm": limits.warps_per_sm,
        "ctas_per_sm": limits.ctas_per_sm,
        "threads_per_cta": limits.threads_per_cta,
        "registers_per_sm": limits.registers_per_sm,
        "register_unit": limits.register_unit,
        "smem_per_cta": 48 << 10,
        "smem_per_cta_optin": limits.smem_per_cta_bytes,
        "smem_per_sm": limits.smem_per_sm_bytes,
        "smem_reserved": limits.smem_reserved_bytes,
        "cluster_size": limits.cluster_size,
        "cluster_size_optin": limits.cluster_size_optin,
    }
    result = {"name": f"NVIDIA {chip.name} (emulated)", **{k: str(v) for k, v in numbers.items()}}
    return result, chip.arch
