from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsim.machine.core.tmem_areas import COLUMNS, GRANULES, Area, Layers

GRANULE_SETS = st.sampled_from(
    [(0, 8, 1), (0, 2, 1), (2, 4, 1), (6, 8, 1), (0, 1, 1), (3, 4, 1), (0, 8, 2), (1, 8, 2)]
)
ENDS = st.lists(st.integers(0, 12), min_size=2, max_size=2, unique=True).map(sorted)
AREAS = st.builds(
    lambda granules, ends: Area(0, granules, 8 * ends[0], 8 * ends[1]), GRANULE_SETS, ENDS
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(AREAS, st.integers(0, 4), AREAS), min_size=1, max_size=80))
def test_every_area_has_the_epochs_that_were_put_there_last(
    steps: list[tuple[Area, int, Area]],
) -> None:
    layers, expected = Layers(), np.zeros((GRANULES, COLUMNS), np.int64)
    for area, epoch, item in steps:
        layers.put(area, epoch)
        expected[slice(*area.granules), area.first : area.end] = epoch
        wanted = expected[slice(*item.granules), item.first : item.end]
        assert {*layers.of(item)} == {*wanted.ravel().tolist()}
    assert (layers.array(item) == wanted).all()


@settings(max_examples=40, deadline=None)
@given(AREAS, st.lists(AREAS, max_size=3))
def test_areas_overlap_where_they_share_a_granule_of_a_column(
    one: Area, others: list[Area]
) -> None:
    marks = np.zeros((GRANULES, COLUMNS), bool)
    for other in others:
        marks[slice(*other.granules), other.first : other.end] = True
    shared = marks[slice(*one.granules), one.first : one.end].any()
    assert bool(one.overlaps(others)) == shared
