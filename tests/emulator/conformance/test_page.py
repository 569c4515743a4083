"""The page about the suite says what the suite holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import golden

PAGE = (Path(__file__).parents[3] / "warpsim/docs/conformance.md").read_text()

ROWS = {
    "integer, logic": ("integer", "logic"),
    "single, double, half": ("single", "double", "half"),
    "float, FP8, integer conversion": (
        "float_conversion",
        "fp8_conversion",
        "integer_conversion",
    ),
    "approximate": ("approximate",),
    "predicate": ("predicate",),
    "atomics": ("atomics",),
    "warp": ("warp",),
    "control, memory": ("control", "memory"),
    "sync, copy": ("sync", "copy"),
    "tma": ("tma", "tma_store"),
    "matrix, mma, wgmma": ("matrix", "mma", "wgmma"),
    "sparse": ("sparse",),
    "cluster": ("cluster",),
    "rare": ("rare",),
    "correct_*": (
        "correct_divergence",
        "correct_synchronisation",
        "correct_memory",
        "correct_arithmetic",
        "correct_hopper",
    ),
}


@pytest.mark.parametrize("label", ROWS)
def test_a_row_of_the_page_counts_the_programs_of_its_areas(label: str) -> None:
    count = sum(len(golden.cases(area)) for area in ROWS[label])
    assert f"| {label} | {count} |" in PAGE


def test_every_recorded_area_has_a_row() -> None:
    assert {area for areas in ROWS.values() for area in areas} == set(golden.recorded())


def test_the_page_names_the_machine_of_the_data() -> None:
    for area in golden.recorded():
        about = golden.load(area).about
        assert f"{about['gpu']}, {about['driver']}" in PAGE
        assert f"ptxas {about['compiler']}" in PAGE
