"""When a measurement looks at its interval, and when it ends."""

from pathlib import Path

import msgspec
import pytest
from measurements import measurement, worker

from kernelexp.evidence.measure.job import Job
from kernelexp.evidence.measure.measured import MeasurementQuestion
from kernelexp.evidence.measure.underway import is_budget_spent, is_hopeless, is_look_due
from kernelexp.model.measurement import Failure, Measuring, Options


def with_workers(count, looks=()):
    return measurement(
        [worker(process, (1.0, 1.0, 1.0), rows=1) for process in range(count)], looks
    )


def failed(*arms):
    return tuple(Failure(arm=arm, status="CRASHED", process=0, words="") for arm in arms)


@pytest.mark.parametrize(
    ("done", "looks", "due"),
    [
        (0, (), False),
        (3, (), False),
        (4, (), True),
        (4, (4,), False),
        (5, (4,), False),
        (6, (4,), True),
    ],
)
def test_looks_come_after_four_processes_and_then_every_second(done, looks, due):
    assert is_look_due(with_workers(done, looks)) == due


@pytest.mark.parametrize(
    ("arms", "hopeless"),
    [((), False), (("old again",), False), (("new",), True), (("old",), True), (("",), True)],
)
def test_without_a_baseline_or_a_candidate_there_is_nothing_to_go_on_for(arms, hopeless):
    result = msgspec.structs.replace(with_workers(1), failures=failed(*arms))
    assert is_hopeless(result) == hopeless


def test_a_process_of_fewer_arms_may_still_fit_a_budget():
    assert is_budget_spent(25.0, [12.0, 12.0], 30.0)
    assert not is_budget_spent(25.0, [12.0, 12.0], 30.0, next_share=0.4)


@pytest.mark.parametrize(("done", "due"), [(1, False), (2, True), (3, True), (4, True), (5, False)])
def test_a_race_is_looked_at_early_too(done, due):
    racing = msgspec.structs.replace(with_workers(done), options=Options(race=True))
    assert is_look_due(racing) == due


def test_samples_of_another_problem_py_are_not_gone_on_with(tmp_path: Path) -> None:
    job = Job(problem="problem.py", size={}, arms=())
    question = MeasurementQuestion(job=job, options=Options(), margin=0.01, goal="verdicts")
    measuring = Measuring(journals=tmp_path)
    one, other = (measuring.journal(question.subject({"problem.py": x})) for x in "ab")
    assert one != other


def test_company_on_the_gpu_ends_a_measurement():
    assert is_hopeless(msgspec.structs.replace(with_workers(1), invalid="Another process."))
