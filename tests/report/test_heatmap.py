"""The map of two axes of a sweep."""

import pytest

from kernelexp.model.arm import Arm
from kernelexp.report.document import heatmap
from kernelexp.report.document.document import text_of

ARMS = {
    f"{x}{y}": Arm(axes={"x": x, "y": y, "z": z}) for z in (0,) for x in (1, 2, 4) for y in "ab"
}
VALUES = {"1a": 1.0, "2a": 1.005, "4a": 1.05, "1b": 1.5, "2b": 60.0}


def cells(values, arms=ARMS):
    shown, _ = heatmap.render(arms, values, "x", "y", 0.01)
    return [[text_of(cell) for cell in row] for row in shown.rows]


def test_each_pair_of_values_has_a_glyph_and_its_distance_from_the_best() -> None:
    assert cells(VALUES) == [
        ["a", "░ best", "░ +0.5%", "▒ +5.0%"],
        ["b", "▓ +50%", "█ 60x", "x"],
    ]


def test_a_pair_has_the_best_of_the_other_axes() -> None:
    arms = {
        "one": Arm(axes={"x": 1, "y": "a", "z": 0}),
        "two": Arm(axes={"x": 1, "y": "a", "z": 1}),
    }
    assert cells({"one": 2.0, "two": 1.0}, arms) == [["a", "░ best"]]


def test_many_columns_have_glyphs_alone() -> None:
    arms = {str(x): Arm(axes={"x": x, "y": "a"}) for x in range(12)}
    (row,) = cells({str(x): 1.0 + x / 8 for x in range(12)}, arms)
    assert row[1:] == ["░", *"▓" * 8, *"█" * 3]


@pytest.mark.parametrize(
    ("excess", "text"),
    [
        (0.0, "best"),
        (0.0001, "+0.0%"),
        (0.0123, "+1.2%"),
        (0.5, "+50%"),
        (2.1, "3.1x"),
        (59, "60x"),
    ],
)
def test_distances_take_five_characters_at_most(excess: float, text: str) -> None:
    assert heatmap.spell_excess(excess) == text
    assert len(text) <= 5
