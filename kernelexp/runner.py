"""The way of a run: experiments to arms, evidence, verdicts, records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp import (
    __version__,
    arch,
    errors,
    prepare,
    processes,
    record,
    records,
    sources,
    surroundings,
    timing,
)
from kernelexp import repeat as repeating
from kernelexp.arm import Arm, Verdict
from kernelexp.errors import ConfigurationError, EnvironmentFault, KernelexpError
from kernelexp.evidence.measured import Measuring
from kernelexp.executor import Executor, Local
from kernelexp.judge import reproduction, verdict
from kernelexp.judge.stats import estimate
from kernelexp.limits import Limits
from kernelexp.measurement import Device
from kernelexp.model import Experiment, Point, Variant
from kernelexp.prepare import Prepared
from kernelexp.problem import files
from kernelexp.progress import Joined, OnProgress
from kernelexp.project import Project
from kernelexp.record import Candidate, Git, Heat, Machine, Record, Tuning
from kernelexp.timing import Timed
from kernelexp.toolchain import Toolchain

Faults: TypeAlias = tuple[tuple[Variant, KernelexpError], ...]


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
    executor: Executor = Local()
    """Where the work is done."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one experiment: its record, or the mistake or fault that kept it from one."""

    experiment: str
    record: Record | None = None
    path: Path | None = None
    earlier: tuple[Record, ...] = ()
    unreadable: tuple[records.Unreadable, ...] = ()
    error: KernelexpError | None = None
    faults: Faults = ()
    """What kept candidates from being examined, where the others were run without them."""


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What all experiments of a run share."""

    project: Project
    home: Path
    """Where records go: the project's root, or that of the project whose record is repeated."""
    tools: Toolchain
    settings: Settings
    gpus: tuple[Device, ...] | str
    """The GPUs to time on, or why there is none."""
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
    shared = share(project, project.root, tools, settings, on_progress)
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
    shared = share(restored, project.root, tools, settings, on_progress)
    return _run(shared, [past.experiment], {}, past.run)


def share(
    project: Project,
    home: Path,
    tools: Toolchain,
    settings: Settings,
    on_progress: OnProgress | None,
) -> Shared:
    return Shared(
        project=project,
        home=home,
        tools=tools,
        settings=settings,
        gpus=_find_gpus(settings),
        host_files={name: files.digests(project.root, name) for name in project.kernels},
        # The files of a repeated run are not those of the tree.
        git=surroundings.read_git(home) if project.root == home else None,
        machine=surroundings.read_machine(),
        on_progress=on_progress,
    )


def examine(shared: Shared, variants: Sequence[Variant]) -> Prepared:
    """The variants built, and emulated if they are to be."""
    project, settings, tell = shared.project, shared.settings, shared.on_progress
    limits, executor = settings.limits, settings.executor
    size = settings.measuring.size if settings.measuring else None
    prepared = prepare.built(project, variants, shared.tools, limits, tell, size, executor)
    if settings.emulate:
        prepared = prepare.emulated(project, prepared, limits, tell, executor=executor)
    return prepared


def _run(
    shared: Shared, names: Sequence[str], overrides: Mapping[str, Point], repeats: str
) -> list[Outcome]:
    project = shared.project
    variants: dict[str, list[Variant]] = {}
    for name in dict.fromkeys(names):
        baseline, candidates = project.variants(project.experiment(name))
        point = overrides.get(name, {})
        changed = [project.variant(v.kernel, v.arch, v.axes, point) for v in candidates]
        variants[name] = [baseline, *changed]
    every = [each for own in variants.values() for each in own]
    prepared = examine(shared, every)

    def one(name: str) -> Outcome:
        own, point = variants[name], overrides.get(name, {})
        try:
            return _run_one(telling.of(name), name, own, prepared, point, repeats)
        except KernelexpError as error:
            return Outcome(experiment=name, error=error)
        except OSError as error:
            fault = EnvironmentFault(f"{errors.explain(error)}.")
            return Outcome(experiment=name, error=fault)

    telling = _Telling(shared)
    cards = 0 if isinstance(shared.gpus, str) else len(shared.gpus)
    if min(cards, len(variants)) < 2:
        return [one(name) for name in variants]
    return processes.parallel(one, list(variants), workers=cards)


