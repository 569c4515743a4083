"""Pictures of accesses: a drawing has as many rows and sectors as the access is counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsim.machine.core.site import Site
from warpsim.machine.counts.access import AccessKind, global_cost, shared_cost
from warpsim.machine.counts.patterns import Patterns

SITE = Site(number=3, opcode="ld", kind="", listing="PTX", line=1, source=None, text="")
WIDTHS = (4, 8, 16)


def access(width: int, store: bool) -> AccessKind:
    return AccessKind(site=SITE, element=4, elements=width // 4, store=store)


@st.composite
def warps(draw: st.DrawFn) -> tuple[int, bool, np.ndarray, np.ndarray]:
    width = draw(st.sampled_from(WIDTHS))
    places = draw(st.lists(st.integers(0, 255), min_size=32, max_size=32))
    mask = draw(st.lists(st.booleans(), min_size=32, max_size=32).filter(any))
    return width, draw(st.booleans()), np.array(places, np.int64) * width, np.array(mask)


@given(warps())
def test_a_row_of_shared_memory_is_a_wavefront(
    case: tuple[int, bool, np.ndarray, np.ndarray],
) -> None:
    width, store, addresses, mask = case
    cost = shared_cost(addresses[None], width, mask[None], pairs=not store)
    patterns = Patterns()
    patterns.note("shared", addresses[None], access(width, store), mask[None], cost.wavefronts)
    result = patterns.found[3]
    assert len(result.rows) == sum(result.phases) == result.cost == cost.wavefronts


@given(warps())
def test_every_word_of_a_lane_stands_in_the_column_of_its_bank(
    case: tuple[int, bool, np.ndarray, np.ndarray],
) -> None:
    width, store, addresses, mask = case
    patterns = Patterns()
    patterns.note("shared", addresses[None], access(width, store), mask[None], 1)
    drawn = {
        (lane, bank)
        for row in patterns.found[3].rows
        for bank, lane in enumerate(row)
        if lane is not None
    }
    own = {
        (lane, (int(addresses[lane]) // 4 + word) % 32)
        for lane in np.flatnonzero(mask).tolist()
        for word in range(width // 4)
    }
    assert drawn <= own
    assert {bank for _, bank in drawn} == {bank for _, bank in own}


@given(warps())
def test_the_sectors_of_a_drawing_are_those_that_are_counted(
    case: tuple[int, bool, np.ndarray, np.ndarray],
) -> None:
    width, store, addresses, mask = case
    cost = global_cost(addresses[None], width, mask[None])
    patterns = Patterns()
    patterns.note("global", addresses[None], access(width, store), mask[None], cost.sectors)
    sectors = [
        any(lane is not None for lane in row[at : at + 8])
        for row in patterns.found[3].rows
        for at in range(0, 32, 8)
    ]
    assert sum(sectors) == cost.sectors


def test_of_two_accesses_the_dearer_is_kept() -> None:
    patterns = Patterns()
    alike, apart = np.arange(32)[None] * 4, np.arange(32)[None] * 128
    for addresses in (alike, apart, alike):
        spent = shared_cost(addresses, 4, None).wavefronts
        patterns.note("shared", addresses, access(4, True), True, spent)
    assert patterns.found[3].cost == 32
    assert patterns.found[3].rows[5].index(5) == 0


@pytest.mark.parametrize("space", ["shared", "global"])
def test_lanes_that_take_no_part_have_no_address(space: str) -> None:
    mask = np.zeros((1, 32), bool)
    mask[0, 7] = True
    patterns = Patterns()
    patterns.note(space, np.zeros((1, 32), np.int64), access(4, False), mask, 1)
    addresses = patterns.found[3].addresses
    assert [lane for lane, item in enumerate(addresses) if item is not None] == [7]
