"""The way of a run: experiments to arms, evidence, verdicts, records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kernelexp import (
    __version__,
    arch,
    errors,
    prepare,
    record,
    records,
    sources,
    surroundings,
)
from kernelexp import repeat as repeating
from kernelexp.arm import Arm, Verdict
from kernelexp.errors import EnvironmentFault, KernelexpError
from kernelexp.evidence import measured
from kernelexp.evidence.measured import Measuring
from kernelexp.gpu import device as devices
from kernelexp.judge import reproduction, verdict
from kernelexp.judge.stats import estimate
from kernelexp.limits import Limits
from kernelexp.measurement import Device, Measurement
from kernelexp.model import Experiment, Point, Variant, arm_names
from kernelexp.prepare import Prepared
from kernelexp.progress import OnProgress
from kernelexp.project import Project
from kernelexp.record import Candidate, Git, Machine, Record
from kernelexp.toolchain import Toolchain


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to run, as the command line says it."""

    emulate: bool = True
    measuring: Measuring | None = None
    """None: nothing is timed."""
    keep: bool = True
    """Write records."""
    partial: bool = False
    """Leave out candidates that could not be examined, where there are others."""
    limits: Limits = Limits()


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one experiment: its record, or the mistake or fault that kept it from one."""

    experiment: str
    record: Record | None = None
    path: Path | None = None
    earlier: tuple[Record, ...] = ()
    unreadable: tuple[records.Unreadable, ...] = ()
    error: KernelexpError | None = None
    faults: tuple[tuple[Variant, KernelexpError], ...] = ()
    """What kept candidates from being examined, where the others were run without them."""


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """What all experiments of a run share."""

    project: Project
    home: Path
    """Where records go: the project's root, or that of the project whose record is repeated."""
    tools: Toolchain
    settings: Settings
    gpu: Device | str
    """The GPU to time on, or why there is none."""
    host_files: dict[str, dict[str, str]]
    """Of each kernel, as its files were before anything ran."""
    git: Git | None
    machine: Machine
    on_progress: OnProgress | None


def run(
    project: Project,
    names: Sequence[str],
    tools: Toolchain,
    settings: Settings,
    overrides: Mapping[str, Point] | None = None,
    on_progress: OnProgress | None = None,
) -> list[Outcome]:
    """Runs the experiments `names`; their variants are built together, each once.

    `overrides` changes the candidates of an experiment, by its id. What an emulation finds wrong is
    not timed. Records are written as soon as their experiment is done, and a fault of one
    experiment leaves the others to be done.
    """
    shared = _share(project, project.root, tools, settings, on_progress)
    return _run(shared, names, overrides or {}, "")


def restore(project: Project, text: str) -> tuple[Project, str]:
    """The project of a record's own time, and the id of its one experiment."""
    past = records.read_file(records.find(project.root, text))
    return repeating.project_of(project.root, past), past.experiment


def repeat(
    project: Project,
    text: str,
    tools: Toolchain,
    settings: Settings,
    on_progress: OnProgress | None = None,
) -> list[Outcome]:
    """Runs the variants of a record again, from its own sources; the new record goes to `project`.

    UsageError where `text` names no record, or its files are lost.
    """
    past = records.read_file(records.find(project.root, text))
    restored = repeating.project_of(project.root, past)
    shared = _share(restored, project.root, tools, settings, on_progress)
    return _run(shared, [past.experiment], {}, past.run)


def _share(
    project: Project,
    home: Path,
    tools: Toolchain,
    settings: Settings,
    on_progress: OnProgress | None,
) -> _Run:
    return _Run(
        project=project,
        home=home,
        tools=tools,
        settings=settings,
        gpu=_find_gpu(settings.measuring),
        host_files={name: sources.host_files(project.root, name) for name in project.kernels},
        # The files of a repeated run are not those of the tree.
        git=surroundings.read_git(home) if project.root == home else None,
        machine=surroundings.read_machine(),
        on_progress=on_progress,
    )


