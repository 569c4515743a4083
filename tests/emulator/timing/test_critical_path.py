"""The chain of events that the end of a modelled launch waited for."""

from __future__ import annotations

from collections import Counter

import pytest
from small import modelled

from warpsim.timing.model import ModelledLaunch
from warpsim.timing.replay import REASONS

CHAIN = "mad.lo.u32 %r0, %r0, %r1, %r1;"
TILES = 6
# Warp 0 makes a tile and warp 1 uses it; neither runs more than one tile ahead of the other.
ROLES = """
mov.b32 %r1, %t; add.u32 %r0, %t, 7; mov.u32 %r2, 0; setp.ge.u32 %p0, %t, 32; @%p0 bra USES;
MAKES:
  MAKING
  bar.sync 1, 64; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, TILES; @%p1 bra MAKES;
  bra END;
USES:
  bar.sync 1, 64;
  USING
  add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, TILES; @%p1 bra USES;
END: mad.wide.u32 %d1, %t, 4, %out; st.global.u32 [%d1], %r0;
"""


def roles(making: int, using: int) -> ModelledLaunch:
    body = ROLES.replace("MAKING", making * CHAIN).replace("USING", using * CHAIN)
    return modelled(body.replace("TILES", str(TILES)), threads=64)


def by_warp(launch: ModelledLaunch) -> Counter[int]:
    cycles: Counter[int] = Counter()
    for warp, _, _, _, own in launch.replayed.path.tolist():
        cycles[warp] += own
    return cycles


@pytest.mark.parametrize(("making", "using", "slow"), [(200, 10, 0), (10, 200, 1)])
def test_the_path_leads_through_the_role_that_was_made_slow(making: int, using: int, slow: int):
    launch = roles(making, using)
    cycles = by_warp(launch)
    assert cycles[slow] > 0.8 * cycles.total()
    chains = 4 * max(making, using) * TILES
    assert cycles[slow] == pytest.approx(chains, rel=0.25)


def test_the_parts_of_the_path_add_up_to_the_time():
    launch = roles(100, 100)
    assert by_warp(launch).total() == pytest.approx(launch.cycles, rel=0.02)


def test_a_role_that_waits_for_another_names_the_barrier():
    path = roles(200, 10).replayed.path.tolist()
    reasons = {REASONS[reason] for _, _, _, reason, _ in path}
    assert "barrier" in reasons


def test_a_slow_load_is_what_the_path_waits_for():
    load = "mad.wide.u32 %d1, %r0, 4, %out; ld.global.u32 %r0, [%d1];"
    launch = modelled(f"mov.u32 %r0, 0; {20 * load} st.global.u32 [%out], %r0;")
    path = launch.replayed.path.tolist()
    waits = sum(own for *_, reason, own in path if REASONS[reason] == "long_scoreboard")
    assert waits > 0.8 * sum(own for *_, own in path)
