"""Recorded runs emulated again, as this version counts; times and verdicts stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from kernelexp import __version__
from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence.emulate import emulated
from kernelexp.logs import documents, records
from kernelexp.logs.documents import Recount, RecountedArm
from kernelexp.model.arm import Arm
from kernelexp.model.errors import KernelexpError, UsageError
from kernelexp.model.record import Record
from kernelexp.project import Project
from kernelexp.project.problem import files
from kernelexp.services.run import repeat
from kernelexp.system.toolchain import Toolchain


class Recounted(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one run."""

    experiment: str
    run: str
    recount: Recount | None = None
    path: str = ""
    """Of its file, from the root."""
    is_new: bool = False
    """False where an earlier recount was by this very emulator."""
    left_out: dict[str, str] = {}
    """Why arms could not be emulated, by their names."""
    why: str = ""
    """Why nothing was recounted, as a sentence."""
    exit_code: int = 0


def find(project: Project, names: Sequence[str]) -> list[Record]:
    """The records of experiments and runs by their names, published ones left out.

    UsageError for a name that is of neither.
    """
    result: dict[str, Record] = {}
    for name in names:
        if name in project.experiments or records.count(project.root, name):
            read, _ = records.read(project.root, name)
        else:
            read = [records.read_file(records.find(project.root, name))]
        result |= {record.run: record for record in read if record.provenance == "run"}
    return list(result.values())


def recount(
    project: Project,
    wanted: Sequence[Record],
    session: Session,
) -> list[Recounted]:
    """Emulates the arms of each record and writes what they show; a fault of one stops no other."""
    return [_one(project, record, session) for record in wanted]


def _one(
    project: Project,
    record: Record,
    session: Session,
) -> Recounted:
    recounted = Recounted(experiment=record.experiment, run=record.run)
    try:
        past = repeat.project_now(project.root, record)
        host_files = files.digests(past.root, record.kernel)
        earlier = documents.latest_recount(str(project.root), record.run)
        if isinstance(earlier, Recount) and _is_current(earlier, host_files):
            return msgspec.structs.replace(recounted, recount=earlier)
        arms, left_out = _emulate(past, record, session)
    except KernelexpError as error:
        return msgspec.structs.replace(recounted, why=str(error), exit_code=error.exit_code)
    result = Recount(
        version=documents.RECOUNT_VERSION,
        run=record.run,
        experiment=record.experiment,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tool=__version__,
        compiler=session.tools.version,
        host_files=host_files,
        arms=arms,
    )
    path = documents.write_recount(project.root, result)
    return msgspec.structs.replace(
        recounted,
        recount=result,
        path=str(path.relative_to(project.root)),
        is_new=True,
        left_out=left_out,
    )


def _is_current(earlier: Recount, host_files: dict[str, str]) -> bool:
    """Whether this emulator would find the same again."""
    taken = [
        evidence for arm in earlier.arms.values() for evidence in (arm.emulated, arm.emulated_sass)
    ]
    by = {evidence.emulator if evidence else "" for evidence in taken}
    return earlier.host_files == host_files and by == {emulated.version()}


def _emulate(
    past: Project,
    record: Record,
    session: Session,
) -> tuple[dict[str, RecountedArm], dict[str, str]]:
    """The arms that were emulated, and why others were not, by their names; UsageError where none
    was."""
    experiment = past.experiment(record.experiment)
    baseline, candidates = past.variants(experiment)
    variants = dict(zip(record.names, (baseline, *candidates), strict=True))
    prepare.refuse_programs(variants.values(), "an emulation")
    built = prepare.built(past, list(variants.values()), session)
    left_out: dict[str, str] = {}
    same: dict[str, Arm] = {}
    for name, then, arm in zip(variants, record.arms, built, strict=True):
        if isinstance(arm, KernelexpError):
            left_out[name] = str(arm)
        elif why := _differs(then, arm, record, session.tools):
            left_out[name] = why
        else:
            same[name] = arm
    taken = dict(zip(same, prepare.emulated(past, list(same.values()), session), strict=True))
    left_out |= {name: str(x) for name, x in taken.items() if isinstance(x, KernelexpError)}
    arms = {
        name: RecountedArm(
            identity=then.identity, emulated=now.emulated, emulated_sass=now.emulated_sass
        )
        for name, then in zip(record.names, record.arms, strict=True)
        if isinstance(now := taken.get(name), Arm) and now.emulated
    }
    if not arms:
        raise UsageError(" ".join(dict.fromkeys(left_out.values())) or "no arm was built.")
    return arms, left_out


def _differs(then: Arm, now: Arm, record: Record, tools: Toolchain) -> str:
    """Says why the build is not of the code that was recorded, as a sentence; empty where it is."""
    if then.build is None:
        return "it was not built in that run."
    if now.build is None or now.refused:
        return now.refused.sentence if now.refused else "it does not build."
    if then.identity == now.identity:
        return ""
    # How an identity is made has changed since early versions.
    alike = then.files == now.files and then.flags == now.flags
    alike = alike and then.build.resources == now.build.resources
    if alike and then.build.opcodes == now.build.opcodes:
        return ""
    return (
        f"nvcc {tools.version} makes other code of it than nvcc {record.compiler or 'of that run'} "
        "made."
    )


def exit_code(results: Sequence[Recounted]) -> int:
    """Returns the exit code of the first run that could not be recounted."""
    return next((recounted.exit_code for recounted in results if recounted.exit_code), 0)
