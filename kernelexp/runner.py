"""The way of a run: experiments to variants, builds, evidence, verdicts, records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kernelexp import __version__, arch, build, errors, problem, records, surroundings, verdict
from kernelexp.build import Built, Progress
from kernelexp.errors import ConfigurationError
from kernelexp.evidence import from_build, reproduction
from kernelexp.model import (
    Arm,
    BuildEvidence,
    Candidate,
    Experiment,
    Point,
    Record,
    Status,
    Variant,
    Verdict,
    spell_point,
)
from kernelexp.project import Project
from kernelexp.toolchain import Toolchain


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A variant after its kernel's rules and the compiler have seen it."""

    variant: Variant
    arm: Arm
    refused: Verdict | None = None
    """Why there is nothing to run or to time."""
    compiled: bool = False
    """It was compiled now; otherwise it was found built, or never got that far."""


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
    keep: bool = True,
    on_progress: Progress | None = None,
) -> list[Ran]:
    """Runs the experiments `names`; their variants are built together, each once.

    `overrides` changes the candidates of an experiment, by its id; `keep` writes the records.
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
    judged = judge(project, variants, tools, on_progress)
    git, machine = surroundings.read_git(project.root), surroundings.read_machine()
    ran = []
    for name, (baseline, candidates) in arms.items():
        experiment = project.experiments[name]
        earlier, unreadable = records.read(project.root, name)
        base = judged[key(baseline)]
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
            baseline=base.arm,
            candidates=tuple(
                _decide(experiment, base, judged[key(each)], earlier) for each in candidates
            ),
            tool=__version__,
            compiler=tools.version,
            git=git,
            machine=machine,
            overrides=overrides.get(name, {}),
        )
        path = records.write(project.root, record) if keep else None
        ran.append(
            Ran(record=record, path=path, earlier=tuple(earlier), unreadable=tuple(unreadable))
        )
    return ran


def judge(
    project: Project,
    variants: Sequence[Variant],
    tools: Toolchain,
    on_progress: Progress | None = None,
) -> dict[str, Judged]:
    """Rules, build and build evidence of each variant, by its key; nothing refused is built."""
    judged: dict[str, Judged] = {}
    problems = {name: problem.load(project.root, name) for name in {v.kernel for v in variants}}
    budgets: dict[str, problem.Budget] = {}
    possible: dict[str, Variant] = {}
    for variant in variants:
        reasons, budget = problem.reasons_against(
            project.root, problems[variant.kernel], variant.kernel, variant.axes, variant.arch
        )
        refused = verdict.impossible(arch.find(variant.arch), reasons, budget)
        if refused:
            arm = Arm(axes=variant.axes, source=variant.source, defines=variant.defines)
            judged[key(variant)] = Judged(variant=variant, arm=arm, refused=refused)
        else:
            possible[key(variant)] = variant
            budgets[key(variant)] = budget
    for built in build.build(project.root, list(possible.values()), tools, on_progress):
        name = key(built.variant)
        judged[name] = _examine(built)
        evidence = judged[name].arm.build
        if evidence:
            _hold_against(built.variant, budgets[name], evidence)
    return judged


def key(variant: Variant) -> str:
    """The name of a variant in what judge() returns."""
    return f"{variant.kernel}@{variant.arch}: {spell_point(variant.axes)}"


def _examine(built: Built) -> Judged:
    variant = built.variant
    evidence = from_build.collect(built) if built.ok else None
    arm = Arm(
        axes=variant.axes,
        identity=built.identity,
        source=variant.source,
        defines=variant.defines,
        flags=built.flags,
        files=built.files,
        build=evidence,
        build_log=built.failure,
    )
    refused = (
        verdict.does_not_fit(arch.find(variant.arch), evidence)
        if evidence
        else verdict.build_failed()
    )
    return Judged(variant=variant, arm=arm, refused=refused, compiled=not built.cached)


def _hold_against(variant: Variant, budget: problem.Budget, evidence: BuildEvidence) -> None:
    """What problem.py foretold, by which limits are judged, must be what the source computed."""
    for name in ("threads", "dynamic_smem_bytes", "cluster", "tmem_columns"):
        foretold = getattr(budget, name)
        computed = evidence.exports.get(name, foretold)
        if foretold != computed:
            raise ConfigurationError(
                f"variants/{variant.kernel}/problem.py: budget() says {foretold:,} {name} for "
                f"{spell_point(variant.axes)}, {variant.source} exports {computed:,}."
            )


def _decide(
    experiment: Experiment, baseline: Judged, candidate: Judged, earlier: Sequence[Record]
) -> Candidate:
    decided = candidate.refused
    if decided is None and baseline.refused is not None:
        sentence = f"The baseline can't be run: {baseline.refused.sentence}"
        decided = msgspec.structs.replace(baseline.refused, sentence=sentence)
    if decided is None:
        decided = verdict.unmeasured(arch.find(experiment.arch))
    return Candidate(
        arm=candidate.arm,
        verdict=decided,
        reproduction=reproduction.compare(candidate.arm.axes, decided, earlier),
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
    return _first_code(statuses)


def judged_exit_code(judged: Iterable[Judged]) -> int:
    """What a build ends with."""
    return _first_code({each.refused.status for each in judged if each.refused})


def _first_code(statuses: Set[Status]) -> int:
    return next((code for status, code in _CODES.items() if status in statuses), errors.OK)
