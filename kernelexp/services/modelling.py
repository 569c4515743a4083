"""Variants to modelled times: built, executed in part, replayed by the model of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import jobs
from kernelexp.evidence.emulate import emulated
from kernelexp.evidence.emulate.job import ModellingAnswer
from kernelexp.facts.modelled_errors import ERRORS, ModelledErrors
from kernelexp.judge import modelled_pairs
from kernelexp.judge.modelled_pairs import ModelledChange
from kernelexp.logs import profiles
from kernelexp.model.arm import Arm, sound
from kernelexp.model.errors import KernelexpError, UsageError
from kernelexp.model.experiment import FULL, Experiment, Variant, is_name
from kernelexp.model.modelled import ModelledRun, ModelledTime
from kernelexp.model.record import Record
from kernelexp.project import Project
from kernelexp.project.problem import consult, files
from kernelexp.services.lines.costs import Costs, add
from kernelexp.system.process import isolated, processes
from kernelexp.system.process.isolated import TimeLimit

WORKER = "kernelexp.evidence.emulate.modelling_worker"
CHIPS = {"sm_90a": "H200", "sm_100a": "B200"}
"""The chip whose parameters are taken for an architecture."""


class SampledLine(msgspec.Struct, frozen=True, kw_only=True):
    """A source line in a profile's source page."""

    file: str
    """Without its folder."""
    line: int
    part: float
    """Of all samples."""
    reason: str
    """ncu's column with most of the stalled ones."""


class ModelledVariant(msgspec.Struct, frozen=True, kw_only=True):
    """A variant with its modelled time."""

    variant: str
    modelled: ModelledTime
    change: ModelledChange | None = None
    """Against the first variant."""
    sampled: tuple[SampledLine, ...] = ()
    """What ncu sampled of its lines, where there is a profile: not modelled, to compare with."""
    errors: ModelledErrors = ERRORS


def look(
    project: Project, variants: Sequence[Variant], session: Session, size: str, trace: str = ""
) -> tuple[list[ModelledVariant], list[KernelexpError]]:
    """The variants that have a time or a reason for none, compared with the first of them, and the
    faults of the others."""
    timed, faults = times(project, variants, session, size, trace)
    result = []
    for variant, arm, time in timed:
        _, first, before = timed[0]
        change = None
        if arm is not first and not (time.refused or before.refused):
            change = modelled_pairs.change(before, time, modelled_pairs.apart(first, arm))
        result.append(
            ModelledVariant(
                variant=project.label(variant),
                modelled=time,
                change=change,
                sampled=tuple(_sampled(project, variant)),
            )
        )
    return result, faults


def times(
    project: Project,
    variants: Sequence[Variant],
    session: Session,
    size: str,
    trace: str = "",
    chip: str = "",
) -> tuple[list[tuple[Variant, Arm, ModelledTime]], list[KernelexpError]]:
    """The time of each variant, with its build, and the faults of those that have none.

    chip: which one; empty: that of CHIPS.
    """
    prepare.refuse_programs(variants, "a modelled time")
    for item in variants:
        if item.arch not in CHIPS:
            raise UsageError(
                f"{project.label(item)}: no time is modelled for {item.arch}, only for "
                f"{', '.join(CHIPS)}."
            )
    result = []
    faults = []
    arms = prepare.built(project, variants, session)
    for variant, one in zip(variants, arms, strict=True):
        try:
            arm = sound(one)
            time = _model(project, variant, arm, session, size, trace, chip)
        except KernelexpError as fault:
            faults.append(fault)
            continue
        result.append((variant, arm, time))
    return result, list(dict.fromkeys(faults))


