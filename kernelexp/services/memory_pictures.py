"""Variants to pictures of their accesses: which lanes touch which banks and sectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence.emulate import emulated
from kernelexp.evidence.emulate.pattern_worker import Patterned
from kernelexp.evidence.emulate.roles import read_texts
from kernelexp.model.arm import Arm, Isa, faults, without_fault
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import Variant
from kernelexp.model.limits import Limits
from kernelexp.project import Project
from kernelexp.project.problem import consult
from warpsim import AccessPattern

ATOMIC = ("ATOM", "RED")
"""How the opcodes of atomics begin, in upper case."""


class PicturedVariant(msgspec.Struct, frozen=True, kw_only=True):
    """The accesses of a variant that cost more than they need, the worst first."""

    variant: str
    isa: Isa = "sass"
    """What was executed."""
    accesses: tuple[AccessPattern, ...] = ()
    others: int = 0
    """How many other loads and stores cost no more than their bytes need; not atomics, which wait
    for each other at an address."""
    unsupported: str = ""


class MemoryPicture(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a drawing."""

    pictured: PicturedVariant
    arm: Arm
    texts: dict[str, dict[int, str]] = {}
    """The lines of the sources, by path from the root and number."""


def look(
    project: Project, variants: Sequence[Variant], session: Session, size: str
) -> tuple[list[MemoryPicture], list[KernelexpError]]:
    """Builds and executes each variant, its SASS where the emulator covers it, else its PTX."""
    prepare.refuse_programs(variants, "a picture of its memory")
    for kernel in dict.fromkeys(variant.kernel for variant in variants):
        answer = consult.consult(project.root, kernel, timeout_s=session.limits.problem_s)
        consult.require_size(kernel, answer.sizes, size)
    arms = prepare.built(project, variants, session)
    pictures = [
        _picture(project, project.label(arm), arm, size, session.limits)
        for arm in without_fault(arms)
    ]
    return pictures, faults(arms)


def _picture(project: Project, label: str, arm: Arm, size: str, limits: Limits) -> MemoryPicture:
    if arm.build is None:
        return MemoryPicture(pictured=PicturedVariant(variant=label), arm=arm)
    isa: Isa = "sass"
    noted = emulated.note_patterns(project.root, arm, isa, size, limits, label)
    if noted.unsupported and not emulated.is_cubin(arm):
        isa = "ptx"
        noted = emulated.note_patterns(project.root, arm, isa, size, limits, label)
    return _of(project.root, label, arm, isa, noted)


def kept(root: Path, label: str, arm: Arm) -> MemoryPicture | None:
    """The picture of an arm whose accesses were noted before; nothing is executed."""
    if arm.build is None or not arm.identity.isalnum():  # a record may hold any text
        return None
    for isa in emulated.BOTH[::-1]:
        noted = emulated.patterns(root, arm, isa)
        if noted and not noted.unsupported:
            return _of(root, label, arm, isa, noted)
    return None


def _of(root: Path, label: str, arm: Arm, isa: Isa, noted: Patterned) -> MemoryPicture:
    dear = [pattern for pattern in noted.patterns if pattern.cost > pattern.ideal]
    pictured = PicturedVariant(
        variant=label,
        isa=isa,
        accesses=tuple(
            sorted(dear, key=lambda access_pattern: access_pattern.ideal - access_pattern.cost)
        ),
        others=sum(
            pattern.cost <= pattern.ideal and not pattern.opcode.upper().startswith(ATOMIC)
            for pattern in noted.patterns
        ),
        unsupported=noted.unsupported,
    )
    files = {pattern.source.own().file for pattern in dear if pattern.source}
    return MemoryPicture(pictured=pictured, arm=arm, texts=read_texts(root, files))
