"""Wavefronts and sectors against the rules spelled out lane by lane."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsim.machine.counts.access import global_cost, shared_cost

WIDTHS = st.sampled_from([1, 2, 4, 8, 16])


@st.composite
def accesses(draw):
    """(addresses, width, active lanes) of a warp."""
    width = draw(WIDTHS)
    lanes = draw(st.lists(st.integers(0, 2000), min_size=32, max_size=32))
    mask = draw(st.integers(1, (1 << 32) - 1))
    return [width * lane for lane in lanes], width, mask


def arrays(addresses: list[int], mask: int) -> tuple[np.ndarray, np.ndarray]:
    active = np.array([[mask >> lane & 1 for lane in range(32)]], bool)
    return np.array([addresses], np.int64), active


def wavefronts(addresses: list[int], width: int, mask: int) -> int:
    """In each phase, the most distinct words that one bank has to deliver."""
    lanes_per_phase = {8: 16, 16: 8}.get(width, 32)
    total = 0
    for first in range(0, 32, lanes_per_phase):
        banks: dict[int, set[int]] = {}
        for lane in range(first, first + lanes_per_phase):
            if mask >> lane & 1:
                for byte in range(addresses[lane], addresses[lane] + width):
                    banks.setdefault(byte // 4 % 32, set()).add(byte // 4)
        total += max((len(words) for words in banks.values()), default=0)
    return total


@settings(max_examples=60, deadline=None)
@given(accesses())
def test_wavefronts_are_the_busiest_banks_words_in_each_phase(access):
    addresses, width, mask = access
    at, active = arrays(addresses, mask)
    assert shared_cost(at, width, active).wavefronts == wavefronts(addresses, width, mask)


@settings(max_examples=60, deadline=None)
@given(accesses())
def test_sectors_and_tags_are_the_distinct_pieces_of_all_bytes(access):
    addresses, width, mask = access
    at, active = arrays(addresses, mask)
    touched = {
        byte
        for lane in range(32)
        if mask >> lane & 1
        for byte in range(addresses[lane], addresses[lane] + width)
    }
    cost = global_cost(at, width, active)
    assert cost.sectors == len({byte // 32 for byte in touched})
    assert cost.tags == len({byte // 128 for byte in touched})
    assert cost.ideal_sectors == -(-mask.bit_count() * width // 32)


@settings(max_examples=30, deadline=None)
@given(accesses(), st.integers(0, 50))
def test_costs_do_not_change_when_a_warp_moves_by_whole_lines(access, lines):
    addresses, width, mask = access
    at, active = arrays(addresses, mask)
    moved = at + 128 * lines
    assert shared_cost(moved, width, active) == shared_cost(at, width, active)
    assert global_cost(moved, width, active) == global_cost(at, width, active)


@pytest.mark.parametrize(
    ("pitch", "width", "expected"),
    [
        (128, 4, 32),  # a column of a 32 x 32 tile of floats
        (132, 4, 1),  # the same, padded
        (528, 16, 4),  # rows of the staging buffer, 16 bytes of padding each
        (512, 16, 32),  # without the padding
        (4, 4, 1),
        (8, 8, 2),
        (0, 4, 1),  # a broadcast
    ],
)
def test_well_known_patterns(pitch, width, expected):
    at = np.arange(32, dtype=np.int64)[None] * pitch
    assert shared_cost(at, width, None).wavefronts == expected


def test_several_warps_cost_the_sum_of_each():
    at = np.stack([np.arange(32) * 4, np.arange(32) * 128]).astype(np.int64)
    assert shared_cost(at, 4, None).wavefronts == 33
    assert global_cost(at, 4, None).sectors == 4 + 32


def test_one_sector_for_all_lanes_is_ideal():
    cost = global_cost(np.zeros((1, 32), np.int64), 4, None)
    assert (cost.sectors, cost.ideal_sectors) == (1, 1)