def _sampled(project: Project, variant: Variant) -> Iterator[SampledLine]:
    """Lines of the latest profile of a variant that has a source page."""
    known = profiles.of_variant(project.root, variant.kernel, variant.arch, variant.axes)
    pages = (profile.arm.profiled.instructions for profile in known if profile.arm.profiled)
    lines: dict[tuple[str, int], list[Costs]] = {}
    for instruction in next(filter(None, pages), ()):
        place = Path(instruction.file).name, instruction.line
        lines.setdefault(place, []).append(Costs(sass=1, profiled=instruction.figures))
    costs = {place: add(own) for place, own in lines.items()}
    total = sum(sum(cost.stalls.values()) for cost in costs.values())
    for (file, line), cost in costs.items():
        stalled = [reason for reason in cost.stalls if reason != "selected"]
        if stalled and line:
            part = sum(cost.stalls.values()) / total
            yield SampledLine(file=file, line=line, part=part, reason=stalled[0])


def each(
    project: Project, variants: Sequence[Variant], session: Session, size: str
) -> list[ModelledTime | KernelexpError]:
    """The times of these variants in their order, or why there is none; side by side."""

    def one(variant: Variant) -> ModelledTime | KernelexpError:
        result, faults = times(project, [variant], session, size)
        if faults:
            return faults[0]
        _, _, time = result[0]
        return UsageError(time.refused) if time.refused else time

    return processes.parallel(one, variants)


def compare(project: Project, experiment: Experiment, number: int, session: Session) -> str:
    """Says how candidate `number`, counted from 1, compares by the model, in a sentence."""
    baseline, candidates = project.variants(experiment)
    size = experiment.size or FULL
    candidate = candidates[number - 1]
    try:
        results = each(project, (baseline, candidate), session, size)
    except UsageError as fault:
        results = [fault]
    for result in results:
        if not isinstance(result, ModelledTime):
            return f"Modelled: {result}"
    before, after = (item for item in results if isinstance(item, ModelledTime))
    apart = modelled_pairs.apart(baseline, candidate)
    sentence = modelled_pairs.change(before, after, apart).sentence
    return f"Modelled, not measured: {sentence}. {modelled_pairs.spelled_worth(after.chip)}"


def _model(
    project: Project,
    variant: Variant,
    arm: Arm,
    session: Session,
    size: str,
    trace: str,
    other: str,
) -> ModelledTime:
    chip = other or CHIPS[variant.arch]
    if arm.build is None:
        why = arm.refused.sentence if arm.refused else "it does not build."
        return ModelledTime(chip=chip, size=size, refused=why)
    is_usual = chip == CHIPS[variant.arch]
    known = emulated.modelled(project.root, arm, size) if is_usual and not trace else None
    if known and known.identity == arm.identity:
        return known.time
    label = project.label(variant)
    before = files.digests(project.root, arm.kernel)
    whole = TimeLimit(name="emulation", seconds=session.limits.emulation_s, of=label)
    problem = consult.limit(session.limits.problem_s)
    job = jobs.modelling(project.root, arm, chip, size, problem, whole, trace)
    where = f"variants/{arm.kernel}/problem.py"
    limits = (job.problem_limit, job.emulation_limit)
    answer = isolated.call(WORKER, job, ModellingAnswer, where, limits)
    files.refuse_changes(project.root, arm.kernel, before, f"while {label} was modelled")
    files.note(project.root, arm.kernel, answer.used)
    if is_usual:
        run = msgspec.structs.replace(answer.run, identity=arm.identity)
        emulated.keep_modelled(project.root, arm, size, run)
    return answer.run.time


class KeptModelled(msgspec.Struct, frozen=True, kw_only=True):
    """An arm of a record that was modelled before, at the size that the record timed."""

    name: str
    arm: Arm
    run: ModelledRun


def kept(root: Path, record: Record) -> list[KeptModelled]:
    """The arms of a record that have a modelled time; nothing is executed."""
    size = record.size or FULL
    runs = (
        (name, arm, emulated.modelled(root, arm, size))
        for name, arm in zip(record.names, record.arms, strict=True)
        if is_name(size)  # a record may hold any text
    )
    return [
        KeptModelled(name=name, arm=arm, run=run)
        for name, arm, run in runs
        if run and not run.time.refused
    ]


def kept_run(root: Path, arm: Arm) -> ModelledRun | None:
    """Returns the run of a variant modelled at the size that is timed; nothing is executed."""
    run = emulated.modelled(root, arm, FULL)
    return run if run and not run.time.refused else None
