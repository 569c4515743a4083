"""Rates of a calibration: one row for each amount of extra work."""

from __future__ import annotations

from collections.abc import Iterator

from kernelexp.report.document.document import Block, paragraph, table
from kernelexp.services.calibration import COMPARED, Calibrated

_HEADER = ("extra work", "true", "estimate", "spread", "detected", "faster", "slower", "covered")


def render(rated: Calibrated) -> Iterator[Block]:
    yield paragraph(
        f"{rated.device}, driver {rated.driver}: comparisons of {COMPARED} processes drawn from "
        f"one recording, margin {100 * rated.margin:g}%"
    )
    rows = [
        (
            f"{percent}%",
            f"{100 * rates.truth:+.2f}%",
            f"{100 * (rates.truth + rates.bias):+.2f}%",
            f"{100 * rates.spread:.3f}%",
            f"{rates.detected}/{rates.comparisons}",
            str(rates.statuses.get("IMPROVED", 0)),
            str(rates.statuses.get("REJECTED", 0)),
            f"{rates.covered}/{rates.comparisons}",
        )
        for percent, rates in rated.rates.items()
    ]
    yield table(_HEADER, rows, numbers=range(len(_HEADER)))
    disjoint = sum(rates.disjoint for rates in rated.rates.values())
    yield paragraph(f"Draws share processes: {disjoint} of them are disjoint.", style="dim")
