"""Records whose sources have changed: what both texts compile to, kept where log looks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelexp.dossier import standing
from kernelexp.dossier.session import Session
from kernelexp.dossier.tree import Tree, arm_changes
from kernelexp.evidence import build
from kernelexp.evidence.code import built as evidence
from kernelexp.evidence.code.built import Footprint
from kernelexp.logs import records, sources
from kernelexp.model.arm import Arm
from kernelexp.model.errors import KernelexpError, UsageError
from kernelexp.model.experiment import SWEEP, Variant
from kernelexp.model.record import Record
from kernelexp.project import Project
from kernelexp.services.run import repeat


class Recompiled(msgspec.Struct, frozen=True, kw_only=True):
    """What the sources of a record compile to, then and now."""

    experiment: str
    run: str
    same: tuple[str, ...] = ()
    """The arms whose machine code is the same, by their names in the record."""
    differing: dict[str, str] = {}
    """Why the others' is not, or is not known, as a sentence."""


def recompile(project: Project, session: Session) -> list[Recompiled]:
    """Compiles, for each record that speaks for a variant and whose sources have changed, the text
    that it was made from and the present one, and keeps the digests of both codes.

    A fault of one record stops no other.
    """
    return [_one(project, record, session) for record in _stale(project)]


def _stale(project: Project) -> list[Record]:
    """The records of experiments and sweeps that something has changed since, each once."""
    tree = Tree(project.root)
    result: dict[str, Record] = {}
    for name in project.experiments:
        for one in standing.of_experiment(project, name, tree).candidates:
            if one.record and one.changed and not one.doubted:
                result[one.record.run] = one.record
    for kernel in project.kernels:
        for record in records.read(project.root, f"{SWEEP}{kernel}")[0]:
            if not record.edited and standing.of_sweep(project, record, tree):
                result[record.run] = record
    return [record for record in result.values() if record.provenance == "run"]


def _one(project: Project, record: Record, session: Session) -> Recompiled:
    same, differing = [], {}
    for name, arm in zip(record.names, record.arms, strict=True):
        try:
            _compile(project, record, arm, session)
        except KernelexpError as error:
            differing[name] = str(error)
        else:
            same.append(name)
    return Recompiled(
        experiment=record.experiment, run=record.run, same=tuple(same), differing=differing
    )


def _compile(project: Project, record: Record, arm: Arm, session: Session) -> None:
    """Keeps what is not known of an arm's code, then and now; UsageError where they differ."""
    tree = Tree(project.root)
    code = tree.code
    variant = project.variant(record.kernel, record.arch, arm.axes)
    bare = Arm(axes=arm.axes, program=arm.program)
    if others := ", ".join(arm_changes(variant, bare, record.host_files, tree)):
        raise UsageError(f"this has changed too: {others}.")
    if code.is_same(variant, arm, record.compiler):
        return
    then = code.then(arm, record.compiler) or _recorded(project.root, record, arm, session)
    now = _build(project.root, variant, session)
    sources.add_compiled(project.root, now, session.tools.version)
    if now.code != then:
        raise UsageError("its sources compile to other machine code now.")


def _recorded(root: Path, record: Record, arm: Arm, session: Session) -> str:
    """The digest of the code that an arm was measured with, from its sources as they were."""
    if arm.build is None:
        raise UsageError("nothing was built of it in that run.")
    if record.compiler != session.tools.version:
        raise UsageError(
            f"it was compiled by nvcc {record.compiler or 'of unknown version'}, and this one is "
            f"{session.tools.version}: name that one with --nvcc."
        )
    past = repeat.sources_of(root, record)
    again = _build(past.root, past.variant(record.kernel, record.arch, arm.axes), session)
    if (again.files, again.flags, again.headers) != (arm.files, arm.flags, arm.headers or {}):
        raise UsageError("its sources can't be had again as they were.")
    if not _is_as_recorded(past.root, again, arm):
        raise UsageError("this nvcc makes other code of its sources than was recorded.")
    sources.add_compiled(root, again, record.compiler)
    return again.code


def _build(root: Path, variant: Variant, session: Session) -> Arm:
    (built,) = build.build(root, [variant], session.tools, timeout_s=session.limits.build_s)
    if isinstance(built, KernelexpError):
        raise built
    if built.refused:
        raise UsageError(f"{variant.source} does not build: {built.refused.sentence}")
    if why := "; ".join(_unlisted(root, variant, built, session)):
        raise UsageError(f"its code depends on more than the files of the project: {why}.")
    cubin = build.artefacts(root, built.identity).cubin
    return msgspec.structs.replace(built, code=build.code_digest(cubin.read_bytes()))


def _unlisted(root: Path, variant: Variant, built: Arm, session: Session) -> Iterator[str]:
    """What the code of a build depends on and a record does not have."""
    (plan,) = build.make_plans(root, [variant], session.tools)
    yield from build.unlisted(plan, built.identity)


def _is_as_recorded(root: Path, again: Arm, arm: Arm) -> bool:
    """Whether a build has the resources, instructions and figures that were recorded."""
    then = arm.build
    assert then
    code = build.artefacts(root, again.identity)
    footprint = Footprint(
        threads=then.resources.threads,
        dynamic_smem_bytes=then.resources.dynamic_smem_bytes,
        cluster=then.resources.cluster,
    )
    used = evidence.read(code.cubin, code.sass, code.ptxas_report, then.entry, footprint)
    return (used, evidence.count_opcodes(code.sass, then.entry)) == (
        then.resources,
        then.opcodes,
    ) and evidence.read_exports(code.cubin) == then.exports
