"""Programs that are built, to a measurement of what they print: evidence of kind `measured`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.evidence import build
from kernelexp.evidence.measure.measured import MeasurementTaken
from kernelexp.evidence.measure.programs.rounds import ProgramArm, ProgramJob, measure
from kernelexp.judge.statistics import racing
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import Program
from kernelexp.model.limits import Limits
from kernelexp.model.measurement import (
    Device,
    Goal,
    Measurement,
    Measuring,
    Options,
    Role,
    TimedArm,
)
from kernelexp.system.live import OnProgress


class ProgramQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The question that one measurement of programs answers."""

    job: ProgramJob
    arch: str
    """What they were compiled for."""
    options: Options
    margin: float
    goal: Goal


ProgramAnswerer: TypeAlias = Callable[
    [ProgramQuestion, Path | None, OnProgress | None], Measurement
]
"""Measures programs: with a journal, if there is to be one, and telling its progress."""


def take(
    root: Path,
    arms: Mapping[str, Arm],
    measuring: Measuring,
    limits: Limits,
    answerer: ProgramAnswerer,
    *,
    on_progress: OnProgress | None = None,
) -> MeasurementTaken:
    """Runs arms by their names, the baseline first, with a placebo; several candidates as a race.

    Raises what rounds.measure raises.
    """
    first, *_ = arms.values()
    assert first.program is not None
    program = first.program.spec
    timed = [
        _job(root, arm, name, "baseline" if arm is first else "candidate", program)
        for name, arm in arms.items()
    ]
    timed.insert(1, _job(root, first, "placebo", "placebo", program))
    question = ProgramQuestion(
        job=ProgramJob(
            kernel=first.kernel,
            folder=str(root / "variants" / first.kernel),
            program=program,
            arms=tuple(timed),
            run_s=limits.run_s,
        ),
        arch=first.arch,
        options=measuring.of_arms(len(arms)),
        margin=measuring.margin,
        goal=measuring.goal,
    )
    journal = measuring.journal(question)
    answer = answerer(question, journal, on_progress)
    return MeasurementTaken(measurement=answer, flops=0, journals=(journal,) if journal else ())


def answer_on(
    target: Device,
    question: ProgramQuestion,
    journal: Path | None = None,
    on_progress: OnProgress | None = None,
) -> Measurement:
    """Measures on a GPU of this machine, or on its CPU."""
    return measure(
        question.job,
        question.options,
        target,
        look=lambda so_far: racing.look(so_far, question.margin, question.goal),
        on_progress=on_progress,
        journal=journal,
    )


def _job(root: Path, arm: Arm, name: str, role: Role, program: Program) -> ProgramArm:
    executable = build.program(root, arm.identity).executable
    return ProgramArm(
        arm=TimedArm(name=name, role=role, identity=arm.identity),
        argv=(str(executable), *program.command(arm.axes)),
    )