class _Telling:
    """What experiments that are measured at the same time share, each with its own progress."""

    def __init__(self, shared: Shared) -> None:
        self._shared, self._joined = shared, Joined(shared.on_progress)

    def of(self, name: str) -> Shared:
        return msgspec.structs.replace(self._shared, on_progress=self._joined.of(name))


def _run_one(
    shared: Shared,
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
    timed = timing.take(
        shared.project.root,
        arms,
        shared.settings.measuring,
        shared.settings.limits,
        shared.settings.executor,
        shared.gpus,
        shared.on_progress,
    )
    return conclude(
        shared, name, experiment, arms, timed, faults, overrides=overrides, repeats=repeats
    )


def conclude(
    shared: Shared,
    name: str,
    experiment: Experiment,
    arms: Sequence[Arm],
    timed: Timed,
    faults: Faults = (),
    *,
    overrides: Point | None = None,
    repeats: str = "",
    tuning: Tuning | None = None,
) -> Outcome:
    """The record of arms, the baseline first, with its verdicts; written if records are kept."""
    baseline, *candidates = arms
    host_files = _unchanged(shared, experiment, name, timed)
    earlier, unreadable = records.read(shared.home, name)
    if repeats:
        earlier = [each for each in earlier if each.run == repeats]
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
        host_files=host_files,
        repeats=repeats,
        machine=shared.machine,
        overrides=overrides or {},
        device=timed.measurement.device.name if timed.measurement else "",
        size=timed.size,
        flops=timed.flops,
        margin=timed.margin,
        measurement=timed.measurement,
        estimate=estimate(timed.measurement) if timed.measurement else None,
        heats=tuple(Heat(measurement=each, estimate=estimate(each)) for each in timed.heats),
        tuning=tuning,
    )
    made = _judge(record.complete(made), timed.why_not, earlier)
    made, path = _keep(shared, made) if shared.settings.keep else (made, None)
    _remove_journals(timed)
    return Outcome(
        experiment=name,
        record=made,
        path=path,
        earlier=tuple(earlier),
        unreadable=tuple(unreadable),
        faults=tuple(faults),
    )


def _unchanged(shared: Shared, experiment: Experiment, name: str, timed: Timed) -> dict[str, str]:
    """The files of the problem, as they were all the time; else samples of two versions go."""
    before = shared.host_files[experiment.kernel]
    try:
        files.refuse_changes(shared.project.root, experiment.kernel, before, f"while {name} ran")
    except ConfigurationError:
        _remove_journals(timed)
        raise
    return before


def _remove_journals(timed: Timed) -> None:
    for journal in timed.journals:
        journal.unlink(missing_ok=True)


def _examined(
    shared: Shared, variants: Sequence[Variant], prepared: Prepared
) -> tuple[Sequence[Variant], Faults]:
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
    if taken := record.measurement_of(made, name):
        return verdict.measured(taken, name, made.margin)
    shown = candidate.emulated
    executed = shown is not None and not shown.unsupported
    return verdict.unmeasured(arch.find(made.arch), why_not, emulated=executed)


def _keep(shared: Shared, made: Record) -> tuple[Record, Path]:
    """Writes the record, and the files of the run where no commit has them."""
    files_of_run = sources.of_record(made)
    around = any(name.startswith("..") for name in files_of_run)  # git was not asked about these
    if made.git is None or made.git.dirty or around:
        kept = sources.keep(shared.home, shared.project.root, files_of_run)
        made = msgspec.structs.replace(made, sources_kept=kept)
    return made, records.write(shared.home, made)


def _find_gpus(settings: Settings) -> tuple[Device, ...] | str:
    """The GPUs to time on, or why there is none. Those that were asked for must be there."""
    if settings.measuring is None:
        return "timing was switched off."
    return settings.executor.gpus()


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
