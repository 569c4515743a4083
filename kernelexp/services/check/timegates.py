"""Gates on time: a variant against the baseline's own code, and the drift of its records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.dossier import atrevision
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.judge.statistics import drift
from kernelexp.judge.statistics.drift import Drift, Timing
from kernelexp.logs import records
from kernelexp.model.arm import Arm, Status
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import FULL, Variant
from kernelexp.model.measurement import Measuring
from kernelexp.model.record import Record, is_of
from kernelexp.project import Project, revisions
from kernelexp.services.check import conditions, gates
from kernelexp.services.check.conditions import SASS, TIMES_AFTER, Committed, GatedVariant
from kernelexp.services.check.gates import FILE, UPDATE, Baseline, GateFinding
from kernelexp.services.revisions import timeline

TIMED = "measured"
DRIFT = "drift"
"""The gates on time, as findings name them."""


def digest(root: Path, arm: Arm) -> str:
    """Returns a digest of the SASS of a build."""
    sass = build.artefacts(root, arm.identity).sass
    return hashlib.sha256(sass.encode()).hexdigest()[: conditions.DIGITS]


def judge(
    project: Project,
    variant: Variant,
    subject: GatedVariant,
    committed: Committed,
    session: Session,
    measuring: Measuring,
    required: bool,
) -> GateFinding:
    """Whether a variant is as fast as the baseline's own code, timed in the same processes."""
    try:
        outcome, sentence = _weigh(
            project, variant, subject.arm, committed, session, measuring, required
        )
    except KernelexpError as error:
        outcome, sentence = "unchecked", f"could not be timed: {error}"
    return conditions.finding(subject, TIMED, outcome, sentence)


def _weigh(
    project: Project,
    variant: Variant,
    arm: Arm,
    committed: Committed,
    session: Session,
    measuring: Measuring,
    required: bool,
) -> tuple[gates.Outcome, str]:
    """The arm against what the commit built that wrote its digest to the baseline."""
    if committed.get(SASS) == digest(project.root, arm):
        return "same", "the same code as the baseline's: there is nothing to time."
    if SASS not in committed:
        return "new", f"the baseline does not have its code; run `{UPDATE}`."
    if arm.refused:
        return "unchecked", f"is not timed: {arm.refused.sentence}"
    gpus = session.executor.gpus().of(arm.arch)
    if not gpus.devices:
        missing: gates.Outcome = "unchecked" if required else "skipped"
        return missing, f"its code has changed, and it is not timed: {gpus.why_none}"
    commit = revisions.last_change(project.root, FILE, str(committed[SASS]))
    if commit is None:
        return "unchecked", f"no commit has its line of {FILE}: commit that file."
    if revisions.is_boundary(project.root, commit):
        return "unchecked", (
            f"which commit wrote its line of {FILE} can't be seen in a shallow clone: run "
            "`git fetch --unshallow`; in GitHub Actions, fetch-depth: 0 is the whole history."
        )
    unexecuted = msgspec.structs.replace(session, emulate=False)
    before = atrevision.examine(project, commit, variant, unexecuted, measuring.size)
    if before.arm is None or before.fault:
        return "unchecked", f"the baseline can't be timed: {before.fault}"
    record = timeline.compare(
        project, variant, [(before.arm, before.launches), (arm, ())], session, measuring=measuring
    )
    verdict = record.candidates[0].verdict
    outcome = _OUTCOMES.get(verdict.status, "unchecked")
    advice = ""
    if outcome == "better":
        advice = f" Lock it in with `{UPDATE}`."
    elif verdict.reason == "baseline_failed":  # it was right when it was committed
        advice = f" If problem.py now states another problem, accept that with `{UPDATE}`."
    return outcome, f"{verdict.sentence} Compared with {commit[:10]}.{advice}"


_OUTCOMES: dict[Status, gates.Outcome] = {
    Status.NEUTRAL: "same",
    Status.IMPROVED: "better",
    Status.REJECTED: "worse",
    Status.INCONCLUSIVE: "undecided",
    Status.INVALID: "undecided",
}


