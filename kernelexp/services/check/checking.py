"""The service of check: variants built, executed and timed as their gates ask, and the findings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.emulate import emulated
from kernelexp.evidence.emulate.emulated import EmulationOptions
from kernelexp.judge.verdict import WRONG
from kernelexp.model.arm import Arm, Isa
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import Variant
from kernelexp.model.measurement import Measuring
from kernelexp.project import Project, revisions
from kernelexp.services import inspection
from kernelexp.services.check import affected, conditions, gates, timegates
from kernelexp.services.check.conditions import SASS, TIMES_AFTER, GatedVariant
from kernelexp.services.check.gates import FILE, Baseline, GateFinding
from kernelexp.system.live import Step


class CheckRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A check as the command line asks for it; `Session.emulate` executes every variant."""

    kernels: tuple[str, ...] = ()
    """Empty: all of them."""
    pedantic: bool = False
    since: str = ""
    """A revision; only variants whose inputs changed since are checked."""
    measured: bool = False
    """Gates on time have to be decided: no GPU is a fault."""
    measuring: Measuring = Measuring()


class TimeSpent(msgspec.Struct, frozen=True, kw_only=True):
    """The time that the two parts of a check took, in seconds."""

    building: float
    compilers: float
    """Of all cores, in nvcc, ptxas and cuobjdump; 0 where they ran on other machines."""
    executing: float


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The scope and the findings of a check."""

    findings: tuple[GateFinding, ...]
    variants: int
    """How many were checked."""
    left_out: int = 0
    """How many have not changed since the revision."""
    since: str = ""
    spent: TimeSpent


class _Looked(msgspec.Struct, frozen=True, kw_only=True):
    """Variants with their evidence, by label."""

    named: dict[str, Variant]
    subjects: dict[str, GatedVariant]
    faults: dict[str, KernelexpError]
    spent: TimeSpent

    @property
    def timed(self) -> dict[str, Variant]:
        """Those with a gate on their time."""
        own = (label for label, item in self.subjects.items() if conditions.is_timed(item))
        return {label: self.named[label] for label in own}


def check(project: Project, request: CheckRequest, session: Session) -> Checked:
    """Compares variants with the committed baseline and judges their gates."""
    baseline = gates.read_baseline(project.root, request.kernels)
    every = gates.named_variants(project, request.kernels)
    named = every
    if request.since:
        named = affected.since(project, revisions.resolve(project.root, request.since), every)
        kept = {
            label: gate
            for label, gate in baseline.variants.items()
            if label in named or label not in every
        }
        baseline = msgspec.structs.replace(baseline, variants=kept)
    looked = _look(project, named, request, session)
    findings = gates.compare(
        baseline, session.tools.version, _plain(looked), looked.faults, emulated=session.emulate
    )
    for label, subject in looked.subjects.items():
        committed = baseline.variants.get(label, {})
        known = {} if isinstance(committed, str) else committed
        findings += conditions.judge(subject, known)
        if conditions.is_timed(subject):
            variant = looked.named[label]
            findings.append(
                timegates.judge(
                    project,
                    variant,
                    subject,
                    known,
                    session,
                    request.measuring,
                    required=request.measured,
                )
            )
    findings += _drifts(project, looked, baseline, request.measuring.margin)
    findings += _unused(project, every, request.kernels)
    return Checked(
        findings=tuple(findings),
        variants=len(named),
        left_out=len(every) - len(named),
        since=request.since,
        spent=looked.spent,
    )


def _drifts(
    project: Project, looked: _Looked, baseline: Baseline, margin: float
) -> list[GateFinding]:
    return [
        timegates.judge_drift(looked.subjects[label], drifting, margin)
        for label, every in timegates.drifts(project, looked.timed, baseline).items()
        for drifting in every
    ]


def update(
    project: Project, request: CheckRequest, session: Session
) -> tuple[Path, int, list[GateFinding]]:
    """Writes what the variants are now as the baseline: its file, how many there are, and what
    differs from the baseline before. Raises the fault of a variant that could not be examined."""
    looked = _look(project, gates.named_variants(project), request, session)
    for error in looked.faults.values():
        raise error
    arms = _plain(looked)
    changed: list[GateFinding] = []
    before = gates.read_baseline(project.root) if (project.root / FILE).is_file() else None
    extras = _extras(project, looked, before, request.measuring.margin)
    if before:
        changed = gates.compare(before, session.tools.version, arms, {}, emulated=False)
        changed += _changed_extras(before, extras)
    path = gates.write_baseline(project.root, session.tools.version, arms, extras)
    return path, len(arms), [finding for finding in changed if finding.outcome not in gates.PASSED]


def _look(
    project: Project, named: dict[str, Variant], request: CheckRequest, session: Session
) -> _Looked:
    """Builds all, and executes what is to be executed."""
    started, before = time.monotonic(), build.compilers_s()
    built_arms = prepare.built(project, list(named.values()), _preloading(session))
    arms = dict(zip(named, built_arms, strict=True))
    built, compilers = time.monotonic(), build.compilers_s() - before
    rules = {
        label: conditions.gates_of(project.kernels[item.kernel], item)
        for label, item in named.items()
    }
    wanted = {
        label: arm
        for label, arm in arms.items()
        if session.emulate or conditions.needs_execution(rules[label])
    }
    sass = any(map(conditions.needs_sass, rules.values()))
    isas: tuple[Isa, ...] = emulated.BOTH if sass else ("ptx",)
    how = EmulationOptions(pedantic=request.pedantic, isas=isas)
    emulated_arms = prepare.emulated(project, list(wanted.values()), session, how=how)
    arms |= zip(wanted, emulated_arms, strict=True)
    subjects = {}
    for label, arm in arms.items():
        if isinstance(arm, Arm):
            own = rules[label]
            reads = arm.build is not None and any(gate.instructions for gate in own)
            counts = inspection.counts(project.root, arm) if reads else None
            subjects[label] = GatedVariant(label=label, arm=arm, gates=own, counts=counts)
    faults = {label: x for label, x in arms.items() if isinstance(x, KernelexpError)}
    spent = TimeSpent(
        building=built - started, compilers=compilers, executing=time.monotonic() - built
    )
    return _Looked(named=named, subjects=subjects, faults=faults, spent=spent)


def _preloading(session: Session) -> Session:
    """Has the process that executes import what it needs while something is built: two cores would
    wait 3 s for that."""
    tell = session.on_progress
    if not session.emulate or session.executor.slots is not None:
        return session

    def note(step: Step) -> None:
        if not (step.done or step.now):  # before any work
            emulated.preload()
        if tell:
            tell(step)

    return msgspec.structs.replace(session, on_progress=note)


def _plain(looked: _Looked) -> dict[str, Arm]:
    """The arms by label; a wrong result is left to the gate that says what is expected of it."""
    return {
        label: msgspec.structs.replace(variant.arm, refused=None)
        if variant.arm.refused
        and variant.arm.refused.status in WRONG
        and conditions.judges_result(variant.gates)
        else variant.arm
        for label, variant in looked.subjects.items()
    }


def _extras(
    project: Project, looked: _Looked, before: Baseline | None, margin: float
) -> dict[str, dict[str, int | str]]:
    """Returns what gates compare with the baseline besides its five figures, by variant and
    name."""
    extras = {label: conditions.to_commit(variant) for label, variant in looked.subjects.items()}
    accepted = timegates.accepted(project, looked.timed, before, margin)
    for label in looked.timed:
        extras[label][SASS] = timegates.digest(project.root, looked.subjects[label].arm)
        if label in accepted:
            extras[label][TIMES_AFTER] = accepted[label]
    return extras


def _changed_extras(
    before: Baseline, extras: Mapping[str, Mapping[str, int | str]]
) -> list[GateFinding]:
    findings = []
    for label, extra in extras.items():
        gate = before.variants.get(label)
        was = {} if gate is None or isinstance(gate, str) else gate
        for name, value in extra.items():
            if was.get(name) != value:
                words = f"{name} {was.get(name, 'new')} -> {value}"
                findings.append(
                    GateFinding(variant=label, outcome="mixed", sentence=words, gate=name)
                )
    return findings


def _unused(
    project: Project, named: Mapping[str, Variant], kernels: Sequence[str]
) -> list[GateFinding]:
    """A gate that is about no variant would be met for ever."""
    findings = []
    for name, kernel in project.kernels.items():
        if kernels and name not in kernels:
            continue
        own = [variant for variant in named.values() if variant.kernel == name]
        for number in conditions.unused(kernel, own):
            sentence = "no variant that an experiment names is meant: correct `of` and `arch`."
            findings.append(
                GateFinding(
                    variant=name, gate=f"gate {number}", outcome="missed", sentence=sentence
                )
            )
    return findings
