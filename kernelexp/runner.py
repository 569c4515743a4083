"""The way of a run: experiments to variants, builds, evidence, verdicts, records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kernelexp import __version__, arch, errors, examine, problem, records, surroundings
from kernelexp.build import Progress
from kernelexp.errors import EnvironmentFault
from kernelexp.evidence import measured
from kernelexp.evidence.measured import Measuring, Side
from kernelexp.examine import Judged
from kernelexp.gpu import device as devices
from kernelexp.gpu.measure import OnProgress
from kernelexp.judge import reproduction, verdict
from kernelexp.judge.stats import estimate
from kernelexp.measurement import Device, Estimate, Measurement
from kernelexp.model import (
    Candidate,
    Point,
    Record,
    Status,
    Variant,
    arm_names,
)
from kernelexp.project import Project
from kernelexp.toolchain import Toolchain


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A run of one experiment: its record, where that was written, and what came before it."""

    record: Record
    path: Path | None
    earlier: tuple[Record, ...]
    unreadable: tuple[records.Unreadable, ...]


def run(
    project: Project,
    names: Sequence[str],
    tools: Toolchain,
    *,
    overrides: Mapping[str, Point] | None = None,
    emulate: bool = True,
    measuring: Measuring | None = None,
    keep: bool = True,
    on_build: Progress | None = None,
    on_emulate: Progress | None = None,
    on_measure: OnProgress | None = None,
) -> list[Ran]:
    """Runs the experiments `names`; their variants are built together, each once.

    `overrides` changes the candidates of an experiment, by its id. What can be timed on this
    machine's GPU is; without `measuring` nothing is. What an emulation finds wrong is not timed.
    `keep` writes the records, each as soon as its experiment is done.
    """
    overrides = overrides or {}
    arms: dict[str, tuple[Variant, tuple[Variant, ...]]] = {}
    for name in dict.fromkeys(names):
        baseline, candidates = project.variants(project.experiment(name))
        point = overrides.get(name, {})
        arms[name] = (
            baseline,
            tuple(project.variant(each.kernel, each.arch, each.axes, point) for each in candidates),
        )
    variants = [each for baseline, candidates in arms.values() for each in (baseline, *candidates)]
    judged = examine.judge(project, variants, tools, on_build)
    if emulate:
        judged = examine.emulate(project, judged, on_emulate)
    gpu = _find_gpu(measuring)
    git, machine = surroundings.read_git(project.root), surroundings.read_machine()
    ran = []
    for name, (baseline, candidates) in arms.items():
        experiment = project.experiments[name]
        earlier, unreadable = records.read(project.root, name)
        sides = [judged[examine.key(each)] for each in (baseline, *candidates)]
        timed = _time(project, sides, gpu, measuring, on_measure)
        record = Record(
            version=records.VERSION,
            run=records.new_run_name(),
            experiment=name,
            provenance="run",
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            kernel=experiment.kernel,
            arch=experiment.arch,
            title=experiment.title,
            hypothesis=experiment.hypothesis,
            baseline=sides[0].arm,
            candidates=tuple(
                _decide(sides, index, timed, earlier) for index in range(1, len(sides))
            ),
            tool=__version__,
            compiler=tools.version,
            git=git,
            machine=machine,
            overrides=overrides.get(name, {}),
            device=timed.measurement.device.name if timed.measurement else "",
            size=timed.size if timed.measurement else "",
            flops=timed.flops,
            margin=timed.margin,
            measurement=timed.measurement,
            estimate=timed.estimate,
        )
        path = records.write(project.root, record) if keep else None
        ran.append(
            Ran(record=record, path=path, earlier=tuple(earlier), unreadable=tuple(unreadable))
        )
    return ran


