"""Variants to profiles: taken with ncu on this machine, or imported from files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from kernelexp import __version__
from kernelexp.dossier import prepare, speaking
from kernelexp.dossier.session import Session
from kernelexp.evidence.profile import take
from kernelexp.evidence.profile.imports import ImportedLaunch
from kernelexp.evidence.profile.merging import bare
from kernelexp.evidence.profile.ncu import Ncu
from kernelexp.evidence.profile.take import ProfileSettings
from kernelexp.judge import consistency, verdict
from kernelexp.logs import profiles, records, sources
from kernelexp.model import arm, errors
from kernelexp.model.arm import Arm, BuildEvidence, ProfiledEvidence, Verdict, sound
from kernelexp.model.errors import KernelexpError, UsageError
from kernelexp.model.experiment import Variant
from kernelexp.model.record import Profile
from kernelexp.model.text import quote
from kernelexp.project import Project
from kernelexp.system import device
from kernelexp.system.live import Step

_SOURCES = frozenset({".cu", ".cuh", ".h", ".hpp", ".py"})


class Profiling(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for one variant: a profile, or why there is none."""

    label: str
    profile: Profile | None = None
    path: str = ""
    """The profile's file, from the project's root."""
    refused: Verdict | None = None
    fault: str = ""
    exit_code: int = errors.OK
    lost: tuple[str, ...] = ()
    """What of the profile was not to be had, or is doubtful, a sentence each."""


def profile(
    project: Project,
    variants: Sequence[Variant],
    session: Session,
    ncu: Ncu,
    settings: ProfileSettings,
) -> list[Profiling]:
    """Builds each variant, profiles one launch of it and writes the profile.

    A variant that can't be profiled keeps no other from it; a machine that can't profile at all
    raises EnvironmentFault before anything is built.
    """
    prepare.refuse_programs(variants, "a profile")
    take.find_gpu(settings.device)
    distinct = list({prepare.key(item): item for item in variants}.values())
    arms = prepare.built(
        project, distinct, session, [(item.kernel, settings.size) for item in distinct]
    )
    done = []
    for number, (variant, examined) in enumerate(zip(distinct, arms, strict=True)):
        label = project.label(variant)
        if session.on_progress:
            step = Step(phase="profiling", done=number, total=len(distinct), now=label)
            session.on_progress(step)
        try:
            built = sound(examined)
            if built.refused:
                done.append(_refused(label, built.refused))
                continue
            taken = take.take(project.root, built, settings, session.limits, ncu)
        except KernelexpError as error:
            done.append(Profiling(label=label, fault=str(error), exit_code=error.exit_code))
            continue
        evidence = msgspec.structs.replace(built, profiled=taken.evidence)
        kept = _profile(evidence, "run", compiler=session.tools.version, git=project.root)
        done.append(_written(project, label, kept, taken.lost))
    return done


def _refused(label: str, refused: Verdict) -> Profiling:
    return Profiling(label=label, refused=refused, exit_code=verdict.exit_code({refused.status}))


def build_of(project: Project, variant: Variant, session: Session) -> BuildEvidence | None:
    """The variant's build, made now or recorded; None where neither is to be had."""
    try:
        return prepare.arm_of(project, variant, session).build
    except KernelexpError:
        return recorded_build(project, variant)


def recorded_build(project: Project, variant: Variant) -> BuildEvidence | None:
    """Returns the build in the record that speaks for the variant; None without one."""
    recorded = speaking.of_variant(project, variant)
    return recorded.arm.build if recorded else None


def keep(
    project: Project,
    variant: Variant,
    imported: ImportedLaunch,
    build: BuildEvidence | None = None,
) -> Profiling:
    """Writes an imported launch as a profile of a variant; UsageError for another architecture.

    What the launch has other than the variant's build is said.
    """
    evidence = imported.evidence
    label = project.label(variant)
    if evidence.capability and not _is_of(evidence.capability, variant.arch):
        raise UsageError(
            f"this launch ran on compute capability {evidence.capability}, and {label} is built "
            f"for {variant.arch}: name a variant for that architecture with --variant."
        )
    named = msgspec.structs.replace(arm.begin(variant), profiled=evidence)
    kept = _profile(named, "imported", source=imported.source)
    return _written(
        project,
        label,
        kept,
        (
            *imported.lost,
            *_other_name(project.root, variant, evidence.entry),
            *_other_build(label, build, evidence),
        ),
    )


def _other_build(
    label: str, build: BuildEvidence | None, evidence: ProfiledEvidence
) -> Iterator[str]:
    doubt = consistency.other_build(build, evidence) if build else ""
    if doubt:
        yield (
            f"The launch has {doubt}: is it of another variant than {label}, or of other sources "
            "or another compiler?"
        )


def _other_name(root: Path, variant: Variant, entry: str) -> Iterator[str]:
    """A sentence where the launch is of a kernel with a name that the sources do not have.

    They are searched as text, as only problem.py knows which kernel it launches; a name that is
    mangled, or made by a macro, may be the variant's after all.
    """
    words = re.findall(r"\w+", bare(entry).partition("<")[0])
    if not words or words[-1].startswith("_Z"):
        return
    folder = (root / variant.source).parent
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in _SOURCES]
    texts = (path.read_text(errors="replace") for path in files if path.is_file())
    name = re.compile(rf"\b{re.escape(words[-1])}\b")
    if not any(name.search(text) for text in texts):
        yield (
            f"The launch is of a kernel {quote(words[-1])}, a name that no source of "
            f"{variant.kernel} has: is it of this variant?"
        )


def _is_of(capability: str, target: str) -> bool:
    """Whether a cubin for a target such as sm_90a runs on a compute capability such as 9.0."""
    digits = target.removeprefix("sm_").rstrip("af")
    major, minor = digits[:-1], digits[-1:]
    on, _, point = capability.partition(".")
    return on == major and (point == minor if target[-1:] == "a" else point >= minor)


def _profile(
    evidence: Arm,
    provenance: Literal["run", "imported"],
    *,
    source: str = "",
    compiler: str = "",
    git: Path | None = None,
) -> Profile:
    return Profile(
        version=profiles.VERSION,
        run=records.new_run_name(),
        provenance=provenance,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        arm=evidence,
        source=source,
        tool=__version__,
        compiler=compiler,
        git=sources.read_git(git) if git else None,
        machine=device.read_machine() if provenance == "run" else None,
    )


def _written(project: Project, label: str, kept: Profile, lost: tuple[str, ...]) -> Profiling:
    path = profiles.write(project.root, kept)
    return Profiling(label=label, profile=kept, path=str(path.relative_to(project.root)), lost=lost)


def exit_code(done: Sequence[Profiling]) -> int:
    """Returns the exit code of the first variant without a profile."""
    return next((profiling.exit_code for profiling in done if profiling.exit_code), errors.OK)
