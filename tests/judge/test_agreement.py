"""What is said where the SASS of an arm did otherwise than its PTX."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kernelexp.judge.verdict import disagreement
from kernelexp.model.arm import Arm, EmulatedEvidence, EmulatedFinding
from kernelexp.model.measurement import ArrayResult

RIGHT = ArrayResult(name="y", elements=4, wrong=0, worst=0.0)
WRONG = ArrayResult(name="y", elements=4, wrong=2, worst=9.0)


def evidence(isa: Any, **changes: Any) -> EmulatedEvidence:
    usual = EmulatedEvidence(size="emulated", isa=isa, arrays=(RIGHT,), outputs={"y": "ab12"})
    return msgspec.structs.replace(usual, **changes)


def both(ptx: dict[str, Any] | None = None, **sass: Any) -> Arm:
    return Arm(emulated=evidence("ptx", **ptx or {}), emulated_sass=evidence("sass", **sass))


def test_the_same_bits_leave_nothing_to_say() -> None:
    assert disagreement(both()) is None


def test_other_bits_within_the_tolerance_are_said_and_are_not_wrong() -> None:
    result = disagreement(both(outputs={"y": "cd34"}))
    assert result
    assert not result.is_wrong
    assert result.sentence.startswith("its SASS writes other bits to y than its PTX")


@pytest.mark.parametrize(
    "changes",
    [
        {"arrays": (WRONG,)},
        {"hang": ("CTA 0 warp 1 waits",)},
        {"findings": (EmulatedFinding(name="misaligned", sentence="s", where="w", count=1),)},
        {"changed": ("x",)},
    ],
    ids=["result", "hang", "access", "input"],
)
def test_what_only_the_sass_does_wrong_is_a_fault_and_counts_nothing(
    changes: dict[str, Any],
) -> None:
    arm = both(**changes)
    result = disagreement(arm)
    assert result
    assert result.is_wrong
    assert "although its PTX is right" in result.sentence
    assert arm.counted is None


def test_where_the_ptx_is_wrong_itself_its_verdict_says_enough() -> None:
    assert disagreement(both({"arrays": (WRONG,)}, arrays=(WRONG,))) is None


def test_arrays_that_atomics_let_vary_may_have_other_bits() -> None:
    assert disagreement(both({"varying": ("y",)}, outputs={"y": "cd34"})) is None


def test_outputs_of_other_inputs_do_not_compare() -> None:
    assert disagreement(both({"seed": 1}, seed=2, outputs={"y": "cd34"})) is None


def test_sass_that_could_not_be_executed_disagrees_with_nothing() -> None:
    arm = both(arrays=(), outputs={}, unsupported="SYNCS is not covered.")
    assert disagreement(arm) is None
    assert arm.counted is None
