"""The model of time against a project's records: `calibrate --model --validate`.

Each arm is built from the present sources, and modelled at the clock that NVML showed during the
runs that measured it; those whose code is no longer that of the record are left out. A pair is two
arms of one run. Nothing is timed; no GPU is needed.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.facts.modelled_errors import ModelledErrors
from kernelexp.judge import modelled_pairs as judge
from kernelexp.judge.modelled_pairs import DecidedPairs, ModelledPair, Regret
from kernelexp.logs import records
from kernelexp.model.arm import Arm
from kernelexp.model.errors import KernelexpError, UsageError
from kernelexp.model.experiment import Variant
from kernelexp.model.modelled import ModelledTime
from kernelexp.model.record import Record
from kernelexp.project import Project
from kernelexp.services import modelling
from kernelexp.system.live import Step
from kernelexp.system.process import processes

WORST = 10


class ModelledFamily(msgspec.Struct, frozen=True, kw_only=True):
    """The model's error for a kernel, or for all."""

    kernel: str
    times: int
    mean: float
    bias: float
    apart: dict[str, tuple[int, int, int]]
    """By how far apart pairs were measured: their count, how many the model and the busiest unit
    alone rank right."""


class ModelValidation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the records say of the model."""

    chip: str
    families: tuple[ModelledFamily, ...]
    errors: ModelledErrors
    """Of all pairs: what intervals are made of."""
    decided: tuple[DecidedPairs, ...]
    """By how far apart pairs were measured, with decisions from other experiments only."""
    regrets: tuple[Regret, ...]
    """Of each run of three arms or more, the smallest first."""
    worst: tuple[ModelledPair, ...]
    """In the wrong order, those farthest apart first."""
    missing: dict[str, str]
    """Arms without a modelled time, and why."""


class MeasuredArm(msgspec.Struct, frozen=True, kw_only=True):
    """An arm of a record, with the median of its times."""

    record: Record
    arm: Arm
    name: str
    microseconds: float


def validate(
    project: Project, session: Session, experiments: Sequence[str] = (), chip: str = "H200"
) -> ModelValidation:
    """Models all that records of the chip measured, of these experiments or of all; UsageError
    where there are none."""
    runs = measured_runs(project, chip, experiments)
    wanted = {arm.name: arm for arms in runs.values() for arm in arms}
    if not wanted:
        raise UsageError(f"no such record of this project was measured on an {chip}.")
    times, missing = _model(project, session, wanted, chip)
    return summarise(chip, list(runs.values()), times, missing)


def measured_runs(
    project: Project, chip: str, experiments: Sequence[str] = ()
) -> dict[str, list[MeasuredArm]]:
    """The arms that records of a chip measured, of these experiments or of all, by run."""
    return {record.run: list(_measured(record)) for record in _records(project, chip, experiments)}


def summarise(
    chip: str,
    runs: Sequence[Sequence[MeasuredArm]],
    times: Mapping[str, ModelledTime],
    missing: Mapping[str, str],
) -> ModelValidation:
    """Compares modelled times with those that the runs measured."""
    known = [[arm for arm in arms if arm.name in times] for arms in runs]
    errors: dict[str, list[float]] = {}
    for arm in itertools.chain.from_iterable(known):
        error = times[arm.name].microseconds / arm.microseconds - 1
        errors.setdefault(arm.record.kernel, []).append(error)
    pairs = [
        _pair(first, second, times)
        for own in known
        for first, second in itertools.combinations(own, 2)
    ]
    if not pairs:
        raise UsageError("no run has two arms with a modelled time.")
    every = list(itertools.chain.from_iterable(errors.values()))
    families = tuple(_family(*item, pairs) for item in (*errors.items(), ("", every)))
    wrong = [pair for pair in pairs if not pair.is_right]
    return ModelValidation(
        chip=chip,
        families=families,
        errors=ModelledErrors(
            device=runs[0][0].record.device,
            times=len(every),
            mean=families[-1].mean,
            apart=judge.errors_apart(pairs),
        ),
        decided=judge.decided_pairs(pairs),
        regrets=judge.regrets(pairs),
        worst=tuple(sorted(wrong, key=lambda pair: -abs(pair.measured))[:WORST]),
        missing=dict(missing),
    )


def _records(project: Project, chip: str, experiments: Sequence[str]) -> Iterator[Record]:
    for path in sorted((project.root / "logs" / "runs").glob("*/*.measured.json")):
        if experiments and path.parent.name not in experiments:
            continue
        record = records.read_file(path)
        if chip in record.device.split() and record.estimate and record.measurement:
            yield record


def _measured(record: Record) -> Iterator[MeasuredArm]:
    assert record.estimate
    medians = {time.arm: time.median_us for time in record.estimate.times}
    arms = (record.baseline, *(candidate.arm for candidate in record.candidates))
    for name, arm in zip(record.names, arms, strict=False):
        if name in medians:
            yield MeasuredArm(
                record=record,
                arm=arm,
                name=_name(record, arm),
                microseconds=medians[name],
            )


def _name(record: Record, arm: Arm) -> str:
    axes = " ".join(f"{name}={value}" for name, value in sorted(arm.axes.items()))
    code = arm.build.resources.sass_bytes if arm.build else 0
    return f"{arm.kernel} {record.size} {axes} ({code} bytes)"


def _model(
    project: Project,
    session: Session,
    wanted: Mapping[str, MeasuredArm],
    chip: str,
) -> tuple[dict[str, ModelledTime], dict[str, str]]:
    variants: dict[str, Variant] = {}
    missing: dict[str, str] = {}
    for name, measured in wanted.items():
        arm = measured.arm
        try:
            variants[name] = project.variant(arm.kernel, arm.arch, arm.axes)
        except UsageError as fault:
            missing[name] = str(fault)
    # All at once, as the builds of a kernel wait for those of another call.
    built = prepare.built(project, list(variants.values()), session)
    arms = dict(zip(variants, built, strict=True))

    def one(name: str) -> ModelledTime | str:
        measured, variant, now = wanted[name], variants[name], arms[name]
        if isinstance(now, KernelexpError):
            return str(now)
        if now.build and not is_same_code(measured.arm, now):
            return "its code has changed since."
        size = measured.record.size
        result, faults = modelling.times(project, [variant], session, size, chip=chip)
        if faults:
            return str(faults[0])
        _, _, time = result[0]
        return time.refused or time

    def changed(done: int, running: Sequence[str]) -> None:
        if session.on_progress:
            now = running[-1] if running else ""
            step = Step(phase="modelling", done=done, total=len(variants), now=now)
            session.on_progress(step)

    results = processes.parallel(one, list(variants), on_change=changed)
    times = {}
    for name, item in zip(variants, results, strict=True):
        if isinstance(item, str):
            missing[name] = item
        else:
            times[name] = item
    return times, missing


def is_same_code(then: Arm, now: Arm) -> bool:
    """Whether a build is what a record measured, as far as registers and sizes tell."""
    return bool(then.build and now.build and then.build.resources == now.build.resources)


def _pair(
    first: MeasuredArm, second: MeasuredArm, times: Mapping[str, ModelledTime]
) -> ModelledPair:
    one, other = times[first.name], times[second.name]
    return ModelledPair(
        experiment=first.record.experiment,
        run=first.record.run,
        kernel=first.record.kernel,
        arms=(first.name, second.name),
        apart=judge.apart(first.arm, second.arm),
        modelled=math.log(one.cycles / other.cycles),
        floor=math.log(_floor(one) / _floor(other)),
        measured=math.log(first.microseconds / second.microseconds),
    )


def _floor(time: ModelledTime) -> float:
    """Cycles of the busiest unit."""
    return time.cycles * max(time.units.values())


def _family(kernel: str, errors: Sequence[float], pairs: Sequence[ModelledPair]) -> ModelledFamily:
    """The errors of a kernel, or of all, whose name is empty."""
    own = [pair for pair in pairs if kernel in ("", pair.kernel)]
    apart = {}
    for distance in (0.05, 0.1):
        far = [pair for pair in own if judge.is_apart(pair, distance)]
        floors = sum(pair.floor * pair.measured > 0 for pair in far)
        apart[f"{distance:.0%}"] = (len(far), sum(pair.is_right for pair in far), floors)
    return ModelledFamily(
        kernel=kernel or "all",
        times=len(errors),
        mean=statistics.mean(map(abs, errors)),
        bias=statistics.mean(errors),
        apart=apart,
    )