def _run(
    shared: _Run, names: Sequence[str], overrides: Mapping[str, Point], repeats: str
) -> list[Outcome]:
    project, limits = shared.project, shared.settings.limits
    variants: dict[str, list[Variant]] = {}
    for name in dict.fromkeys(names):
        baseline, candidates = project.variants(project.experiment(name))
        point = overrides.get(name, {})
        changed = [project.variant(v.kernel, v.arch, v.axes, point) for v in candidates]
        variants[name] = [baseline, *changed]
    every = [each for own in variants.values() for each in own]
    size = shared.settings.measuring.size if shared.settings.measuring else None
    prepared = prepare.built(project, every, shared.tools, limits, shared.on_progress, size)
    if shared.settings.emulate:
        prepared = prepare.emulated(project, prepared, limits, shared.on_progress)
    outcomes = []
    for name, own in variants.items():
        try:
            outcome = _run_one(shared, name, own, prepared, overrides.get(name, {}), repeats)
        except KernelexpError as error:
            outcome = Outcome(experiment=name, error=error)
        except OSError as error:
            fault = EnvironmentFault(f"{errors.explain(error)}.")
            outcome = Outcome(experiment=name, error=fault)
        outcomes.append(outcome)
    return outcomes


def _run_one(
    shared: _Run,
    name: str,
    variants: Sequence[Variant],
    prepared: Prepared,
    overrides: Point,
    repeats: str,
) -> Outcome:
    """One experiment; raises what kept its variants from being examined or timed."""
    experiment = shared.project.experiments[name]
    variants, faults = _examined(shared, variants, prepared)
    arms = [prepared.arm(variant) for variant in variants]
    earlier, unreadable = records.read(shared.home, name)
    if repeats:
        earlier = [each for each in earlier if each.run == repeats]
    made, journal = _judged(shared, name, experiment, arms, earlier)
    made = msgspec.structs.replace(made, repeats=repeats, overrides=overrides)
    made, path = _keep(shared, made) if shared.settings.keep else (made, None)
    if journal:
        journal.unlink(missing_ok=True)
    return Outcome(
        experiment=name,
        record=made,
        path=path,
        earlier=tuple(earlier),
        unreadable=tuple(unreadable),
        faults=faults,
    )


def compare(
    project: Project,
    name: str,
    experiment: Experiment,
    arms: Sequence[Arm],
    tools: Toolchain,
    settings: Settings,
    on_progress: OnProgress | None = None,
) -> Record:
    """Arms that are built already, the baseline first, timed and judged as a run does with its own;
    nothing is written. Raises what kept them from being timed."""
    shared = _share(project, project.root, tools, settings, on_progress)
    return _judged(shared, name, experiment, arms, ())[0]


def _judged(
    shared: _Run, name: str, experiment: Experiment, arms: Sequence[Arm], earlier: Sequence[Record]
) -> tuple[Record, Path | None]:
    """The record of arms, timed where they can be, and the journal of that."""
    timed = _time(shared, arms)
    baseline, *candidates = arms
    made = Record(
        version=records.VERSION,
        run=records.new_run_name(),
        experiment=name,
        provenance="run",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        kernel=experiment.kernel,
        arch=experiment.arch,
        title=experiment.title,
        hypothesis=experiment.hypothesis,
        baseline=baseline,
        candidates=tuple(_placeholder(each) for each in candidates),
        expect=tuple(experiment.expectations) if any(experiment.expectations) else (),
        tool=__version__,
        compiler=shared.tools.version,
        git=shared.git,
        host_files=shared.host_files[experiment.kernel],
        machine=shared.machine,
        device=timed.measurement.device.name if timed.measurement else "",
        size=timed.size,
        flops=timed.flops,
        margin=timed.margin,
        measurement=timed.measurement,
        estimate=estimate(timed.measurement) if timed.measurement else None,
    )
    return _judge(record.complete(made), timed.why_not, earlier), timed.journal


