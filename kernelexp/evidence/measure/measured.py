"""Arms that are built, to a measurement on a GPU: evidence of kind `measured`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.evidence import jobs
from kernelexp.evidence.measure.job import ArmJob, Job
from kernelexp.judge.statistics import racing
from kernelexp.model.arm import Arm
from kernelexp.model.limits import Limits
from kernelexp.model.measurement import Goal, Measurement, Measuring, Options, TimedArm
from kernelexp.project.problem import consult, files
from kernelexp.project.problem.consult import Consulted
from kernelexp.system.live import OnProgress
from warpsim.launch import Launch


class MeasurementQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The question that one measurement answers on one GPU: all that the machine with it needs."""

    job: Job
    options: Options
    margin: float
    goal: Goal
    place: int | None = None
    """Of several GPUs the one to use, counted round; None: whichever is free."""

    @property
    def arch(self) -> str:
        """The architecture that the GPU must have."""
        return self.job.arms[0].arch

    def subject(self, problem: Mapping[str, str]) -> object:
        """All that samples depend on; `problem`: digests of the files of problem.py."""
        return self.job, problem, self.margin, self.goal


Answerer: TypeAlias = Callable[[MeasurementQuestion, Path | None, OnProgress | None], Measurement]
"""Measures: with a journal, if there is to be one, and telling its progress."""


class MeasurementTaken(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement, and the useful work of what it timed."""

    measurement: Measurement
    flops: int
    parameters: dict[str, int] = {}
    """Of the size."""
    bytes: int = 0
    """Of one launch; 0 where the problem does not say."""
    journals: tuple[Path, ...] = ()
    """To be removed once the measurement is kept."""
    heats: tuple[Measurement, ...] = ()
    """Of part of the arms each, where the measurement is of those that did best in them."""


def take(
    root: Path,
    arms: Mapping[str, Arm],
    measuring: Measuring,
    limits: Limits,
    answerer: Answerer,
    *,
    place: int | None = None,
    on_progress: OnProgress | None = None,
    launches: Mapping[str, Sequence[Launch]] | None = None,
) -> MeasurementTaken:
    """Times arms by their names, the baseline first, with a placebo and the problem's peers, in
    the same processes on one GPU; several candidates as a race.

    `launches` go before those of the problem's launch(): an older revision's arm has its own.

    Raises what measure() raises, ConfigurationError for the problem's faults.
    """
    baseline, *_ = arms.values()
    size = measuring.size
    built = list(arms.values())
    answer = consult.consult(
        *(root, baseline.kernel, built, [size], limits.problem_s),
        exports=[arm.exports for arm in built],
    )
    own = launches or {}
    started = [
        own.get(name) or facts.launches[size]
        for name, facts in zip(arms, answer.points, strict=True)
    ]
    peers = answer.peers if measuring.options.peers else ()
    job = job_of(root, answer, size, _jobs(root, arms, started, peers))
    question = MeasurementQuestion(
        job=job,
        options=measuring.of_arms(len(arms)),
        margin=measuring.margin,
        goal=measuring.goal,
        place=place,
    )
    journal = measuring.journal(question.subject(files.digests(root, baseline.kernel)))
    taken = answerer(question, journal, on_progress)
    work = answer.work.get(size)
    journals = (journal,) if journal else ()
    return MeasurementTaken(
        measurement=taken,
        parameters=answer.sizes[size],
        flops=work.flops if work else 0,
        bytes=work.bytes if work else 0,
        journals=journals,
    )


def job_of(root: Path, consulted: Consulted, size: str, arms: Iterable[ArmJob]) -> Job:
    """The job of timing arms of a kernel at a size of its problem."""
    name = f"variants/{consulted.kernel}/problem.py"
    return Job(
        problem=str(root / name),
        name=name,
        size=consulted.sizes[size],
        size_name=size,
        arms=tuple(arms),
    )


def _jobs(
    root: Path,
    arms: Mapping[str, Arm],
    launches: Sequence[Sequence[Launch]],
    peers: Iterable[str],
) -> Iterator[ArmJob]:
    """Yields the jobs of the baseline, its placebo, the candidates and the peers."""
    (name, arm), *candidates = arms.items()
    first, *others = launches
    yield jobs.timed(root, arm, name, "baseline", first)
    yield jobs.timed(root, arm, "placebo", "placebo", first)
    for (name, arm), own in zip(candidates, others, strict=True):
        yield jobs.timed(root, arm, name, "candidate", own)
    for peer in peers:
        yield ArmJob(arm=TimedArm(name=peer, role="peer"))


def answer_on(
    device: str | None,
    question: MeasurementQuestion,
    journal: Path | None = None,
    on_progress: OnProgress | None = None,
) -> Measurement:
    """Measures on a GPU of this machine, named by index or UUID; None: as devices.find()."""
    from kernelexp.evidence.measure.measure import measure  # not loaded where nothing is timed

    return measure(
        question.job,
        question.options,
        device=device,
        on_progress=on_progress,
        look=lambda so_far: racing.look(so_far, question.margin, question.goal),
        journal=journal,
    )
