"""Conditions on instructions judged by what a variant has."""

from __future__ import annotations

import pytest

from kernelexp.judge.instructions import InstructionCounts, instruction_expectations

BEFORE = InstructionCounts(
    every={"BAR.SYNC.DEFER_BLOCKING": 6, "LDG.E": 8}, in_loops={"BAR.SYNC.DEFER_BLOCKING": 5}
)
AFTER = InstructionCounts(
    every={"BAR.SYNC.DEFER_BLOCKING": 3, "LDG.E.128": 2}, in_loops={"BAR.SYNC.DEFER_BLOCKING": 2}
)


def results(*texts: str, before: InstructionCounts | None = None) -> list[tuple[str, int, str]]:
    judged = instruction_expectations(AFTER, texts, before)
    assert [item.condition for item in judged] == list(texts)
    return [(item.result, item.actual, item.sentence) for item in judged]


def test_a_number_is_met_or_missed_by_so_many() -> None:
    assert results("LDG.128 >= 1", "BAR.SYNC <= 2", "STL == 0", "LDG != 2") == [
        ("met", 2, ""),
        ("missed", 3, "by 1"),
        ("met", 0, ""),
        ("missed", 2, "it hits what is excluded"),
    ]


def test_in_loops_counts_only_those() -> None:
    assert results("BAR.SYNC in loops <= 2", "BAR.SYNC in loops == 3") == [
        ("met", 2, ""),
        ("missed", 2, "by 1"),
    ]


def test_a_change_is_from_the_baseline() -> None:
    assert results(
        "BAR.SYNC in loops -60%", "BAR.SYNC -60%", "LDG -6", "BAR unchanged", before=BEFORE
    ) == [
        ("met", 2, ""),
        ("missed", 3, "by 10.00 percentage points"),
        ("met", 2, ""),
        ("missed", 3, "by 3"),
    ]


def test_there_is_no_percentage_of_nothing() -> None:
    ((result, _, sentence),) = results("LDG.128 +10%", before=BEFORE)
    assert result == "missed"
    assert "of which there is no percentage" in sentence


def test_a_change_without_a_baseline_is_refused() -> None:
    with pytest.raises(ValueError, match="name a baseline before it"):
        results("LDG -50%")