class _Timed(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement of an experiment's arms, or why there is none."""

    measurement: Measurement | None = None
    estimate: Estimate | None = None
    why_not: str = ""
    size: str = ""
    flops: int = 0
    margin: float = 0.01


def _find_gpu(measuring: Measuring | None) -> Device | str:
    """The GPU to time on, or why there is none. A GPU that was asked for must be there."""
    if measuring is None:
        return "timing was switched off."
    try:
        return devices.find(measuring.device)
    except EnvironmentFault as fault:
        if measuring.device is not None:
            raise
        return str(fault)


def _time(
    project: Project,
    sides: Sequence[Judged],
    gpu: Device | str,
    measuring: Measuring | None,
    on_measure: OnProgress | None,
) -> _Timed:
    variant = sides[0].variant
    if isinstance(gpu, str):
        return _Timed(why_not=gpu)
    if gpu.arch != variant.arch:
        return _Timed(why_not=f"this machine's is {gpu.name} ({gpu.arch}).")
    usable = [side for side in sides if side.refused is None and side.arm.build and side.cubin]
    if measuring is None or sides[0].refused or len(usable) < 2:
        return _Timed(why_not="there is nothing to time.")
    names = arm_names(len(sides) - 1)
    arms = [
        Side(
            name=name,
            variant=side.variant,
            identity=side.arm.identity,
            cubin=side.cubin,
            exports=side.arm.build.exports,
        )
        for name, side in zip(names, sides, strict=True)
        if side.refused is None and side.arm.build and side.cubin
    ]
    module = problem.load(project.root, variant.kernel)
    measurement = measured.take(
        project.root,
        module,
        arms[0],
        arms[1:],
        measuring,
        enough=lambda so_far: verdict.enough(so_far, measuring.margin),
        on_progress=on_measure,
    )
    work = getattr(module, "work", None)
    return _Timed(
        measurement=measurement,
        estimate=estimate(measurement),
        size=measuring.size,
        flops=work(module.SIZES[measuring.size]).flops if work else 0,
        margin=measuring.margin,
    )


def _decide(
    sides: Sequence[Judged], index: int, timed: _Timed, earlier: Sequence[Record]
) -> Candidate:
    """The verdict on the arm at `index`: what refuses it or its baseline, else the measurement."""
    baseline, candidate = sides[0], sides[index]
    name = arm_names(len(sides) - 1)[index]
    effects = timed.estimate.effects if timed.estimate else ()
    decided = candidate.refused
    if decided is None and baseline.refused is not None:
        sentence = f"The baseline can't be run: {baseline.refused.sentence}"
        decided = msgspec.structs.replace(baseline.refused, sentence=sentence)
    if decided is None and timed.measurement:
        decided = verdict.measured(timed.measurement, name, timed.margin)
    if decided is None:
        shown = candidate.arm.emulated
        decided = verdict.unmeasured(
            arch.find(candidate.variant.arch),
            timed.why_not,
            emulated=shown is not None and not shown.unsupported,
        )
    effect = next((each for each in effects if each.arm == name), None)
    return Candidate(
        arm=candidate.arm,
        verdict=decided,
        reproduction=reproduction.compare(
            candidate.arm.axes, decided, effect, timed.margin, earlier
        ),
    )


_CODES = {
    Status.BUILD_FAILED: errors.BUILD,
    Status.INCORRECT: errors.WRONG_RESULT,
    Status.CRASHED: errors.WRONG_RESULT,
    Status.TIMED_OUT: errors.WRONG_RESULT,
    Status.INCONCLUSIVE: errors.INCONCLUSIVE,
    Status.INVALID: errors.INCONCLUSIVE,
}


def exit_code(found: Iterable[Record]) -> int:
    """What a run ends with. A candidate that is worse, impossible or not timed is an answer: 0."""
    statuses = {candidate.verdict.status for record in found for candidate in record.candidates}
    return status_exit_code(statuses)


def judged_exit_code(judged: Iterable[Judged]) -> int:
    """What a build ends with."""
    return status_exit_code({each.refused.status for each in judged if each.refused})


def status_exit_code(statuses: Set[Status]) -> int:
    """The exit code of the worst of these."""
    return next((code for status, code in _CODES.items() if status in statuses), errors.OK)
