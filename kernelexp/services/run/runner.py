"""The way of a run: experiments to arms and evidence; conclusion.py makes records of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.judge import verdict
from kernelexp.logs import records, sources
from kernelexp.model import errors
from kernelexp.model.arm import Arm, ArmOrFault, sound, without_fault
from kernelexp.model.errors import EnvironmentFault, KernelexpError
from kernelexp.model.experiment import Point, Variant
from kernelexp.model.measurement import Gpus
from kernelexp.model.record import SizeResult
from kernelexp.project import Project
from kernelexp.project.problem import files
from kernelexp.services.run import conclusion
from kernelexp.services.run import repeat as repeating
from kernelexp.services.run.conclusion import (
    Concluded,
    FailedRun,
    Faults,
    Outcome,
    RunContext,
    RunSettings,
    Several,
)
from kernelexp.system import device
from kernelexp.system.live import Joined
from kernelexp.system.process import processes


def run(
    project: Project,
    names: Sequence[str],
    session: Session,
    settings: RunSettings,
    overrides: Mapping[str, Point] | None = None,
) -> list[Outcome]:
    """Runs the experiments `names`; their variants are built together, each once.

    `overrides` changes the candidates of an experiment, by its id. What an emulation finds wrong is
    not timed. Records are written as soon as their experiment is done, and a fault of one
    experiment leaves the others to be done.
    """
    shared = share(project, project.root, session, settings=settings)
    return _run(shared, names, overrides or {})


def restore(project: Project, text: str) -> tuple[Project, str]:
    """The project of a record's own time, and the id of its one experiment."""
    past = records.read_file(records.find(project.root, text))
    return repeating.project_of(project.root, past), past.experiment


def repeat(
    project: Project,
    text: str,
    session: Session,
    settings: RunSettings,
) -> list[Outcome]:
    """Runs the variants of a record again, from its own sources; the new record goes to `project`.

    UsageError where `text` names no record, or its files are lost.
    """
    past = records.read_file(records.find(project.root, text))
    restored = repeating.project_of(project.root, past)
    shared = share(restored, project.root, session, settings=settings)
    return _run(shared, [past.experiment], {}, repeats=past.run)


def share(
    project: Project,
    home: Path,
    session: Session,
    settings: RunSettings,
) -> RunContext:
    return RunContext(
        project=project,
        home=home,
        session=session,
        settings=settings,
        gpus=_find_gpus(session, settings),
        host_files={name: files.digests(project.root, name) for name in project.kernels},
        # The files of a repeated run are not those of the tree.
        git=sources.read_git(home) if project.root == home else None,
        machine=device.read_machine(),
    )


def examine(
    shared: RunContext, variants: Sequence[Variant], names: Sequence[str] = ()
) -> list[ArmOrFault]:
    """The variants built, and emulated if they are to be; those of experiments by their `names`."""
    project, session, measuring = shared.project, shared.session, shared.settings.measuring
    sizes: list[tuple[str, str]] = []
    if measuring:
        experiments = [project.experiment(name) for name in names]
        sizes = [
            (experiment.kernel, one.size)
            for experiment in experiments
            for one in measuring.over(experiment)
        ]
        sizes = sizes or [(variant.kernel, measuring.at("").size) for variant in variants]
    arms = prepare.built(project, variants, session, sizes)
    return prepare.emulated(project, arms, session) if session.emulate else arms


