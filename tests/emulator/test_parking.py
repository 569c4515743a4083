"""Warps that wait are looked at again when what they wait for has changed, and only then."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from harness import found, ptx, run

from warpsim.machine.schedule.parking import Parking
from warpsim.machine.schedule.synchronisation import Synchronisation
from warpsim.machine.sync.gates import Fragment
from warpsim.machine.sync.phases import PhaseTest

WARPS, ROUNDS = 4, 5
# Warp 0 meets the last one at a barrier again and again, then arrives where the others wait, and
# nobody exits before all have gone on.
TEXT = ptx(
    f"""
    mov.u32 %r1, bar;
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra INITIALISED;
    mbarrier.init.shared::cta.b64 [%r1], 1;
    INITIALISED:
    bar.sync 0;
    setp.lt.u32 %p1, %t, 32;
    setp.ge.u32 %p2, %t, {32 * (WARPS - 1)};
    or.pred %p3, %p1, %p2;
    @%p3 bra MEET;
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r1], 0;
    @!%p4 bra WAIT;
    bra DONE;
    MEET:
    mov.u32 %r2, 0;
    ROUND: bar.sync 1, 64;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p5, %r2, {ROUNDS};
    @%p5 bra ROUND;
    @%p0 bra DONE;
    mbarrier.arrive.shared::cta.b64 _, [%r1];
    DONE: bar.sync 0;
    """,
    ["out"],
    shared=".shared .align 8 .b64 bar;",
)


def finish() -> set[str]:
    return found(run(TEXT, {"out": np.zeros(1, np.uint32)}, threads=32 * WARPS))


def test_who_waits_for_a_phase_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    plain = Parking.to_check

    def noted(parking: Parking) -> list[Fragment]:
        chosen = plain(parking)
        gates = [parking._blocks[fragment.pc].gate for fragment in chosen]
        pairs = zip(chosen, gates, strict=True)
        looks.extend(item.warp for item, gate in pairs if isinstance(gate, PhaseTest))
        return chosen

    monkeypatch.setattr(Parking, "to_check", noted)
    assert finish() == set()
    assert looks == [1, 2]


def test_the_suite_notices_a_phase_of_which_nobody_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Synchronisation.take_up

    def deaf(sync: Synchronisation, fragments: Sequence[Fragment]) -> None:
        sync.layout.changed_count = 0
        plain(sync, fragments)

    monkeypatch.setattr(Synchronisation, "take_up", deaf)
    with pytest.raises(AssertionError, match="could go on"):
        finish()


def test_warps_that_exit_are_not_waited_for_at_a_barrier() -> None:
    body = "setp.lt.u32 %p0, %t, 32;\n@%p0 bra OUT;\nbar.sync 0;\nOUT:"
    assert found(run(ptx(body, ["out"]), {"out": np.zeros(1, np.uint32)}, threads=96)) == set()
