"""One launch of a variant under ncu: profiled evidence, with the launch's result verified.

ncu launches a worker process of `measure/`, as a measurement does: the variant's cubin, on seeded
inputs, once. Its outputs are compared with the reference after that launch; kernel replay
repeats the launch on the same memory, so that they are those of one launch.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kernelexp.evidence import jobs
from kernelexp.evidence.measure import measured
from kernelexp.evidence.measure.job import FailedJob, Job, Launched, RefusedJob, Turn, WorkerJob
from kernelexp.evidence.measure.measure import refuse_other_architectures
from kernelexp.evidence.measure.process import (
    as_error,
    read_answers,
    worker_argv,
    worker_environment,
)
from kernelexp.evidence.measure.worker import JOB, TURN
from kernelexp.evidence.profile import ncu as programs
from kernelexp.evidence.profile.merging import ProfiledLaunch, join, merge
from kernelexp.evidence.profile.ncu import Ncu
from kernelexp.model.arm import Arm, ProfiledEvidence
from kernelexp.model.errors import EnvironmentFault, KernelexpError, KernelFault
from kernelexp.model.limits import Limits
from kernelexp.model.measurement import Device, Options
from kernelexp.project.problem import consult
from kernelexp.system import device as devices
from kernelexp.system.process import processes
from kernelexp.system.process.isolated import spell_seconds
from warpsim.launch import main_launch

REPLAY = "kernel"
SEED = 1
# ncu saves and restores memory around a launch, and ends the program that it started.
ENDING_S = 30.0
# ncu's word where the kernel that it replays ends in an error of the device.
_LAUNCH_FAILED = "LaunchFailed"
_MORE = "allow more with --limit profile=20m, or collect less with --sections"


class ProfileSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of profiling, as the command line gives them."""

    size: str = "full"
    sections: tuple[str, ...] = (*programs.SECTIONS, programs.SOURCE)
    metrics: tuple[str, ...] = ()
    """Besides those of the sections, under ncu's names."""
    instances: bool = False
    """With the instances of metrics that have some, such as instructions by opcode."""
    clock_control: Literal["none", "base"] = "none"
    cache_control: Literal["all", "none"] = "all"
    """all: ncu flushes the caches before each pass."""
    device: str | None = None
    """Index or UUID; None takes the first."""


class ProfileTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence of a launch, and what of it was not to be had, a sentence each."""

    evidence: ProfiledEvidence
    lost: tuple[str, ...] = ()


def find_gpu(selector: str | None) -> Device:
    """Finds a GPU as device.find() does; where there is none, says how to get a profile anyway."""
    try:
        return devices.find(selector)
    except EnvironmentFault as error:
        raise EnvironmentFault(f"{str(error).rstrip('.')}; or {programs.IMPORT}.") from None


def take(root: Path, arm: Arm, settings: ProfileSettings, limits: Limits, ncu: Ncu) -> ProfileTaken:
    """Profiles one arm that is built, in one pass of ncu for its counters and one for its source.

    A pass over source counters that hangs or fails loses only these. Raises EnvironmentFault (no
    GPU, no permission, GPU held by another run), KernelFault (the kernel is wrong, crashes or
    hangs), UsageError (a cubin for another architecture), ConfigurationError (problem.py's faults).
    """
    target = find_gpu(settings.device)
    job = _job(root, arm, settings.size, limits)
    refuse_other_architectures(job, target)
    counters = tuple(name for name in settings.sections if name != programs.SOURCE)
    lost: list[str] = []
    launch: ProfiledLaunch | None = None
    with devices.hold(target.uuid), tempfile.TemporaryDirectory(prefix="kernelexp-") as folder:
        taking = _Passes(job, target, settings, limits.profile_s, ncu, Path(folder))
        if counters or settings.metrics:
            raw = "instances" if settings.instances else "raw"
            launch = taking.collect(counters, settings.metrics, (raw, "details"))
        if programs.SOURCE in settings.sections:
            try:
                source = taking.collect((programs.SOURCE,), (), programs.REPORT)
                launch = join(launch, source) if launch else source
            except KernelexpError as error:
                if launch is None:
                    raise
                lost.append(f"no source counters: {error}")
    assert launch is not None, "no sections"
    return ProfileTaken(
        evidence=_complete(launch.evidence, settings, target, ncu), lost=tuple(lost)
    )


def _job(root: Path, arm: Arm, size: str, limits: Limits) -> Job:
    consulted = consult.consult(
        root, arm.kernel, [arm], [size], limits.problem_s, exports=[arm.exports]
    )
    timed = jobs.timed(root, arm, "candidate", "candidate", consulted.points[0].launches[size])
    return measured.job_of(root, consulted, size, [timed])


def _complete(
    evidence: ProfiledEvidence, settings: ProfileSettings, target: Device, ncu: Ncu
) -> ProfiledEvidence:
    figures = evidence.figures
    absent = [name for name in settings.metrics if not _has(figures, name)]
    return msgspec.structs.replace(
        evidence,
        size=settings.size,
        device=target.name,
        driver=target.driver,
        tool=ncu.name,
        clock_control=settings.clock_control,
        cache_control=settings.cache_control,
        replay=REPLAY,
        missing=tuple(dict.fromkeys((*evidence.missing, *absent))),
    )


def _has(figures: dict[str, float | str], metric: str) -> bool:
    """ncu reports a metric that was asked for without a suffix with each of its suffixes."""
    return metric in figures or any(name.startswith(f"{metric}.") for name in figures)


class _Passes:
    """One variant on one GPU; each pass has a worker and a report of its own."""

    def __init__(
        self,
        job: Job,
        target: Device,
        settings: ProfileSettings,
        limit_s: float,
        ncu: Ncu,
        folder: Path,
    ) -> None:
        self._job, self._target, self._settings = job, target, settings
        self._limit_s, self._ncu, self._folder = limit_s, ncu, folder
        (arm,) = job.arms
        self._entry = main_launch(arm.launches).entry

    def collect(
        self, sections: Sequence[str], metrics: Sequence[str], pages: Sequence[str]
    ) -> ProfiledLaunch:
        """One pass; the pages that are read of its report."""
        folder = self._folder / ("source" if programs.SOURCE in sections else "counters")
        folder.mkdir()
        self._write_job(folder)
        report = folder / "profile.ncu-rep"
        done = self._run(folder, report, sections, metrics)
        self._refuse(done, folder, report)
        read = programs.read_report(self._ncu, report, pages)
        if (count := len(read[0].launches)) != 1:
            raise EnvironmentFault(
                f"{self._ncu.name} profiled {count} launches of {self._entry}, not one: problem.py "
                "launches a kernel of the same name."
            )
        first, *_ = merge([page.launches for page in read])
        gaps = (*first.evidence.missing, *programs.missing_metrics(done))
        missing = tuple(name for name in dict.fromkeys(gaps) if name not in first.evidence.figures)
        evidence = msgspec.structs.replace(first.evidence, missing=missing)
        return msgspec.structs.replace(first, evidence=evidence)

    def _write_job(self, folder: Path) -> None:
        job = WorkerJob(
            job=self._job,
            options=Options(peers=False),
            device=self._target,
            process=0,
            seed=SEED,
            load_order=(0,),
            with_peers=False,
            parent=os.getpid(),
            once=True,
            checked=True,
            limit_s=self._limit_s,
        )
        (folder / JOB).write_bytes(msgspec.json.encode(job))
        (folder / TURN).write_bytes(msgspec.json.encode(Turn()))

    def _run(
        self, folder: Path, report: Path, sections: Sequence[str], metrics: Sequence[str]
    ) -> processes.Completed:
        argv = [self._ncu.program, "--force-overwrite", "--export", str(report)]
        argv += ["--replay-mode", REPLAY, "--launch-count", "1"]
        # The names of entries are not mangled; torch's kernels, which make the inputs, are others.
        argv += ["--kernel-name-base", "mangled"]
        argv += ["--kernel-name", f"regex:^{re.escape(self._entry)}$"]
        argv += ["--clock-control", self._settings.clock_control]
        argv += ["--cache-control", self._settings.cache_control]
        argv += [word for name in sections for word in ("--section", name)]
        argv += ["--metrics", ",".join(metrics)] if metrics else []
        argv += worker_argv(folder)
        try:
            return processes.run(
                argv,
                env=worker_environment(self._target.uuid),
                timeout_s=self._limit_s + ENDING_S,
            )
        except TimeoutError:
            raise KernelFault(self._too_long()) from None

    def _too_long(self) -> str:
        return (
            f"{self._entry} under {self._ncu.name} was not done after "
            f"{spell_seconds(self._limit_s)}, and was ended; {_MORE}."
        )

    def _refuse(self, completed: processes.Completed, folder: Path, report: Path) -> None:
        """Raises what kept the pass from being one verified launch with a report."""
        if refused := programs.refusal(completed):
            raise refused
        answers = read_answers(folder)
        for answer in answers:
            if isinstance(answer, RefusedJob):
                raise as_error(answer)
            if isinstance(answer, FailedJob):
                failure = answer.failure
                advice = "kernelexp run or emulate says more of it"
                raise KernelFault(
                    f"{self._entry} is {failure.status} at size {self._settings.size!r} under "
                    f"{self._ncu.name}: {failure.words.rstrip('.')}; "
                    f"{_MORE if failure.status == 'TIMED_OUT' else advice}."
                )
        if not any(isinstance(answer, Launched) for answer in answers) or not report.is_file():
            if _LAUNCH_FAILED in completed.stdout + completed.stderr:
                raise KernelFault(
                    f"{self._entry} is CRASHED at size {self._settings.size!r} under "
                    f"{self._ncu.name} ({_LAUNCH_FAILED}); kernelexp run or emulate says more."
                )
            raise EnvironmentFault(
                f"{self._ncu.name} made no profile of {self._entry}: "
                f"{programs.last_words(completed)}"
            )
