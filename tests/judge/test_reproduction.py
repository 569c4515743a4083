"""Whether a run agrees with earlier ones: verdict, effect and every figure."""

from __future__ import annotations

import msgspec
import pytest
from support import ROOT

from kernelexp import records
from kernelexp.arm import Arm, Status, Verdict
from kernelexp.judge.reproduction import Reproduction, compare
from kernelexp.record import Candidate, Record

FIRST = ROOT / "logs/runs/T3/20261120T232030Z-d59b8f7d.measured.json"
SECOND = ROOT / "logs/runs/T3/20261121T000044Z-485c4d1d.measured.json"
T1 = [
    ROOT / "logs/runs/T1/20261120T231950Z-3d3bb674.measured.json",
    ROOT / "logs/runs/T1/20261121T000003Z-045af7a9.measured.json",
]


def again(record: Record, earlier: Record, index: int = 0, **changes: object) -> Reproduction:
    candidate = record.candidates[index]
    verdict = changes.pop("verdict", candidate.verdict)
    assert earlier.measurement
    card = changes.pop("card", earlier.measurement.device.uuid)
    arm = msgspec.structs.replace(candidate.arm, **changes)
    return compare(record.baseline, arm, verdict, record.margin, [earlier], card)  # type: ignore[arg-type]


def test_the_same_verdict_and_effects_that_meet_reproduce() -> None:
    earlier, now = map(records.read_file, T1)
    found = again(now, earlier)
    assert found.agrees is True
    assert "IMPROVED: the effects agree." in found.sentence
    assert "All built figures equal those of run 20261120T231950Z-3d3bb674." in found.sentence


def test_effects_that_do_not_meet_are_another_effect() -> None:
    found = again(records.read_file(SECOND), records.read_file(FIRST))
    assert found.agrees is False
    assert "another effect: -2.57% to -2.47% then, -2.41% to -2.30% now." in found.sentence


def test_on_another_card_effects_may_differ_by_the_margin() -> None:
    now, earlier = records.read_file(SECOND), records.read_file(FIRST)
    found = again(now, earlier, card="another")
    assert found.agrees is True
    assert "within the margin and on another card: -2.57% to -2.47% then" in found.sentence
    strict = msgspec.structs.replace(now, margin=0.0001)
    assert again(strict, earlier, card="another").agrees is False


def test_another_verdict_does_not_reproduce() -> None:
    earlier, now = map(records.read_file, T1)
    rejected = Verdict(status=Status.REJECTED, reason="slower", sentence="Slower.")
    found = again(now, earlier, verdict=rejected)
    assert found.agrees is False
    assert found.sentence.startswith("Does not reproduce run 20261120T231950Z-3d3bb674, IMPROVED.")


def test_a_built_figure_that_differs_is_named() -> None:
    earlier, now = map(records.read_file, T1)
    build = now.candidates[0].arm.build
    assert build is not None
    more = msgspec.structs.replace(
        build, resources=msgspec.structs.replace(build.resources, registers=26)
    )
    found = again(now, earlier, build=more)
    assert found.agrees is False
    assert "candidate: registers per thread 24 -> 26" in found.sentence


@pytest.mark.parametrize("emulator", ["one", "another"])
def test_emulated_counters_are_compared_for_the_same_emulator_only(emulator: str) -> None:
    now = records.read_file(T1[1])
    candidate = now.candidates[0]
    emulated = candidate.arm.emulated
    assert emulated is not None
    one = msgspec.structs.replace(emulated, emulator="one")
    base = msgspec.structs.replace(now.baseline, emulated=one)
    earlier = msgspec.structs.replace(
        now,
        baseline=base,
        candidates=(
            Candidate(
                arm=msgspec.structs.replace(candidate.arm, emulated=one), verdict=candidate.verdict
            ),
        ),
    )
    counters = {**emulated.counters, "memory_l1_wavefronts_shared": 1}
    changed = msgspec.structs.replace(emulated, emulator=emulator, counters=counters)
    found = compare(
        base, msgspec.structs.replace(candidate.arm, emulated=changed), candidate.verdict, 0.01,
        [earlier],
    )  # fmt: skip
    assert ("memory_l1_wavefronts_shared" in found.sentence) == (emulator == "one")


def test_a_run_that_timed_nothing_confirms_and_contradicts_no_time() -> None:
    earlier, now = map(records.read_file, T1)
    unmeasured = Verdict(status=Status.UNMEASURED, reason="no_gpu", sentence="Not timed.")
    found = again(now, earlier, verdict=unmeasured, build=None, measured=None)
    assert found.agrees is None
    assert "nothing was timed here" in found.sentence


def test_a_record_of_other_variants_is_not_compared_with() -> None:
    earlier, now = map(records.read_file, T1)
    other = Arm(axes={"layout": "swizzled", "rows": 8})
    assert compare(now.baseline, other, now.candidates[0].verdict, 0.01, [earlier]).sentence == ""
    moved = msgspec.structs.replace(earlier, baseline=other)
    assert again(now, moved).sentence == ""