# ---- drift ---------------------------------------------------------------------------------------


class Drifting(msgspec.Struct, frozen=True, kw_only=True):
    """The times of a variant on one GPU."""

    device: str
    drift: Drift
    last: str
    """The latest run."""


def drifts(
    project: Project, variants: Mapping[str, Variant], baseline: Baseline | None
) -> dict[str, list[Drifting]]:
    """Returns the drift of times in the records of each variant, on each GPU with enough of them;
    those after the run up to which the baseline accepts them."""
    measured = _measured(project, {entry.kernel for entry in variants.values()})
    result: dict[str, list[Drifting]] = {}
    for label, variant in variants.items():
        after = _accepted_up_to(baseline, label)
        by_gpu: dict[str, list[tuple[str, Timing]]] = {}
        for record in measured:
            if (record.kernel, record.arch) == (variant.kernel, variant.arch):
                if record.run > after:
                    for uuid, item in _times(record, variant):
                        by_gpu.setdefault(uuid, []).append(item)
        for times in by_gpu.values():
            if how := drift.find([timing for _, timing in times]):
                device, last = times[-1]
                result.setdefault(label, []).append(
                    Drifting(device=device, drift=how, last=last.run)
                )
    return result


def accepted(
    project: Project, variants: Mapping[str, Variant], before: Baseline | None, margin: float
) -> dict[str, str]:
    """Returns, for each variant that drifts or has drifted before, the run up to which that is
    accepted."""
    known = {label: _accepted_up_to(before, label) for label in variants}
    for label, item in drifts(project, variants, before).items():
        ends = [drifting.last for drifting in item if drifting.drift.ratio > 1 + margin]
        known[label] = max([known[label], *ends])
    return {label: run for label, run in known.items() if run}


def judge_drift(subject: GatedVariant, drifting: Drifting, margin: float) -> GateFinding:
    """Worse where the latest times are beyond the margin above the fastest."""
    drifted = drifting.drift.ratio > 1 + margin
    steps = ", ".join(
        f"{100 * (step.ratio - 1):+.1f}% since {step.since.run}"
        + (f" ({step.since.commit[:10]})" if step.since.commit else "")
        for step in drifting.drift.steps
    )
    slower = 100 * (drifting.drift.ratio - 1)
    sentence = (
        f"{slower:.1f}% slower than its fastest of {drifting.drift.records} records "
        f"on {drifting.device}: {steps}. Accept it with `{UPDATE}`."
    )
    outcome: gates.Outcome = "worse" if drifted else "same"
    return conditions.finding(subject, DRIFT, outcome, sentence if drifted else "")


def _accepted_up_to(baseline: Baseline | None, label: str) -> str:
    gate = baseline.variants.get(label) if baseline else None
    run = gate.get(TIMES_AFTER, "") if gate and not isinstance(gate, str) else ""
    return str(run)


def _measured(project: Project, kernels: set[str]) -> Sequence[Record]:
    """The measured records of these kernels' experiments, oldest first."""
    result: dict[str, Record] = {}
    for name, experiment in project.experiments.items():
        if experiment.kernel in kernels:
            every, _ = records.read(project.root, name)
            result |= {record.run: record for record in every if record.measurement}
    return [result[run] for run in sorted(result)]


def _times(record: Record, variant: Variant) -> list[tuple[str, tuple[str, Timing]]]:
    """Returns the GPU's UUID with its name and the variant's time at the full size."""
    if record.measurement is None or record.size != FULL:
        return []
    device = record.measurement.device
    commit = record.git.commit if record.git else ""
    return [
        (
            device.uuid,
            (device.name, Timing(run=record.run, commit=commit, time_us=measured.time_us)),
        )
        for arm in record.arms
        if is_of(variant.axes, arm) and (measured := arm.measured) and measured.time_us is not None
    ][:1]
