"""Sets of wrong rows and columns in words."""

from __future__ import annotations

import pytest

from kernelexp.evidence.measure.results import describe_set


@pytest.mark.parametrize(
    ("indices", "words"),
    [
        (range(512), ""),
        ([7], "row 7"),
        (range(96, 128), "rows 96 to 127"),
        (range(0, 512, 4), "every 4th row from 0 to 508"),
        ([*range(11), *range(12, 15)], "rows 0 to 10 and 12 to 14"),
        ([3, 15], "rows 3 and 15"),
        ([i for i in range(512) if i != 449], "all rows but row 449"),
        ([i for i in range(512) if i % 16 < 8], "8 of every 16 rows from 0 to 503"),
    ],
)
def test_a_set_is_described_by_its_rule(indices: list[int], words: str) -> None:
    assert describe_set(list(indices), 512, "row") == words
