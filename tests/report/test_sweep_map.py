"""The map of two axes of a sweep."""

from support import ROOT

from kernelexp.logs import records
from kernelexp.model.arm import Arm
from kernelexp.report.document.document import Table, text_of
from kernelexp.report.runs import sweep, sweep_map

ARMS = {
    f"{x}{y}": Arm(axes={"x": x, "y": y, "z": z}) for z in (0,) for x in (1, 2, 4) for y in "ab"
}
VALUES = {"1a": 1.0, "2a": 1.005, "4a": 1.05, "1b": 1.5, "2b": 60.0}
TEXTS = {"1a": "-1.00%", "2a": "-0.50%", "4a": "+4.00%", "1b": "+48.50%", "2b": "59x"}


def cells(values, arms=ARMS, texts=TEXTS):
    mapped = sweep_map.MappedFigure(title="Change of time", values=values, texts=texts)
    shown, _ = sweep_map.render(arms, mapped, ("y", "x"), 0.01)
    return [[text_of(cell) for cell in row] for row in shown.rows]


def test_each_pair_of_values_is_shaded_by_the_best_and_has_the_tables_figure() -> None:
    assert cells(VALUES) == [
        ["a", "░ -1.00%", "░ -0.50%", "▒ +4.00%"],
        ["b", "▓ +48.50%", "█ 59x", "x"],
    ]


def test_a_pair_has_the_best_of_the_other_axes() -> None:
    arms = {
        "one": Arm(axes={"x": 1, "y": "a", "z": 0}),
        "two": Arm(axes={"x": 1, "y": "a", "z": 1}),
    }
    assert cells({"one": 2.0, "two": 1.0}, arms, {"two": "base"}) == [["a", "░ base"]]


def test_many_columns_have_glyphs_alone() -> None:
    arms = {str(x): Arm(axes={"x": x, "y": "a"}) for x in range(12)}
    (row,) = cells({str(x): 1.0 + x / 8 for x in range(12)}, arms)
    assert row[1:] == ["░", *"▓" * 8, *"█" * 3]


def test_a_field_has_the_figure_of_its_variants_row_of_the_table() -> None:
    record = records.read_file(records.find(ROOT, "sweep-transpose"))
    tables = [block for block in sweep.render(record) if isinstance(block, Table)]
    fields = {text_of(cell).split()[-1] for row in tables[2].rows for cell in row[1:]}
    changes = {text_of(row[4]) for row in tables[0].rows}
    assert len(fields) == 9
    assert fields <= {*changes, "base"}
