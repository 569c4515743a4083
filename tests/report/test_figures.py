"""How figures are written."""

from __future__ import annotations

import msgspec
import pytest

from kernelexp.model.measurement import Effect
from kernelexp.report.document import figures

FOUND = Effect(
    arm="candidate", ratio=0.9876, low=0.9869, high=0.9883, level=0.995, spread=0.0004,
    within=0.0001, detectable=0.001, pairs=480, dropped=0, processes=4,
)  # fmt: skip


def test_a_change_is_spelled_with_its_interval() -> None:
    assert figures.effect(FOUND) == "-1.24% (-1.31% to -1.17%)"


def test_one_process_gives_a_change_without_an_interval() -> None:
    alone = msgspec.structs.replace(FOUND, low=0.0, high=1e300, processes=1)
    assert figures.effect(alone) == "-1.24% (no interval)"


@pytest.mark.parametrize("high", [11.0, 4e20])
def test_an_interval_wider_than_a_table_is_cut(high: float) -> None:
    wide = msgspec.structs.replace(FOUND, low=0.001, high=high)
    assert figures.effect(wide) == "-1.24% (-99.90% to over +1000%)"


@pytest.mark.parametrize(
    ("ms", "text"), [(0.5791, "0.579"), (0.0091, "0.0091"), (12.3456, "12.346"), (None, "—")]
)
def test_a_short_time_keeps_four_digits(ms: float | None, text: str) -> None:
    assert figures.time_ms(ms) == text


def test_a_large_number_with_a_fraction_has_separators_and_no_exponent() -> None:
    assert figures.value(262998.4) == "262,998"
