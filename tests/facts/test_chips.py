"""Peaks of cards: by the names that drivers give, and consistent with each other."""

from __future__ import annotations

import pytest

from kernelexp.facts import chips
from kernelexp.facts.chips import ARCHITECTURES


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H200", "H200"),
        ("B200", "B200"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ],
)
def test_a_chip_is_known_by_its_drivers_name(device: str, name: str) -> None:
    chip = chips.find(device)

    assert chip is not None
    assert chip.name == name


@pytest.mark.parametrize("device", ["NVIDIA L40S", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "", "B2"])
def test_another_card_is_not_taken_for_one_of_the_table(device: str) -> None:
    assert chips.find(device) is None


@pytest.mark.parametrize("chip", chips.CHIPS.values(), ids=lambda chip: chip.name)
def test_every_limit_has_a_source(chip: chips.Chip) -> None:
    limits = [chip.sms, chip.clock, chip.dram, chip.l2_size, chip.smem, *chip.tensor.values()]

    assert all(limit.value > 0 and limit.source for limit in limits)
    assert chip.family in chips.FAMILIES.values()
    assert chip.arch in ARCHITECTURES


@pytest.mark.parametrize("chip", chips.CHIPS.values(), ids=lambda chip: chip.name)
def test_tensor_peaks_are_a_power_of_two_per_clock(chip: chips.Chip) -> None:
    """SMs x clock x 2^n: a peak given with sparsity, or of another card, falls out of line."""
    per_clock = chip.tensor["bf16"].value / (chip.sms.value * chip.clock.value)
    nearest = min((2**power for power in range(8, 15)), key=lambda item: abs(item - per_clock))

    assert per_clock == pytest.approx(nearest, rel=0.08)


def test_a_capability_names_the_chip_of_ncus_metrics() -> None:
    assert chips.family("10.0") == "gb100"
    assert chips.family("9.0") == "gh100"
    assert chips.family("6.1") == ""


def test_an_architecture_names_the_same_chip() -> None:
    assert chips.family_of_arch("sm_100a") == "gb100"
    assert chips.family_of_arch("sm_86") == "ga102"
