"""Gates of experiments.yaml on arms of a record."""

from __future__ import annotations

import msgspec
import pytest
from support import ROOT

from kernelexp.judge.expectations import InstructionCounts
from kernelexp.logs import records
from kernelexp.model import errors
from kernelexp.model.arm import Arm, EmulatedEvidence, Status, Verdict
from kernelexp.model.experiment import Gate
from kernelexp.services.check import conditions, gates
from kernelexp.services.check.conditions import GatedVariant
from kernelexp.services.check.gates import GateFinding

T3 = ROOT / "logs/runs/T3/20261121T000044Z-485c4d1d.measured.json"
EVERYTHING = Gate(instructions=["STL == 0"], expected="right", measured=True)


@pytest.fixture
def arm() -> Arm:
    return msgspec.structs.replace(records.read_file(T3).baseline, emulated=None, refused=None)


def subject(arm: Arm, status: Status | None, gate: Gate = EVERYTHING) -> GatedVariant:
    refused = Verdict(status=status, reason="because", sentence="Why.") if status else None
    executed = EmulatedEvidence(size="emulated") if status in gates.WRONG else None
    arm = msgspec.structs.replace(arm, refused=refused, emulated=executed)
    counts = InstructionCounts(every={"STL": 2}, in_loops={})
    return GatedVariant(label="a", arm=arm, gates=(gate,), counts=counts)


@pytest.mark.parametrize("status", [Status.IMPOSSIBLE, Status.BUILD_FAILED])
def test_what_has_no_code_has_no_gates(arm: Arm, status: Status) -> None:
    without = subject(arm, status)
    assert list(conditions.judge(without, {})) == []
    assert not conditions.is_timed(without)
    assert conditions.is_timed(subject(arm, None))


@pytest.mark.parametrize(
    ("expected", "status", "outcome"),
    [
        ("right", None, "unchecked"),  # was not executed
        ("right", Status.INCORRECT, "wrong"),
        ("incorrect", Status.INCORRECT, "same"),
        ("incorrect", Status.TIMED_OUT, "same"),
        ("incorrect", None, None),  # nobody asked for executing it
    ],
)
def test_a_result_is_judged_by_what_is_expected(
    arm: Arm, expected: str, status: Status | None, outcome: str | None
) -> None:
    gate = msgspec.convert({"expected": expected}, Gate)
    result = [item.outcome for item in conditions.judge(subject(arm, status, gate), {})]
    assert result == ([outcome] if outcome else [])


@pytest.mark.parametrize(
    ("text", "committed", "outcome"),
    [
        ("STL == 0", {}, "missed"),
        ("STL <= 2", {}, "same"),
        ("STL unchanged", {}, "new"),
        ("STL unchanged", {"STL": 2}, "same"),
        ("STL unchanged", {"STL": 1}, "missed"),
        ("STL unchanged", {"STL": 3}, "better"),
    ],
)
def test_a_condition_on_instructions(
    arm: Arm, text: str, committed: dict[str, int | str], outcome: str
) -> None:
    (result,) = conditions.judge(subject(arm, None, Gate(instructions=[text])), committed)
    assert result.outcome == outcome


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["same", "skipped"], errors.OK),
        (["same", "undecided"], errors.INCONCLUSIVE),
        (["worse", "undecided"], errors.REGRESSION),
        (["worse", "undecided", "unchecked"], errors.ENVIRONMENT),
    ],
)
def test_a_gate_that_is_missed_comes_before_one_that_is_undecided(
    outcomes: list[gates.Outcome], code: int
) -> None:
    result = [GateFinding(variant="a", outcome=outcome, sentence="") for outcome in outcomes]
    assert gates.exit_code(result) == code
