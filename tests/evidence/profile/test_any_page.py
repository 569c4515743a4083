"""Pages of ncu of any text: each is read, or refused in a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ncu_pages import figure, raw, read, text

from kernelexp.model.errors import UsageError

_CELLS = st.text(st.characters(codec="utf-8", exclude_characters='"\r\n'), max_size=12)
_ODD = st.sampled_from(
    [
        "ID",
        "Kernel Name",
        "0",
        "1",
        "no data",
        "1,234.5",
        '"',
        '","',
        "==PROF==",
        "0x7f00",
        "Source",
    ]
)


@given(st.text(max_size=400) | st.binary(max_size=400).map(lambda b: b.decode("utf-8", "replace")))
def test_any_text_is_read_or_refused(printed: str) -> None:
    try:
        read(printed)
    except UsageError:
        pass


@given(st.lists(st.lists(_CELLS | _ODD, max_size=6), max_size=12), st.sampled_from(["raw.csv", ""]))
def test_any_rows_behind_a_page_are_read_or_refused(rows: list[list[str]], name: str) -> None:
    behind = "".join('"' + '","'.join(row) + '"\n' for row in rows)
    before = text(name) if name else '"ID","Kernel Name","Section Name","Metric Name"\n'
    try:
        read(before + behind)
    except UsageError:
        assert not name


@settings(max_examples=60)
@given(st.data())
def test_a_page_cut_anywhere_is_read_or_refused(data: st.DataObject) -> None:
    whole = text(data.draw(st.sampled_from(["raw.csv", "details.csv", "source-cuda-sass.csv"])))
    try:
        result = read(whole[: data.draw(st.integers(0, len(whole)))])
    except UsageError:
        return
    assert len(result) <= 4


@given(st.floats(0, 1e15, allow_subnormal=False), st.sampled_from([",", ".", " ", "\u202f", "'"]))
def test_a_number_printed_with_thousands_and_decimals_is_that_number(
    value: float, thousands: str
) -> None:
    decimal = "," if thousands == "." else "."
    printed = f"{value:,.2f}".replace(",", "T").replace(".", decimal).replace("T", thousands)
    assert figure(printed) == pytest.approx(float(f"{value:.2f}"))


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}__[a-z_]{1,8}", fullmatch=True), st.integers(0)))
def test_what_is_written_as_a_raw_page_is_read_again(figures: dict[str, int]) -> None:
    (evidence,) = read(raw(*((name, "", f"{value:,}") for name, value in figures.items())))
    assert evidence.figures == {name: pytest.approx(value) for name, value in figures.items()}
