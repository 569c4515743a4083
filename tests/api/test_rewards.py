"""What an assessment is worth to a program that learns."""

from __future__ import annotations

import msgspec
import pytest

from kernelexp.api import reward
from kernelexp.model.arm import Status
from kernelexp.services.tasks.assessment import (
    Assessment,
    AssessmentStage,
    CaseAnswer,
    ExecutedKernel,
    TaskEffect,
)

RIGHT = Assessment(
    format="leetgpu",
    task="scale",
    solution="solve.cu",
    sha256="",
    status=Status.UNMEASURED,
    reason="no_gpu",
    sentence="",
    stages=(AssessmentStage(name="build", outcome="passed"),),
    cases=(CaseAnswer(name="example", weight=1.0, right=True),),
    kernels=(ExecutedKernel(name="scale", launches=1, thread_instructions=100),),
)


def changed(**fields: object) -> Assessment:
    return msgspec.structs.replace(RIGHT, **fields)


def timed(low: float, high: float) -> Assessment:
    effect = TaskEffect(ratio=(low + high) / 2, low=low, high=high)
    return changed(status=Status.IMPROVED, effect=effect)


def test_a_right_solution_is_worth_more_than_one_that_builds() -> None:
    wrong = changed(status=Status.INCORRECT)
    assert (reward(RIGHT), reward(wrong)) == (pytest.approx(0.4), pytest.approx(0.1))


def test_speed_counts_by_the_end_of_the_interval_that_is_nearer_to_the_reference() -> None:
    assert reward(timed(0.1, 0.5)) == pytest.approx(0.4 + 1.0)
    assert reward(timed(0.4, 1.1)) == reward(timed(1.2, 1.4)) == pytest.approx(0.4)


def test_a_cheat_and_what_does_not_build_are_worth_nothing() -> None:
    assert reward(changed(status=Status.INVALID)) == 0.0
    assert reward(changed(stages=())) == 0.0


def test_the_libraries_kernels_are_no_solution() -> None:
    assert reward(changed(kernels=())) == pytest.approx(0.1)


def test_what_was_judged_before_is_worth_the_same() -> None:
    known = AssessmentStage(name="known", outcome="failed", reason="same_code")
    assert reward(changed(stages=(*RIGHT.stages, known))) == reward(RIGHT)