def _run(
    shared: RunContext, names: Sequence[str], overrides: Mapping[str, Point], repeats: str = ""
) -> list[Outcome]:
    project = shared.project
    variants: dict[str, list[Variant]] = {}
    for name in dict.fromkeys(names):
        baseline, candidates = project.variants(project.experiment(name))
        point = overrides.get(name, {})
        changed = [project.variant(v.kernel, v.arch, v.axes, point) for v in candidates]
        variants[name] = [baseline, *changed]
    every = [variant for own in variants.values() for variant in own]
    examined = iter(examine(shared, every, list(variants)))
    arms = {name: list(itertools.islice(examined, len(own))) for name, own in variants.items()}
    progress = Joined(shared.session.on_progress)  # experiments may be measured at the same time

    def one(name: str) -> list[Outcome]:
        session = msgspec.structs.replace(shared.session, on_progress=progress.of(name))
        mine = msgspec.structs.replace(shared, session=session)
        point = overrides.get(name, {})
        outcomes: list[Outcome] = []
        try:
            for outcome in _run_one(mine, name, variants[name], arms[name], point, repeats):
                outcomes.append(outcome)
        except KernelexpError as error:
            outcomes.append(FailedRun(experiment=name, error=error))
        except OSError as error:
            fault = EnvironmentFault(f"{errors.explain(error)}.")
            outcomes.append(FailedRun(experiment=name, error=fault))
        return outcomes

    cards = len(shared.gpus.devices)
    if min(cards, len(variants)) < 2:
        result = [one(name) for name in variants]
    else:
        result = processes.parallel(one, list(variants), workers=cards)
    return list(itertools.chain.from_iterable(result))


def _run_one(
    shared: RunContext,
    name: str,
    variants: Sequence[Variant],
    examined: Sequence[ArmOrFault],
    overrides: Point,
    repeats: str,
) -> Iterator[Concluded]:
    """One experiment, a record for each size; raises what kept it from being examined or timed."""
    experiment, measuring = shared.project.experiments[name], shared.settings.measuring
    arms, faults = _without_faults(shared, variants, examined)
    before: list[SizeResult] = []
    settings = measuring.over(experiment) if measuring else (None,)
    names = tuple(one.size for one in settings if one)
    weights = experiment.weights if len(experiment.weights) == len(settings) else ()
    for place, one in enumerate(settings):
        mine = msgspec.structs.replace(
            shared, settings=msgspec.structs.replace(shared.settings, measuring=one)
        )
        timed = conclusion.take(mine, arms)
        weight = weights[place] if weights else 1.0
        outcome = conclusion.conclude(
            mine, name, experiment, arms, timed, faults,
            overrides=overrides, repeats=repeats,
            several=Several(
                before=tuple(before), names=names, weight=weight, count=len(settings)
            ),
        )  # fmt: skip
        before.append(conclusion.size_result(outcome.record, timed, weight))
        yield outcome
        if timed.measurement is None:
            return  # nothing can be timed at another size either


def _without_faults(
    shared: RunContext, variants: Sequence[Variant], arms: Sequence[ArmOrFault]
) -> tuple[list[Arm], Faults]:
    """The arms to go on with, the baseline first, and the faults of those left out."""
    pairs = zip(variants[1:], arms[1:], strict=True)
    faults = tuple((variant, x) for variant, x in pairs if isinstance(x, KernelexpError))
    if not shared.settings.partial or len(faults) == len(arms) - 1:
        return [sound(arm) for arm in arms], ()
    return [sound(arms[0]), *without_fault(arms[1:])], faults


def _find_gpus(session: Session, settings: RunSettings) -> Gpus:
    """The GPUs to time on, or why there is none. Those that were asked for must be there."""
    if settings.measuring is None:
        return Gpus(why_none="timing was switched off.")
    return session.executor.gpus()


def exit_code(outcomes: Sequence[Outcome], reproduce: bool = False) -> int:
    """Returns a run's exit code. A candidate that is worse, impossible or not timed is an answer:
    0.

    With `reproduce`, a candidate that contradicts an earlier record is a regression.
    """
    for outcome in outcomes:
        if isinstance(outcome, FailedRun):
            return outcome.error.exit_code
    if any(isinstance(outcome, Concluded) and outcome.unkept for outcome in outcomes):
        return errors.ENVIRONMENT
    result = [outcome.record for outcome in outcomes if isinstance(outcome, Concluded)]
    candidates = [candidate for record in result for candidate in record.candidates]
    statuses = {candidate.verdict.status for candidate in candidates}
    statuses |= {record.baseline.refused.status for record in result if record.baseline.refused}
    code = verdict.exit_code(statuses)
    if not code and reproduce and any(candidate.reproduces is False for candidate in candidates):
        return errors.REGRESSION
    return code
