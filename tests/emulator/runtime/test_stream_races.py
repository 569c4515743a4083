"""Work of several streams on the same memory."""

from __future__ import annotations

from pathlib import Path

import kept
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import ROOT

from kernelexp.services import execution
from kernelexp.services.execution import ExecRequest
from kernelexp.system.toolchain import Toolchain
from warpsim.runtime.stream_races import Ranges

pytestmark = pytest.mark.xdist_group("programs")


@pytest.fixture(scope="module")
def program(usual_tools: Toolchain) -> Path:
    return kept.program([Path(__file__).with_name("streams.cu")], usual_tools)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("race", "launch 2 of add in stream 2 reads byte 0 of"),
        ("early-event", "which launch 1 of fill in stream 1, at streams.cu:45, writes"),
        ("copy", "cudaMemcpyAsync in stream 2 reads byte 0 of"),
        ("non-blocking", "cudaMemcpy in stream 0 reads byte 0 of"),
        ("event", ""),
        ("waits", ""),
        ("default", ""),
        ("halves", ""),
        ("atomics", ""),
    ],
)
def test_what_nothing_orders_is_a_race(
    program: Path, tools: Toolchain, word: str, sentence: str
) -> None:
    executed = execution.execute(ExecRequest(argv=(str(program), word)), tools, ROOT)
    names = [finding.name for finding in executed.findings]
    assert names == ["stream-race"] * bool(sentence)
    assert sentence in " ".join(finding.sentence for finding in executed.findings)


@pytest.fixture(scope="module")
def early(usual_tools: Toolchain) -> Path:
    return kept.program([Path(__file__).with_name("early.cu")], usual_tools)


@pytest.mark.parametrize(
    ("word", "line", "did"),
    [
        ("reads", 18, "wrote"),
        ("writes", 19, "read"),
        ("one-waits-late", 20, "wrote"),
        ("right", 0, ""),
        ("one-waits", 0, ""),
        ("atomics", 0, ""),
    ],
)
def test_what_comes_before_the_wait_is_beside_the_launch_before(
    early: Path, tools: Toolchain, word: str, line: int, did: str
) -> None:
    executed = execution.execute(ExecRequest(argv=(str(early), word)), tools, ROOT)
    assert [mistake.name for mistake in executed.mistakes] == ["race"] * bool(line)
    for mistake in executed.mistakes:
        assert f"early.cu:{line}" in mistake.where
        assert f"the launch before {did} it" in mistake.sentence


PIECES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 8)), max_size=8)


@given(PIECES, PIECES)
def test_ranges_meet_where_a_byte_is_in_both(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    def made(pieces: list[tuple[int, int]]) -> tuple[Ranges, set[int]]:
        whole = {byte for first, size in pieces for byte in range(first, first + size)}
        mask = np.array([byte in whole for byte in range(70)])
        edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])))).reshape(-1, 2)
        return Ranges(edges[:, 0], edges[:, 1]), whole

    (left, mine), (right, theirs) = made(one), made(other)
    assert left.meet(right) == min(mine & theirs, default=None)
