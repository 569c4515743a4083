"""The metrics of the section files are ncu's.

tests/data/ncu/metrics-used.csv has each base name that a section uses, its type and the chips that
have it. It was made on a machine with ncu 2025.3.1 by

    for chip in gb100 gh100 ad102 ga102 ga100; do ncu --query-metrics --chip $chip; done

keeping, of each table, the rows whose name is the part before the first dot of a metric in
kernelexp/project/sections/data. A metric that is added there is added to the list in the same way.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from kernelexp.project import sections

CHIPS = ("gb100", "gh100", "ad102", "ga102", "ga100")
DATA = Path(__file__).parents[2] / "data/ncu/metrics-used.csv"
SUFFIXES = {"Counter": ("sum", "avg", "min", "max"), "Ratio": ("ratio", "pct", "max_rate")}


@pytest.fixture(scope="module")
def known() -> dict[str, tuple[str, set[str]]]:
    """Type and chips by name."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return {
            row["metric"]: (row["type"], set(row["chips"].split())) for row in csv.DictReader(file)
        }


@pytest.mark.parametrize("chip", CHIPS)
def test_every_metric_asked_for_exists_on_the_chip(
    chip: str, known: dict[str, tuple[str, set[str]]]
) -> None:
    for metric in sections.metrics_to_ask(_all(), chip):
        name, _, suffix = metric.partition(".")
        kind, chips = known[name]
        assert chip in chips, metric
        assert suffix.partition(".")[0] in SUFFIXES[kind], metric


@pytest.mark.parametrize("chip", CHIPS)
def test_no_section_says_that_a_chip_lacks_what_it_has(
    chip: str, known: dict[str, tuple[str, set[str]]]
) -> None:
    result = set(sections.metrics_to_ask(_all(), chip))
    lacking = set(sections.metrics_to_ask(_all(), "")) - result

    assert not [metric for metric in lacking if chip in known[metric.partition(".")[0]][1]]


def _all() -> list[sections.Section]:
    return [*sections.find(), sections.builtin("gap")]
