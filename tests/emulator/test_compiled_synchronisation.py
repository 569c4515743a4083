"""Compiled code arrives at mbarriers and passes their waits as Python does, and leaves to it what
is to be reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from pairs.pair import FaultyPair
from pairs.pipelines import PIPELINES
from test_pairs import executed

from warpsim import compiled
from warpsim.execute import Result
from warpsim.schedule import Schedule

AREA = "pipelines"


def results(pair: FaultyPair) -> list[tuple[Result, bytes]]:
    """Of the right form and the wrong one, whose operations land late, then early."""
    outcomes = []
    for schedule in (Schedule(seed=1), Schedule(seed=1, asynchrony="early")):
        for wrong in (False, True):
            result, arrays = executed(AREA, pair, schedule, wrong=wrong)
            outcomes.append((result, arrays["out"].tobytes()))
    return outcomes


def places(result: Result) -> list[tuple[str, int]]:
    """Of what is reported: which of several threads of a race is named may differ."""
    return [(finding.name, finding.line) for finding in (*result.findings, *result.warnings)]


@pytest.mark.parametrize("pair", PIPELINES, ids=lambda pair: pair.name)
def test_a_protocol_has_the_findings_and_counters_of_python(
    library: Path, pair: FaultyPair
) -> None:
    compiled.load(library)
    fast = results(pair)
    compiled.unload()
    for (result, words), (python, expected) in zip(fast, results(pair), strict=True):
        assert words == expected
        assert places(result) == places(python)
        assert result.counters == python.counters
