"""How figures are written."""

from __future__ import annotations

import msgspec
import pytest

from kernelexp.model.arm import PublishedResult
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
    assert figures.effect(wide) == "-1.24% (-99.90% to over +1,000%)"


@pytest.mark.parametrize(
    ("ms", "text"), [(0.5791, "0.579"), (0.0091, "0.0091"), (12.3456, "12.346"), (None, "—")]
)
def test_a_short_time_keeps_four_digits(ms: float | None, text: str) -> None:
    assert figures.time_ms(ms) == text


@pytest.mark.parametrize("ratio", [1.0, 0.99997, 1.00004])
def test_no_change_has_no_sign(ratio: float) -> None:
    assert figures.percent(ratio) == "0.00%"


@pytest.mark.parametrize(
    ("number", "text"), [(3643.2, "3,643"), (999.4, "999.4"), (10_000, "10,000")]
)
def test_four_digits_have_a_separator_as_five_have(number: float, text: str) -> None:
    assert figures.value(number) == text


def test_a_large_number_with_a_fraction_has_separators_and_no_exponent() -> None:
    assert figures.value(262998.4) == "262,998"


@pytest.mark.parametrize(
    ("was", "now", "text"),
    [
        (PublishedResult(time_ms=0.700), PublishedResult(time_ms=0.633), "-9.6%"),
        (
            PublishedResult(time_ms=0.722, approximate=True),
            PublishedResult(time_ms=0.747),
            "~+3.5%",
        ),
        (PublishedResult(time_ms=0.722), PublishedResult(tflops=1564.0), ""),
        (None, PublishedResult(time_ms=0.747), ""),
    ],
)
def test_a_change_of_published_times_is_as_rounded_as_they_are(
    was: PublishedResult | None, now: PublishedResult, text: str
) -> None:
    assert figures.published_change(was, now) == text


def test_both_of_two_times_have_three_decimals() -> None:
    assert figures.pair(0.7, 0.633, "ms") == ("0.700", "0.633", "ms")


@pytest.mark.parametrize(("tflops", "shown"), [(0.309, "0.309"), (2.98, "2.98"), (1892.3, "1892")])
def test_a_published_rate_below_10_tflops_keeps_its_digits(tflops: float, shown: str) -> None:
    assert figures.published_tflops(PublishedResult(tflops=tflops)) == shown
