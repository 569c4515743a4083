"""Conclusion of an experiment: what was built, emulated and timed is judged, and written as a
record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp import __version__
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.measure import heats
from kernelexp.evidence.measure.measured import MeasurementTaken
from kernelexp.evidence.measure.programs import measured_programs
from kernelexp.facts import chips
from kernelexp.facts.chips import find_arch
from kernelexp.judge import consistency, executed, expectations, oversizes, reproduction, verdict
from kernelexp.judge.expectations import Judged
from kernelexp.judge.statistics.stats import estimate
from kernelexp.logs import records, sources
from kernelexp.logs.documents import complete
from kernelexp.model.arm import Arm, EmulatedEvidence, Verdict
from kernelexp.model.errors import ConfigurationError, KernelexpError, explain
from kernelexp.model.experiment import FULL, Experiment, Point, Variant, arm_names
from kernelexp.model.measurement import Gpus, Measurement, Measuring
from kernelexp.model.problem import Work
from kernelexp.model.record import (
    Candidate,
    Git,
    Heat,
    HostMachine,
    LaunchCounts,
    Record,
    SizeResult,
    Tuning,
    measurement_of,
)
from kernelexp.project import Project
from kernelexp.project.problem import consult, files
from warpsim.launch import Launch

Faults: TypeAlias = tuple[tuple[Variant, KernelexpError], ...]


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a run, as the command line gives them."""

    measuring: Measuring | None = None
    """None: nothing is timed."""
    keep: bool = True
    """Write records."""
    partial: bool = False
    """Leave out candidates that could not be examined, where there are others."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment for programs: its record, or the error that kept it from one."""

    experiment: str
    path: str | None = None
    """The record's file; None where none was written."""
    record: Record | None = None
    expectations: dict[str, tuple[Judged, ...]] = {}
    """What became of them, by the candidate's name."""
    error: str | None = None


