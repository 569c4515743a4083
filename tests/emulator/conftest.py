"""The emulator as users run it, with its compiled loops; test_compiled.py compares with Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from warpsim import compiled
from warpsim.machine.schedule.parking import Parking
from warpsim.machine.sync.gates import Fragment


@pytest.fixture(autouse=True)
def _with_compiled_loops(library: Path) -> Iterator[None]:
    compiled.load(library)
    yield
    compiled.unload()


@pytest.fixture(autouse=True)
def _no_wake_up_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the scheduler asks whom to look at again, nobody else could go on."""
    plain = Parking.to_check

    def checked(parking: Parking) -> list[Fragment]:
        chosen = plain(parking)
        for fragment in parking.fragments:
            gate = parking._blocks[fragment.pc].gate
            if gate is None or fragment.gathering or fragment in chosen:
                continue
            assert not gate.ready(parking._machine, fragment), f"{gate.site.where()} could go on"
        return chosen

    monkeypatch.setattr(Parking, "to_check", checked)
