"""What the lanes of a warp do together, in groups with a mask each: as cooperative groups do it."""

from __future__ import annotations

import numpy as np
import pytest
from harness import found, ptx, run

from warpsim import compiled

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


# A shuffle takes from lanes that take part, or from what nobody knows.

SHUFFLED = """
mov.u32 %r4, %t; setp.lt.u32 %p0, %t, 24;
{}
mul.wide.u32 %d0, %t, 4; add.u64 %d0, %d0, %out; st.global.b32 [%d0], %r5;
"""
HALVES = "mov.u32 %r5, 0; setp.ge.u32 %p1, %t, 16; @%p1 bra ON; {} ON:"


def shuffled(library, body: str, *, threads: int = 32) -> list[str]:
    """What is found, in compiled code as in Python."""
    names = []
    for unload in (False, True):
        if unload:
            compiled.unload()
        result = run(
            ptx(SHUFFLED.format(body), ["out"]), {"out": np.zeros(64, np.uint32)}, threads=threads
        )
        names.append([finding.name for finding in result.findings])
    compiled.load(library)
    assert names[0] == names[1]
    return names[0]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            HALVES.format("shfl.sync.bfly.b32 %r5, %r4, 16, 31, 0xffff;"), id="beyond the mask"
        ),
        pytest.param("@!%p0 ret; shfl.sync.down.b32 %r5, %r4, 16, 31, -1;", id="exited"),
        pytest.param(
            "shfl.sync.down.b32 %r5, %r4, 8, 31, -1; add.u32 %r5, %r4, %r5;", id="never started"
        ),
    ],
)
def test_a_lane_that_takes_no_part_gives_nothing(library, body: str) -> None:
    assert shuffled(library, body, threads=24) == ["shuffle-source"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("shfl.sync.down.b32 %r5, %r4, 4, 0x181f, -1;", id="its own at the end"),
        pytest.param(
            "shfl.sync.down.b32 %r6, %r4, 16, 31, -1; setp.lt.u32 %p1, %t, 8;"
            "mov.u32 %r5, 1; @%p1 add.u32 %r5, %r4, %r6;",
            id="not used",
        ),
        pytest.param(
            HALVES.format("shfl.sync.bfly.b32 %r5, %r4, 8, 31, 0xffff;"), id="within the mask"
        ),
    ],
)
def test_what_no_lane_uses_may_come_from_nowhere(library, body: str) -> None:
    assert shuffled(library, body, threads=24) == []


# What nobody wrote, in some lanes.

PARTLY = """
mul.wide.u32 %d0, %t, 4; mov.u64 %d1, s; add.u64 %d1, %d1, %d0;
setp.lt.u32 %p0, %t, 24; @%p0 st.shared.b32 [%d1], %t;
ld.shared.b32 %r1, [%d1]; mov.u32 %r3, 5; mov.u32 %r9, s;
{}
add.u64 %d2, %out, %d0; st.global.b32 [%d2], %r3;
"""


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("@%p0 add.u32 %r3, %r3, %r1;", set()),
        ("@!%p0 add.u32 %r3, %r3, %r1;", {"uninitialised-read"}),
        ("@%p0 mov.b32 %r3, %r1;", set()),
        ("mad.lo.u32 %r1, %r1, 4, %r9; @%p0 ld.shared.b32 %r3, [%r1];", set()),
        (
            "bar.warp.sync -1; and.b32 %r1, %r1, 60; add.u32 %r1, %r1, %r9;"
            "@!%p0 ld.shared.b32 %r3, [%r1];",
            {"uninitialised-read"},
        ),
        ("shfl.sync.idx.b32 %r2, %r1, 3, 31, -1; add.u32 %r3, %r2, 1;", set()),
        ("shfl.sync.idx.b32 %r2, %r1, 31, 31, -1; add.u32 %r3, %r2, 1;", {"uninitialised-read"}),
        ("redux.sync.add.u32 %r2, %r1, -1; @%p0 mov.u32 %r3, %r2;", {"uninitialised-read"}),
        (
            "setp.gt.u32 %p1, %r1, 3; vote.sync.any.pred %p1, %p1, -1;"
            "@%p0 selp.u32 %r3, 1, 0, %p1;",
            {"uninitialised-read"},
        ),
        (
            "@%p0 bra A; bra B; A: redux.sync.add.u32 %r3, %r1, 0xffffff; B:",
            set(),
        ),
    ],
)
def test_a_value_that_nobody_wrote_is_followed_by_lane(body: str, names: set[str]) -> None:
    text = ptx(PARTLY.format(body), ["out"], shared=".shared .b8 s[128];")
    assert found(run(text, {"out": np.zeros(32, np.uint32)})) == names


@pytest.mark.parametrize("loaded", [True, False], ids=["compiled", "Python"])
def test_a_guard_that_is_overwritten_guards_all_results(library, loaded: bool) -> None:
    if not loaded:
        compiled.unload()
    body = """
    setp.lt.u32 %p0, %t, 20; setp.lt.u32 %p1, %t, 4;
    @%p0 setp.lt.u32 %p0|%p1, %t, 10;
    selp.u32 %r3, 1, 0, %p0; selp.u32 %r4, 2, 0, %p1; or.b32 %r3, %r3, %r4;
    mul.wide.u32 %d0, %t, 4; add.u64 %d0, %d0, %out; st.global.b32 [%d0], %r3;
    """
    out = np.zeros(32, np.uint32)
    assert found(run(ptx(body, ["out"]), {"out": out})) == set()
    assert out.tolist() == [1] * 10 + [2] * 10 + [0] * 12
