"""The service of check: variants built, executed and timed as their gates ask, and the findings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp import affected, atrevision, build, inspection, prepare, revisions, runner, timing
from kernelexp.arm import Arm, Status
from kernelexp.errors import KernelexpError
from kernelexp.evidence.emulated import How
from kernelexp.evidence.measured import Measuring
from kernelexp.executor import Executor, Local
from kernelexp.judge import conditions, gates
from kernelexp.judge.conditions import SASS, Subject
from kernelexp.judge.gates import FILE, UPDATE, Baseline, Finding
from kernelexp.limits import Limits
from kernelexp.model import Experiment, Variant
from kernelexp.prepare import Prepared
from kernelexp.progress import OnProgress
from kernelexp.project import Project
from kernelexp.toolchain import Toolchain

TIMED = "measured"
"""The gate on time, as findings name it."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How to check, as the command line says it."""

    tools: Toolchain
    kernels: tuple[str, ...] = ()
    emulate: bool = False
    """Execute every variant, also those whose gates don't ask for it."""
    pedantic: bool = False
    since: str = ""
    """A revision; only variants whose inputs changed since are checked."""
    measured: bool = False
    """Gates on time have to be decided: no GPU is a fault."""
    measuring: Measuring = Measuring()
    limits: Limits = Limits()
    executor: Executor = Local()
    """Where there may be GPUs."""
    on_progress: OnProgress | None = None


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at, and what was found."""

    findings: tuple[Finding, ...]
    variants: int
    """How many were checked."""
    left_out: int = 0
    """How many have not changed since the revision."""
    since: str = ""


class _Looked(msgspec.Struct, frozen=True, kw_only=True):
    """Variants with their evidence, by label."""

    named: dict[str, Variant]
    subjects: dict[str, Subject]
    faults: dict[str, KernelexpError]


def check(project: Project, asked: Asked) -> Checked:
    """Compares variants with the committed baseline and judges their gates."""
    baseline = gates.read_baseline(project.root, asked.kernels)
    every = gates.named_variants(project, asked.kernels)
    named = every
    if asked.since:
        named = affected.since(project, revisions.resolve(project.root, asked.since), every)
        kept = {
            label: gate
            for label, gate in baseline.variants.items()
            if label in named or label not in every
        }
        baseline = msgspec.structs.replace(baseline, variants=kept)
    looked = _look(project, named, asked)
    findings = gates.compare(
        baseline, asked.tools.version, _plain(looked), looked.faults, asked.emulate
    )
    for label, subject in looked.subjects.items():
        committed = baseline.variants.get(label, {})
        known = {} if isinstance(committed, str) else committed
        findings += conditions.judge(subject, known)
        if any(gate.measured for gate in subject.gates) and subject.arm.build:
            findings.append(_timed(project, looked.named[label], subject, known, asked))
    findings += _unused(project, every, asked.kernels)
    return Checked(
        findings=tuple(findings),
        variants=len(named),
        left_out=len(every) - len(named),
        since=asked.since,
    )


def update(project: Project, asked: Asked) -> tuple[Path, int, list[Finding]]:
    """Writes what the variants are now as the baseline: its file, how many there are, and what
    differs from the baseline before. Raises the fault of a variant that could not be examined."""
    looked = _look(project, gates.named_variants(project), asked)
    for error in looked.faults.values():
        raise error
    extras = {label: _extra(project, each) for label, each in looked.subjects.items()}
    arms = _plain(looked)
    changed: list[Finding] = []
    if (project.root / FILE).is_file():
        before = gates.read_baseline(project.root)
        changed = gates.compare(before, asked.tools.version, arms, {}, False)
        changed += _changed_extras(before, extras)
    path = gates.write_baseline(project.root, asked.tools.version, arms, extras)
    return path, len(arms), [each for each in changed if each.outcome not in gates.PASSED]


def _look(project: Project, named: dict[str, Variant], asked: Asked) -> _Looked:
    """Builds all, and executes what is to be executed."""
    variants = list(named.values())
    prepared = prepare.built(project, variants, asked.tools, asked.limits, asked.on_progress)
    rules = {
        label: conditions.gates_of(project.kernels[each.kernel], each)
        for label, each in named.items()
    }
    wanted = [
        each
        for label, each in named.items()
        if asked.emulate or conditions.is_executed(rules[label])
    ]
    prepared = _emulate(project, prepared, wanted, asked)
    subjects = {}
    for label, variant in named.items():
        if prepared.fault(variant) is None:
            arm, own = prepared.arm(variant), rules[label]
            reads = arm.build is not None and any(gate.instructions for gate in own)
            counts = inspection.counts(project.root, arm) if reads else None
            subjects[label] = Subject(label=label, arm=arm, gates=own, counts=counts)
    faults = {label: error for label, each in named.items() if (error := prepared.fault(each))}
    return _Looked(named=named, subjects=subjects, faults=faults)


def _emulate(
    project: Project, prepared: Prepared, wanted: Sequence[Variant], asked: Asked
) -> Prepared:
    """All arms, those that are wanted with what executing them showed."""
    keys = {prepare.key(each) for each in wanted}
    if not keys:
        return prepared
    some = Prepared(
        arms={name: arm for name, arm in prepared.arms.items() if name in keys},
        faults=prepared.faults,
    )
    how = How(pedantic=asked.pedantic)
    some = prepare.emulated(project, some, asked.limits, asked.on_progress, how)
    rest = {name: arm for name, arm in prepared.arms.items() if name not in keys}
    return Prepared(arms={**rest, **some.arms}, faults=some.faults)


def _plain(looked: _Looked) -> dict[str, Arm]:
    """The arms by label; a wrong result is left to the gate that says what is expected of it."""
    return {
        label: msgspec.structs.replace(each.arm, refused=None)
        if each.arm.refused
        and each.arm.refused.status in gates.WRONG
        and conditions.is_executed(each.gates)
        else each.arm
        for label, each in looked.subjects.items()
    }


def _extra(project: Project, subject: Subject) -> dict[str, int | str]:
    """What gates compare with the baseline beside its five figures."""
    extra = conditions.to_commit(subject)
    if subject.arm.build and any(gate.measured for gate in subject.gates):
        extra[SASS] = _digest(project.root, subject.arm)
    return extra


def _changed_extras(
    before: Baseline, extras: Mapping[str, Mapping[str, int | str]]
) -> list[Finding]:
    findings = []
    for label, extra in extras.items():
        gate = before.variants.get(label)
        was = {} if gate is None or isinstance(gate, str) else gate
        for name, value in extra.items():
            if was.get(name) != value:
                words = f"{name} {was.get(name, 'new')} -> {value}"
                findings.append(Finding(variant=label, outcome="mixed", sentence=words, gate=name))
    return findings


def _unused(
    project: Project, named: Mapping[str, Variant], kernels: Sequence[str]
) -> list[Finding]:
    """A gate that is about no variant would be met for ever."""
    findings = []
    for name, kernel in project.kernels.items():
        if kernels and name not in kernels:
            continue
        own = [each for each in named.values() if each.kernel == name]
        for number in conditions.unused(kernel, own):
            sentence = "no variant that an experiment names is meant: correct `of` and `arch`."
            findings.append(
                Finding(variant=name, gate=f"gate {number}", outcome="missed", sentence=sentence)
            )
    return findings


def _digest(root: Path, arm: Arm) -> str:
    sass = build.artefacts(root, arm.identity).sass
    return hashlib.sha256(sass.encode()).hexdigest()[: conditions.DIGITS]


# ---- time ----------------------------------------------------------------------------------------


def _timed(
    project: Project,
    variant: Variant,
    subject: Subject,
    committed: Mapping[str, int | str],
    asked: Asked,
) -> Finding:
    """Whether a variant is as fast as the baseline's own code, timed beside it."""

    def found(outcome: gates.Outcome, sentence: str) -> Finding:
        return Finding(
            variant=subject.label,
            gate=TIMED,
            outcome=outcome,
            sentence=sentence,
            source=subject.arm.source,
        )

    if committed.get(SASS) == _digest(project.root, subject.arm):
        return found("same", "the same code as the baseline's: there is nothing to time.")
    if SASS not in committed:
        return found("new", f"the baseline does not have its code; run `{UPDATE}`.")
    if subject.arm.refused:
        return found("unchecked", f"is not timed: {subject.arm.refused.sentence}")
    missing: gates.Outcome = "unchecked" if asked.measured else "skipped"
    try:
        cards = timing.cards(asked.executor.gpus(), subject.arm.arch)
        if isinstance(cards, str):
            return found(missing, f"its code has changed, and it is not timed: {cards}")
        commit = revisions.last_change(project.root, FILE)
        if commit is None:
            return found(
                "unchecked", f"no commit has {FILE}: commit it, so that its code is known."
            )
        how = atrevision.How(tools=asked.tools, limits=asked.limits, on_progress=asked.on_progress)
        before = atrevision.examine(project, commit, [variant], how)
        (baseline,) = before.arms
        if baseline is None:
            return found("unchecked", f"at {commit[:10]}: {before.why[0]}")
        status, sentence = _judge(project, variant, baseline, subject.arm, asked)
    except KernelexpError as error:
        return found("unchecked", f"could not be timed: {error}")
    sentence = f"{sentence} Compared with {commit[:10]}."
    if status is Status.NEUTRAL:
        return found("same", sentence)
    if status is Status.IMPROVED:
        return found("better", f"{sentence} Lock it in with `{UPDATE}`.")
    return found("worse" if status is Status.REJECTED else "unchecked", sentence)


def _judge(
    project: Project, variant: Variant, baseline: Arm, candidate: Arm, asked: Asked
) -> tuple[Status, str]:
    """The verdict on the code as it is against what the baseline's commit has."""
    if baseline.refused:
        return Status.INVALID, f"the baseline can't be timed: {baseline.refused.sentence}"
    experiment = Experiment(
        kernel=variant.kernel,
        arch=variant.arch,
        title=f"{project.label(variant)}, since the baseline",
        candidate={},
        hypothesis="The time is that of the committed baseline.",
    )
    settings = runner.Settings(
        measuring=asked.measuring, keep=False, limits=asked.limits, executor=asked.executor
    )
    arms = (baseline, candidate)
    made = runner.compare(
        project, "check", experiment, arms, asked.tools, settings, asked.on_progress
    )
    (judged,) = made.candidates
    return judged.verdict.status, judged.verdict.sentence
