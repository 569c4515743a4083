"""Variants emulated outside of an experiment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kernelexp.dossier import prepare
from kernelexp.dossier.full_counts import Full, scale_launches, sound
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.emulate import emulated
from kernelexp.evidence.emulate.emulated import EmulationOptions
from kernelexp.judge import verdict
from kernelexp.model import errors
from kernelexp.model.arm import Arm, Status, faults, without_fault
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import Variant
from kernelexp.project import Project
from kernelexp.project.problem import consult
from kernelexp.system.disk import decode


class Emulation(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of emulating one variant."""

    label: str
    arm: Arm
    scaled: tuple[Full, ...] = ()
    """Counters of the full problem by launch, where they were asked for."""
    not_scaled: str = ""
    """Why there are none, where they were asked for."""


def emulate(
    project: Project,
    variants: Sequence[Variant],
    session: Session,
    how: EmulationOptions,
    full: bool,
) -> tuple[list[Emulation], list[KernelexpError]]:
    """Builds and executes each variant; with `full` at two sizes, so that a launch of the full
    problem can be counted. Also the faults of variants that could not be examined."""
    prepare.refuse_programs(variants, "an emulation")
    for kernel in dict.fromkeys(item.kernel for item in variants):
        answer = consult.consult(project.root, kernel, timeout_s=session.limits.problem_s)
        consult.require_size(kernel, answer.sizes, how.size)
    arms = prepare.built(project, variants, session)
    arms = prepare.emulated(project, arms, session, how=how)
    emulations = []
    for arm in without_fault(arms):
        label = project.label(arm)
        if how.schedules is None:
            _note(project.root, arm, how.size)
        if not full:
            emulations.append(Emulation(label=label, arm=arm))
            continue
        judged = arm.emulated if arm.emulated is not arm.counted else None
        # A wrong result does not change what a launch that came to its end executed.
        taken = [
            emulated_evidence
            for emulated_evidence in (judged, arm.counted)
            if emulated_evidence and emulated_evidence.arrays and emulated_evidence.finished
        ]
        scaled = tuple(
            part
            for emulated_evidence in taken
            for part in scale_launches(project, arm, emulated_evidence, how, session)
        )
        scaled = tuple(sound(scaled, taken))
        why = "" if scaled else "the launch did not run to its end, so that its counts are a part"
        emulations.append(Emulation(label=label, arm=arm, scaled=scaled, not_scaled=why))
    return emulations, list({str(fault): fault for fault in faults(arms)}.values())


class LatestEmulation(msgspec.Struct, frozen=True, kw_only=True):
    """One of the latest emulations of a kernel on one architecture."""

    arm: Arm
    size: str


def _note(root: Path, arm: Arm, size: str) -> None:
    if arm.build and arm.emulated is not None:
        bare = msgspec.structs.replace(arm, emulated=None, emulated_sass=None)
        folder, own = root / _LATEST, LatestEmulation(arm=bare, size=size)
        with contextlib.suppress(OSError):  # as for all that is kept: a project may be read-only
            folder.mkdir(exist_ok=True)
        others = (kept for kept in _noted(root, arm.kernel, arm.arch) if kept != own)
        content = msgspec.json.encode([own, *others][:_KEPT])
        build.keep(folder, f"{arm.kernel}@{arm.arch}.json", content)


def _noted(root: Path, kernel: str, arch: str) -> list[LatestEmulation]:
    content = build.kept(root / _LATEST, f"{kernel}@{arch}.json")
    if content is None:
        return []
    is_one = content.startswith(b"{")  # of early versions
    return [decode(content, LatestEmulation)] if is_one else decode(content, list[LatestEmulation])


def latest(root: Path, kernel: str, arch: str) -> Iterator[LatestEmulation]:
    """Yields the latest emulations, of other sources too, the last first, with the evidence that is
    kept of each; without, where its problem.py or the emulator has changed since."""
    for known in _noted(root, kernel, arch):
        evidence = emulated.find(root, known.arm, known.size)
        arm = msgspec.structs.replace(known.arm, emulated=evidence)
        yield msgspec.structs.replace(known, arm=arm)


_LATEST = ".kernelexp/emulated"
_KEPT = 8
"""Emulations of a kernel: a source that was put back as it was has its own."""


def exit_code(arms: Sequence[Arm], faults: Sequence[KernelexpError]) -> int:
    """An instruction that is not covered is missing on this machine, unless PTX was judged and
    only its SASS has it."""
    if faults:
        return faults[0].exit_code
    refused = {arm.refused.status for arm in arms if arm.refused}
    code = verdict.exit_code(refused)
    if Status.IMPOSSIBLE in refused:
        code = code or errors.BUILD
    if any((disagreement := verdict.disagreement(arm)) and disagreement.is_wrong for arm in arms):
        code = code or errors.WRONG_RESULT
    judging = [arm.emulated or arm.emulated_sass for arm in arms]
    uncovered = any(
        emulated_evidence and emulated_evidence.unsupported for emulated_evidence in judging
    )
    return code or (errors.ENVIRONMENT if uncovered else errors.OK)
