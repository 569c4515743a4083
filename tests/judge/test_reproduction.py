"""Whether a run agrees with earlier ones: verdict, effect and every figure."""

from __future__ import annotations

import msgspec
import pytest
from judge_cases import as_written

from kernelexp.judge.reproduction import Reproduction, compare
from kernelexp.model.arm import Arm, Status, Verdict
from kernelexp.model.record import Candidate, Record

FIRST = "logs/runs/T3/20261120T232030Z-d59b8f7d.measured.json"
SECOND = "logs/runs/T3/20261121T000044Z-485c4d1d.measured.json"
T1 = [
    "logs/runs/T1/20261120T231950Z-3d3bb674.measured.json",
    "logs/runs/T1/20261121T000003Z-045af7a9.measured.json",
]


def again(
    record: Record,
    earlier: Record,
    *,
    verdict: Verdict | None = None,
    card: str = "",
    **changes: object,
) -> Reproduction:
    """The first candidate of `record`, changed, as a run on the earlier one's card or another."""
    candidate = record.candidates[0]
    assert record.measurement
    assert earlier.measurement
    uuid = card or earlier.measurement.device.uuid
    device = msgspec.structs.replace(record.measurement.device, uuid=uuid)
    measurement = msgspec.structs.replace(record.measurement, device=device)
    now = msgspec.structs.replace(record, measurement=measurement)
    arm = msgspec.structs.replace(candidate.arm, **changes)
    return compare(now, arm, verdict or candidate.verdict, [earlier])


def test_the_same_verdict_and_effects_that_meet_reproduce() -> None:
    earlier, now = map(as_written, T1)
    result = again(now, earlier)
    assert result.agrees is True
    assert "IMPROVED: the effects agree." in result.sentence
    assert "All built figures equal those of run 20261120T231950Z-3d3bb674." in result.sentence


def test_effects_that_do_not_meet_are_another_effect() -> None:
    result = again(as_written(SECOND), as_written(FIRST))
    assert result.agrees is False
    assert "but the effect differs: -2.57% to -2.47% then, -2.41% to -2.30% now." in result.sentence


def test_on_another_card_effects_may_differ_by_the_margin() -> None:
    now, earlier = as_written(SECOND), as_written(FIRST)
    result = again(now, earlier, card="another")
    assert result.agrees is True
    assert "within the margin and on another card: -2.57% to -2.47% then" in result.sentence
    strict = msgspec.structs.replace(now, margin=0.0001)
    assert again(strict, earlier, card="another").agrees is False


def test_another_verdict_does_not_reproduce() -> None:
    earlier, now = map(as_written, T1)
    rejected = Verdict(status=Status.REJECTED, reason="slower", sentence="Slower.")
    result = again(now, earlier, verdict=rejected)
    assert result.agrees is False
    assert result.sentence.startswith("Does not reproduce run 20261120T231950Z-3d3bb674, IMPROVED.")


def test_a_built_figure_that_differs_is_named() -> None:
    earlier, now = map(as_written, T1)
    build = now.candidates[0].arm.build
    assert build is not None
    more = msgspec.structs.replace(
        build, resources=msgspec.structs.replace(build.resources, registers=26)
    )
    result = again(now, earlier, build=more)
    assert result.agrees is False
    assert "candidate: registers per thread 24 -> 26" in result.sentence


def test_instructions_that_a_version_puts_with_other_pipes_are_no_difference() -> None:
    earlier, now = map(as_written, T1)
    build = now.candidates[0].arm.build
    assert build is not None
    moved = msgspec.structs.replace(build, pipes={"alu": 23, "fma": 22})
    assert again(now, earlier, build=moved).agrees is True


@pytest.mark.parametrize("emulator", ["one", "another"])
def test_emulated_counters_are_compared_for_the_same_emulator_only(emulator: str) -> None:
    now = as_written(T1[1])
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
    counters = {**emulated.counters, "ptx__memory_l1_wavefronts_shared": 1}
    changed = msgspec.structs.replace(emulated, emulator=emulator, counters=counters)
    arm = msgspec.structs.replace(candidate.arm, emulated=changed)
    result = compare(earlier, arm, candidate.verdict, [earlier])
    assert ("shared memory wavefronts (PTX)" in result.sentence) == (emulator == "one")


UNMEASURED = Verdict(status=Status.UNMEASURED, reason="no_gpu", sentence="Not timed.")


def test_a_run_that_timed_nothing_confirms_and_contradicts_no_time() -> None:
    earlier, now = map(as_written, T1)
    result = again(now, earlier, verdict=UNMEASURED, measured=None)
    assert result.agrees is None
    assert "nothing was timed here. All built figures equal" in result.sentence


def test_a_refusal_is_contradicted_by_a_variant_that_nothing_refuses() -> None:
    earlier, now = map(as_written, T1)
    broken = Verdict(status=Status.BUILD_FAILED, reason="compiler", sentence="Broken.")
    candidate = msgspec.structs.replace(earlier.candidates[0], verdict=broken)
    before = msgspec.structs.replace(earlier, candidates=(candidate,), measurement=None)
    result = compare(now, now.candidates[0].arm, UNMEASURED, [before])
    assert result.agrees is False
    assert "BUILD_FAILED: nothing refuses this variant now." in result.sentence


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"size": "small"}, "at size 'full' instead"), ({"device": "NVIDIA H100"}, "on NVIDIA H200")],
)
def test_effects_under_other_conditions_are_not_compared(
    changes: dict[str, str], words: str
) -> None:
    earlier, now = map(as_written, T1)
    other = msgspec.structs.replace(now, **changes)
    result = compare(other, now.candidates[0].arm, now.candidates[0].verdict, [earlier])
    assert result.agrees is None
    assert words in result.sentence


def test_an_earlier_verdict_is_taken_again_at_the_new_margin() -> None:
    earlier, now = map(as_written, T1)
    wide = msgspec.structs.replace(now, margin=0.6)
    neutral = Verdict(status=Status.NEUTRAL, reason="within_margin", sentence="Within.")
    assert again(wide, earlier, verdict=neutral).agrees is True


def test_a_record_of_other_variants_is_not_compared_with() -> None:
    earlier, now = map(as_written, T1)
    other = Arm(axes={"layout": "swizzled", "rows": 8})
    assert compare(now, other, now.candidates[0].verdict, [earlier]).sentence == ""
    moved = msgspec.structs.replace(earlier, baseline=other)
    assert again(now, moved).sentence == ""


def test_a_record_of_another_kernel_is_not_compared_with() -> None:
    earlier, now = map(as_written, T1)
    assert again(now, msgspec.structs.replace(earlier, kernel="other")).sentence == ""
    assert again(now, msgspec.structs.replace(earlier, arch="sm_80")).sentence == ""


def test_a_run_from_before_an_axis_existed_is_of_no_value_of_it() -> None:
    earlier, now = map(as_written, T1)
    axes = {**now.candidates[0].arm.axes, "unroll": 4}
    assert again(now, earlier, axes=axes).sentence == ""