def _examined(
    shared: _Run, variants: Sequence[Variant], prepared: Prepared
) -> tuple[Sequence[Variant], tuple[tuple[Variant, KernelexpError], ...]]:
    """The variants to go on with, the baseline first, and the faults of those left out."""
    if not shared.settings.partial:
        return variants, ()
    faults = [(each, fault) for each in variants[1:] if (fault := prepared.fault(each))]
    faulty = [variant for variant, _ in faults]
    kept = [each for each in variants if each not in faulty]
    return (kept, tuple(faults)) if len(kept) > 1 else (variants, ())


def _placeholder(arm: Arm) -> Candidate:
    """A candidate that is not judged yet: its verdict needs what the record's samples say of it."""
    return Candidate(arm=arm, verdict=arm.refused or verdict.pending())


def _judge(made: Record, why_not: str, earlier: Sequence[Record]) -> Record:
    """The record with a verdict on each candidate, compared with the earlier records."""
    judged = []
    for name, candidate in zip(made.names[1:], made.candidates, strict=True):
        decided = _decide(made, name, candidate.arm, why_not)
        against = reproduction.compare(made, candidate.arm, decided, earlier)
        judged.append(
            Candidate(
                arm=candidate.arm,
                verdict=decided,
                reproduction=against.sentence,
                reproduces=against.agrees,
            )
        )
    return msgspec.structs.replace(made, candidates=tuple(judged))


def _decide(made: Record, name: str, candidate: Arm, why_not: str) -> Verdict:
    """What refuses the candidate or its baseline, else what the measurement says."""
    if candidate.refused:
        return candidate.refused
    if made.baseline.refused:
        return verdict.without_baseline(made.baseline.refused)
    if made.measurement:
        return verdict.measured(made.measurement, name, made.margin)
    shown = candidate.emulated
    executed = shown is not None and not shown.unsupported
    return verdict.unmeasured(arch.find(made.arch), why_not, emulated=executed)


def _keep(shared: _Run, made: Record) -> tuple[Record, Path]:
    """Writes the record, and the files of the run where no commit has them."""
    if made.git is None or made.git.dirty:
        kept = sources.keep(shared.home, shared.project.root, sources.of_record(made))
        made = msgspec.structs.replace(made, sources_kept=kept)
    return made, records.write(shared.home, made)


class _Timed(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement of an experiment's arms, or why there is none."""

    measurement: Measurement | None = None
    why_not: str = ""
    size: str = ""
    flops: int = 0
    margin: float = 0.01
    journal: Path | None = None


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


def _time(shared: _Run, arms: Sequence[Arm]) -> _Timed:
    """Times what can be timed; raises what keeps this machine from timing it."""
    gpu, measuring = shared.gpu, shared.settings.measuring
    if isinstance(gpu, str):
        return _Timed(why_not=gpu)
    if gpu.arch != arms[0].arch:
        return _Timed(why_not=f"this machine's is {gpu.name} ({gpu.arch}).")
    names = arm_names(len(arms) - 1)
    usable = {
        name: arm for name, arm in zip(names, arms, strict=True) if arm.build and not arm.refused
    }
    if measuring is None or names[0] not in usable or len(usable) < 2:
        return _Timed(why_not="there is nothing to time.")
    taken = measured.take(
        shared.project.root,
        usable,
        measuring,
        shared.settings.limits,
        on_progress=shared.on_progress,
    )
    return _Timed(
        measurement=taken.measurement,
        size=measuring.size,
        flops=taken.flops,
        margin=measuring.margin,
        journal=taken.journal,
    )


def exit_code(outcomes: Sequence[Outcome], reproduce: bool = False) -> int:
    """What a run ends with. A candidate that is worse, impossible or not timed is an answer: 0.

    With `reproduce`, a candidate that contradicts an earlier record is a regression.
    """
    for each in outcomes:
        if each.error:
            return each.error.exit_code
    made = [each.record for each in outcomes if each.record]
    candidates = [candidate for record in made for candidate in record.candidates]
    statuses = {candidate.verdict.status for candidate in candidates}
    statuses |= {record.baseline.refused.status for record in made if record.baseline.refused}
    code = verdict.exit_code(statuses)
    if not code and reproduce and any(each.reproduces is False for each in candidates):
        return errors.REGRESSION
    return code