class Concluded(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment that has a record, with what it was compared with."""

    record: Record
    path: Path | None = None
    """None where records are not kept."""
    unkept: str = ""
    """Why the record could not be written, where it was to be."""
    earlier: tuple[Record, ...] = ()
    unreadable: tuple[records.Unreadable, ...] = ()
    faults: Faults = ()
    """Candidates that could not be examined, where the others were run without them."""

    @property
    def experiment(self) -> str:
        return self.record.experiment

    @property
    def ran(self) -> Ran:
        return Ran(
            experiment=self.experiment,
            path=str(self.path) if self.path else None,
            record=self.record,
            error=self.unkept or None,
            expectations=expectations.of_record(self.record) if self.record.expect else {},
        )


class FailedRun(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment that a mistake or a fault kept from a record."""

    experiment: str
    error: KernelexpError

    @property
    def ran(self) -> Ran:
        return Ran(experiment=self.experiment, error=str(self.error))


Outcome: TypeAlias = Concluded | FailedRun


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context that all experiments of a run share."""

    project: Project
    home: Path
    """Where records go: the project's root, or that of the project whose record is repeated."""
    session: Session
    settings: RunSettings
    gpus: Gpus
    host_files: dict[str, dict[str, str]]
    """Of each kernel, as its files were before anything ran."""
    git: Git | None
    machine: HostMachine


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement of an experiment's arms, or why there is none."""

    measurement: Measurement | None = None
    heats: tuple[Measurement, ...] = ()
    why_not: str = ""
    size: str = ""
    parameters: dict[str, int] = {}
    flops: int = 0
    bytes: int = 0
    margin: float = 0.01
    journals: tuple[Path, ...] = ()


def as_timed(taken: MeasurementTaken, measuring: Measuring) -> Timed:
    """Returns the measurement taken, with what it was taken of."""
    return Timed(
        measurement=taken.measurement,
        heats=taken.heats,
        size=measuring.size,
        parameters=taken.parameters,
        flops=taken.flops,
        bytes=taken.bytes,
        margin=measuring.margin,
        journals=taken.journals,
    )


def take(
    shared: RunContext,
    arms: Sequence[Arm],
    launches: Mapping[str, Sequence[Launch]] | None = None,
    size: str = "",
) -> Timed:
    """Times what can be timed, the baseline first; raises what keeps a GPU from timing it.

    `size` is the experiment's own. `launches` are those of arms, by name, that the project's own
    problem.py does not launch.
    """
    measuring, session = shared.settings.measuring, shared.session
    root, limits, executor = shared.project.root, session.limits, session.executor
    names = arm_names(len(arms) - 1)
    usable = {
        name: arm for name, arm in zip(names, arms, strict=True) if arm.is_built and not arm.refused
    }
    program = next((arm.program.spec for arm in usable.values() if arm.program), None)
    on_cpu = measuring is not None and program is not None and not program.gpu
    gpus = shared.gpus.of(arms[0].arch)
    if not (gpus.devices or on_cpu):
        return Timed(why_not=gpus.why_none)
    if measuring is None or names[0] not in usable or len(usable) < 2:
        return Timed(why_not="there is nothing to time.")
    measuring = measuring.at(size)
    if program:
        measuring = msgspec.structs.replace(measuring, size="")
        run = measured_programs.take(
            root, usable, measuring, limits, executor.run_programs, on_progress=session.on_progress
        )
        return as_timed(run, measuring)
    # Verdicts are of arms that were timed side by side; only a race for the fastest has heats.
    wanted = len(gpus.devices) if measuring.goal == "fastest" else 1
    taken = heats.take(
        root,
        usable,
        measuring,
        limits,
        executor.measure,
        wanted,
        on_progress=session.on_progress,
        launches=launches,
    )
    return as_timed(taken, measuring)


class Several(msgspec.Struct, frozen=True, kw_only=True):
    """One size of a run of several: those before it, and how many there are."""

    before: tuple[SizeResult, ...]
    names: tuple[str, ...]
    """Of all of them."""
    weight: float
    count: int


def conclude(
    shared: RunContext,
    name: str,
    experiment: Experiment,
    arms: Sequence[Arm],
    timed: Timed,
    faults: Faults = (),
    *,
    overrides: Point | None = None,
    repeats: str = "",
    tuning: Tuning | None = None,
    several: Several | None = None,
) -> Concluded:
    """The record of arms, the baseline first, with its verdicts; written if records are kept."""
    host_files = _unchanged(shared, experiment, name, timed)
    earlier, unreadable = records.read(shared.home, name)
    if several:  # what this run has just timed is no earlier finding
        own = {item.run for item in several.before}
        earlier = [item for item in earlier if item.run not in own]
    if repeats:
        earlier = [item for item in earlier if item.run == repeats]
    result = msgspec.structs.replace(
        _assemble(shared, name, experiment, arms, timed),
        host_files=host_files,
        environment=files.environment(shared.project.root, experiment.kernel),
        repeats=repeats,
        overrides=overrides or {},
        tuning=tuning,
    )
    result = complete(result)
    result = msgspec.structs.replace(
        result, launched=count_launches(shared.project, result, shared.session)
    )
    if several and not timed.size and several.names not in ((), (FULL,)):
        result = msgspec.structs.replace(result, size=", ".join(several.names))
    result = _judge(result, timed.why_not, earlier)
    result = _over_sizes(result, timed, several) if several else result
    path, unkept = None, ""
    if shared.settings.keep:
        try:
            result, path = _keep(shared, result)
        except OSError as error:  # what was computed and timed is shown all the same
            unkept = explain(error)
    if not unkept:
        _remove_journals(timed)
    return Concluded(
        record=result,
        path=path,
        unkept=unkept,
        earlier=tuple(earlier),
        unreadable=tuple(unreadable),
        faults=tuple(faults),
    )


def _assemble(
    shared: RunContext, name: str, experiment: Experiment, arms: Sequence[Arm], timed: Timed
) -> Record:
    """The record of arms that are not judged yet."""
    baseline, *candidates = arms
    return Record(
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
        candidates=tuple(
            _placeholder(shared.project.root, baseline, candidate) for candidate in candidates
        ),
        expect=tuple(experiment.expectations) if any(experiment.expectations) else (),
        tool=__version__,
        compiler=shared.session.tools.version,
        git=shared.git,
        machine=shared.machine,
        device=timed.measurement.device.name if timed.measurement else "",
        size=timed.size or ", ".join(experiment.timed_sizes),
        flops=timed.flops,
        bytes=timed.bytes,
        margin=timed.margin,
        measurement=timed.measurement,
        estimate=estimate(timed.measurement) if timed.measurement else None,
        heats=tuple(Heat(measurement=heat, estimate=estimate(heat)) for heat in timed.heats),
    )


def _unchanged(
    shared: RunContext, experiment: Experiment, name: str, timed: Timed
) -> dict[str, str]:
    """The files of the problem, as they were all the time; else samples of two versions go."""
    before = shared.host_files[experiment.kernel]
    try:
        files.refuse_changes(shared.project.root, experiment.kernel, before, f"while {name} ran")
    except ConfigurationError:
        _remove_journals(timed)
        raise
    # With what problem.py was only now seen to import.
    return files.digests(shared.project.root, experiment.kernel)


def _remove_journals(timed: Timed) -> None:
    for journal in timed.journals:
        journal.unlink(missing_ok=True)


def _placeholder(root: Path, baseline: Arm, arm: Arm) -> Candidate:
    """A candidate that is not judged yet: its verdict needs what the record's samples say of it."""
    return Candidate(
        arm=arm,
        verdict=arm.refused or verdict.pending(),
        same_code=_is_same_code(root, baseline, arm),
        remarks=tuple(dict.fromkeys(consistency.plausibility_remarks(baseline, arm))),
    )


def _is_same_code(root: Path, baseline: Arm, arm: Arm) -> bool:
    """Whether an arm is the baseline under another name."""
    if not (baseline.build and arm.build) or baseline.build.resources != arm.build.resources:
        return False
    if baseline.launch != arm.launch:
        return False  # another grid, or other arguments
    if baseline.emulated and arm.emulated and _work(baseline.emulated) != _work(arm.emulated):
        return False  # other arrays
    one, other = (build.artefacts(root, item.identity).sass for item in (baseline, arm))
    return one == other


def _work(evidence: EmulatedEvidence) -> tuple[object, ...]:
    return evidence.thread_instructions, evidence.counters, evidence.outputs


def _judge(draft: Record, why_not: str, earlier: Sequence[Record]) -> Record:
    """The record with a verdict on each candidate, compared with the earlier records."""
    judged = []
    for name, candidate in zip(draft.names[1:], draft.candidates, strict=True):
        decided = consistency.qualified(
            draft, name, candidate, _decide(draft, name, candidate.arm, why_not)
        )
        against = reproduction.compare(draft, candidate.arm, decided, earlier)
        judged.append(
            msgspec.structs.replace(
                candidate,
                verdict=decided,
                reproduction=against.sentence,
                reproduces=against.agrees,
            )
        )
    return msgspec.structs.replace(draft, candidates=tuple(judged))


def _over_sizes(record: Record, timed: Timed, several: Several) -> Record:
    """The record of the last size with what all came to; the others as they are."""
    if several.count < 2 or len(several.before) + 1 < several.count:
        return record
    results = (*several.before, size_result(record, timed, several.weight))
    candidates = tuple(
        msgspec.structs.replace(
            candidate, over_sizes=oversizes.overall(results, name, record.margin)
        )
        for name, candidate in zip(record.names[1:], record.candidates, strict=True)
    )
    return msgspec.structs.replace(record, sizes=results, candidates=candidates)


def size_result(record: Record, timed: Timed, weight: float) -> SizeResult:
    """Returns the result of a record, for the verdict over all sizes."""
    own = record.estimate
    base = own.shown("baseline") if own else None
    return SizeResult(
        run=record.run,
        size=record.size,
        parameters=timed.parameters,
        weight=weight,
        baseline_us=base.median_us if base else None,
        effects=own.effects if own else (),
        verdicts=dict(
            zip(
                record.names[1:],
                (candidate.verdict for candidate in record.candidates),
                strict=True,
            )
        ),
    )


def _decide(draft: Record, name: str, candidate: Arm, why_not: str) -> Verdict:
    """Returns the verdict that refuses the candidate or its baseline, else that of the
    measurement."""
    if candidate.refused:
        return candidate.refused
    if draft.baseline.refused:
        return verdict.without_baseline(draft.baseline.refused)
    if measurement := measurement_of(draft, name):
        return verdict.measured(measurement, name, draft.margin)
    shown = candidate.emulated
    executed = shown is not None and not shown.unsupported
    return verdict.unmeasured(find_arch(draft.arch), why_not, emulated=executed)


def _keep(shared: RunContext, draft: Record) -> tuple[Record, Path]:
    """Writes the record, and the files of the run where no commit has them."""
    files_of_run = sources.of_record(draft)
    around = any(name.startswith("..") for name in files_of_run)  # git was not asked about these
    if draft.git is None or draft.git.dirty or around:
        kept = sources.keep(shared.home, shared.project.root, files_of_run)
        draft = msgspec.structs.replace(draft, sources_kept=kept)
    return draft, records.write(shared.home, draft)


ALONE = 0.8
"""Of the least that the counts of one small size come to, the share that is a bound: random inputs
of another size may need fewer steps where these depend on the inputs."""


def count_launches(project: Project, record: Record, session: Session) -> dict[str, LaunchCounts]:
    """Returns the counts by the names of arms, scaled roughly first and solved for the full
    problem only where a time is near: at 86% of a GEMM's peak that would be 10 s of emulation
    for nothing."""
    chip = chips.find(record.device)
    arms = {
        name: (arm, arm.counted)
        for name, arm in zip(record.names, record.arms, strict=True)
        if arm.measured and arm.measured.time_us and arm.counted
    }
    if record.measurement is None or chip is None or not arms:
        return {}
    clock_hz = consistency.highest_clock(record.measurement, chip)
    said = consult.consult(project.root, record.kernel, timeout_s=session.limits.problem_s)
    if record.size not in said.sizes:
        return {}
    result = {}
    for name, (arm, evidence) in arms.items():
        assert evidence
        assert arm.measured
        assert arm.measured.time_us
        factor = _factor(said.work, evidence.size, record.size)
        rough = _counts(evidence, {key: int(n * factor) for key, n in evidence.counters.items()})
        needed = max((seconds for seconds, _ in executed.least(rough, chip, clock_hz)), default=0.0)
        if factor and consistency.COUNTED * needed <= arm.measured.time_us / 1e6:
            continue
        if full := _solved(project, arm, [*said.sizes], session, record.size):
            result[name] = full
    return result


def _factor(work: Mapping[str, Work], size: str, timed: str) -> float:
    """About how many times the work of a small size the timed one is; 0 where not stated."""
    one, full = work.get(size), work.get(timed)
    if one is None or full is None:
        return 0.0
    pairs = ((full.flops, one.flops), (full.bytes, one.bytes))
    return max((large / small for large, small in pairs if small), default=0.0)


def _solved(
    project: Project, arm: Arm, sizes: Sequence[str], session: Session, timed: str
) -> LaunchCounts | None:
    """Solved from two sizes, else the least that one allows; None where neither can be had."""
    from kernelexp.dossier import extents, full_counts  # most runs count no launch

    launches = extents.launches(project, arm, sizes, session.limits)
    full = full_counts.count_full(project, arm, launches, session, timed)
    if arm.counted is None:
        return None
    if full is None or not full.solved:
        factor = full_counts.least_factor(launches, arm.counted, timed)
        least = {name: int(ALONE * factor * n) for name, n in arm.counted.counters.items()}
        how = f"at least {ALONE * factor:,.4g} times the counts of size {arm.counted.size!r}"
        return _counts(arm.counted, least, how) if factor else None
    known = {name: full.counters[name] for name in executed.COUNTERS if name in full.solved}
    return _counts(arm.counted, known, full.how)


def _counts(evidence: EmulatedEvidence, counters: dict[str, int], how: str = "") -> LaunchCounts:
    return LaunchCounts(
        counters=counters,
        flops_of_mma=executed.flops_of_mma(evidence),
        polls=executed.polls(evidence),
        how=how,
    )
