"""Arms that are built, to a measurement on a GPU: evidence of kind `measured`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from kernelexp.arm import Arm
from kernelexp.evidence import jobs
from kernelexp.gpu.job import ArmJob, Job
from kernelexp.gpu.measure import Progress, measure
from kernelexp.judge.stats import estimate
from kernelexp.judge.verdict import spell_interval
from kernelexp.limits import Limits
from kernelexp.measurement import Measurement, Options, TimedArm
from kernelexp.problem import consult
from kernelexp.problem.consult import Point
from kernelexp.progress import OnProgress, Step

SIZE = "full"


class Measuring(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure, as the command line says it."""

    options: Options = Options()
    device: str | None = None
    """Index or UUID; None takes the first."""
    margin: float = 0.01
    size: str = SIZE


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement, and the useful work of what it timed."""

    measurement: Measurement
    flops: int
    """Of one launch; 0 where the problem does not say."""


def take(
    root: Path,
    arms: Mapping[str, Arm],
    measuring: Measuring,
    limits: Limits,
    *,
    enough: Callable[[Measurement], bool],
    on_progress: OnProgress | None = None,
) -> Taken:
    """Times arms by their names, the baseline first, with a placebo and the problem's peers, in
    the same processes.

    Raises what kernelexp.gpu.measure.measure raises, ConfigurationError for the problem's faults.
    """
    baseline, *_ = arms.values()
    size = measuring.size
    points = [
        Point(axes=arm.axes, arch=arm.arch, exports=arm.build.exports if arm.build else {})
        for arm in arms.values()
    ]
    answer = consult.consult(root, baseline.kernel, points, [size], timeout_s=limits.problem_s)
    launches = [facts.launches[size] for facts in answer.points]
    jobs_ = [
        jobs.timed(root, arm, name, "baseline" if arm is baseline else "candidate", launch)
        for (name, arm), launch in zip(arms.items(), launches, strict=True)
    ]
    jobs_.insert(1, jobs.timed(root, baseline, "placebo", "placebo", launches[0]))
    if measuring.options.peers:
        jobs_ += [ArmJob(arm=TimedArm(name=peer, role="peer")) for peer in answer.peers]
    name = f"variants/{baseline.kernel}/problem.py"
    job = Job(
        problem=str(root / name),
        name=name,
        size=answer.sizes[size],
        size_name=size,
        arms=tuple(jobs_),
    )
    taken = measure(
        job,
        measuring.options,
        device=measuring.device,
        on_progress=as_steps(on_progress),
        enough=enough,
    )
    work = answer.work.get(size)
    return Taken(measurement=taken, flops=work.flops if work else 0)


def as_steps(on_progress: OnProgress | None) -> Callable[[Progress], None] | None:
    """Tells the progress of a measurement in steps, with the intervals as they narrow."""
    if on_progress is None:
        return None

    def say(state: Progress) -> None:
        effects = estimate(state.so_far).effects if len(state.so_far.workers) > 1 else ()
        step = Step(
            phase="measuring",
            done=state.processes_done,
            total=state.processes_wanted,
            now="; ".join([state.phase, *map(spell_interval, effects)]),
        )
        on_progress(step)

    return say
