"""What the lanes of a warp do together, in groups with a mask each: as cooperative groups do it."""

from __future__ import annotations

import numpy as np
import pytest
from harness import ptx, run

# Four tiles of 8 lanes: the mask of lane t's tile is 0xff << (t & ~7).
TILE = """
and.b32 %r1, %t, 24; mov.u32 %r2, 255; shl.b32 %r3, %r2, %r1;
mul.wide.u32 %d0, %t, 4; add.u64 %d1, %in, %d0; ld.global.b32 %r4, [%d1];
{body}
add.u64 %d2, %out, %d0; st.global.b32 [%d2], %r5;
"""
VALUES = np.array([3, 3, 7, 1, 9, 9, 9, 2] * 2 + [5] * 8 + list(range(8)), np.uint32)


def tiles(body: str) -> list[list[int]]:
    out = np.zeros(32, np.uint32)
    text = ptx(TILE.format(body=body), ["in", "out"])
    assert run(text, {"in": VALUES, "out": out}).findings == ()
    return out.reshape(4, 8).tolist()


def expected(of_tile) -> list[list[int]]:
    return [
        [of_tile(list(tile), 8 * i) for _ in range(8)]
        for i, tile in enumerate(VALUES.reshape(4, 8))
    ]


def test_a_ballot_is_that_of_the_lane_s_own_group():
    got = tiles("setp.gt.u32 %p0, %r4, 4; vote.sync.ballot.b32 %r5, %p0, %r3;")
    assert got == expected(lambda tile, at: sum(int(v > 4) << at + i for i, v in enumerate(tile)))


@pytest.mark.parametrize(("mode", "fold"), [("all", all), ("any", any)])
def test_a_vote_is_that_of_the_lane_s_own_group(mode, fold):
    vote = f"setp.gt.u32 %p0, %r4, 4; vote.sync.{mode}.pred %p1, %p0, %r3; selp.b32 %r5, 1, 0, %p1;"
    assert tiles(vote) == expected(lambda tile, at: int(fold(v > 4 for v in tile)))


@pytest.mark.parametrize(("mode", "fold"), [("add", sum), ("min", min), ("max", max)])
def test_a_reduction_is_that_of_the_lane_s_own_group(mode, fold):
    got = tiles(f"redux.sync.{mode}.u32 %r5, %r4, %r3;")
    assert got == expected(lambda tile, at: int(fold(int(v) for v in tile)))


def test_each_group_elects_its_first_lane():
    assert tiles("elect.sync %r5|%p0, %r3;") == expected(lambda tile, at: at)


def test_lanes_match_within_their_group():
    got = tiles("match.any.sync.b32 %r5, %r4, %r3;")
    want = [
        [sum(1 << 8 * i + j for j, other in enumerate(tile) if other == value) for value in tile]
        for i, tile in enumerate(VALUES.reshape(4, 8).tolist())
    ]
    assert got == want


def test_a_group_matches_if_all_its_lanes_agree():
    got = tiles("match.all.sync.b32 %r5|%p0, %r4, %r3;")
    assert got == expected(lambda tile, at: 0xFF << at if len(set(tile)) == 1 else 0)
