"""Variants held against their kernel's rules, the compiler and the emulator: what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp import arch, build, problem
from kernelexp.build import Built, Progress
from kernelexp.errors import ConfigurationError
from kernelexp.evidence import built as build_evidence
from kernelexp.evidence import emulated
from kernelexp.evidence.emulated import Emulable
from kernelexp.judge import verdict
from kernelexp.model import Arm, BuildEvidence, Variant, Verdict, spell_point
from kernelexp.project import Project
from kernelexp.toolchain import Toolchain


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A variant after its kernel's rules and the compiler have seen it."""

    variant: Variant
    arm: Arm
    refused: Verdict | None = None
    """Why there is nothing to run or to time."""
    cubin: Path | None = None
    ptx: Path | None = None
    compiled: bool = False
    """It was compiled now; otherwise it was found built, or never got that far."""


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
    evidence = build_evidence.collect(built) if built.ok else None
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
    return Judged(
        variant=variant,
        arm=arm,
        refused=refused,
        cubin=built.cubin if built.ok else None,
        ptx=built.ptx if built.ok else None,
        compiled=not built.cached,
    )


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


def emulate(
    project: Project, judged: Mapping[str, Judged], on_progress: Progress | None = None
) -> dict[str, Judged]:
    """The same variants with what emulating them showed, and refused for it where it must be."""
    sides = {
        name: Emulable(variant=each.variant, ptx=each.ptx, exports=each.arm.build.exports)
        for name, each in judged.items()
        if each.refused is None and each.ptx and each.arm.build
    }
    found = emulated.take(project.root, list(sides.values()), on_progress=on_progress)
    emulations = dict(zip(sides, found, strict=True))
    return {
        name: msgspec.structs.replace(
            each,
            arm=msgspec.structs.replace(each.arm, emulated=emulations[name]),
            refused=verdict.emulated(emulations[name]),
        )
        if name in emulations
        else each
        for name, each in judged.items()
    }
