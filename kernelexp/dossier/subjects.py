"""Sides of a comparison, as the command line names them: each an arm with its evidence."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kernelexp.dossier.comparability import Conditions, conditions
from kernelexp.dossier.session import Session
from kernelexp.facts.metrics import Kind
from kernelexp.model.arm import Arm
from kernelexp.model.errors import BuildError, UsageError, join, nearest
from kernelexp.model.record import Profile, Record
from kernelexp.model.text import one_line, quote

if TYPE_CHECKING:  # two files compare without YAML, builds and workers
    from kernelexp.dossier.dossiers import Dossier
    from kernelexp.project import Project

_SUFFIXES = frozenset({".csv", ".json", ".ncu-rep"})
"""What the names of files end in that a side of a comparison can be."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison."""

    label: str
    """Short: a heading holds it."""
    arm: Arm
    conditions: dict[Kind, Conditions]
    """By the kind of evidence that the arm has."""
    about: tuple[str, ...] = ()
    """Where the evidence is from, and what is to be known of it, a few words each."""
    warnings: tuple[str, ...] = ()
    run: str = ""
    """The run that its time is from; empty where it has none."""
    code: str = ""
    """Equal in both sides that have the same SASS; empty where that is not known."""


def is_file(text: str) -> bool:
    """Whether find() reads a file, for which it needs no project."""
    return _file(text)[0] is not None


def is_variant(project: Project, text: str) -> bool:
    """Whether find() builds what `text` names."""
    return not is_file(text) and text.partition(":")[0].partition("@")[0] in project.kernels


def is_profile(root: Path | None, text: str) -> bool:
    """Whether `text` names a profile: its run, its file, or what ncu wrote."""
    from kernelexp.logs import profiles, records

    path, _ = _file(text)
    if path is not None:
        return path.suffix != ".json" or profiles.is_meant(path)
    if root is None or records.matching(root, text):
        return False
    every, unreadable = profiles.read_all(root)
    names = [*(profile.run for profile in every), *(file.path.name for file in unreadable)]
    return any(name.startswith(text) for name in names)


def find(project: Project | None, text: str, session: Session | None = None) -> Subject:
    """The subject that `text` names; UsageError in one sentence where that is none, or several.

    A record (a run's name or its beginning, a file, an experiment for its latest run, with
    `:baseline` or `:2` for an arm), a profile's run or file, a page or report of ncu with `:2` for
    one of several launches, or a variant, of which everything that is known is taken together.
    Variants need `session`.
    """
    path, part = _file(text)
    if path is not None:
        return _of_file(path, part)
    if project is None:
        raise UsageError(f"there is no file {quote(text)}, and no project to look it up in.")
    text = project.id_of(text)
    name, _, part = text.partition(":")
    is_experiment = name in project.experiments
    is_kernel = is_variant(project, text)
    if is_experiment and is_kernel:
        raise UsageError(
            f"{quote(name)} is an experiment and a kernel: write {name}@ARCH for the kernel, or "
            "name a run of the experiment."
        )
    if is_kernel:
        from kernelexp.dossier import dossiers
        from kernelexp.project import parse_variant

        variant = parse_variant(project, text)
        dossier = dossiers.of_variant(project, variant, _required(session, text))
        return of_dossier(dossier, project.root)
    if is_experiment:
        return _of_experiment(project, name, part)
    return _of_run(project, name, part)


def find_both(
    project: Project | None, one: str, other: str, session: Session | None = None
) -> tuple[Subject, Subject]:
    """Both sides of a comparison; the times of two variants are from one run where one timed both.

    Raises what find() raises.
    """
    variants = [text for text in (one, other) if project and is_variant(project, text)]
    if project is None or len(variants) < 2:
        return find(project, one, session), find(project, other, session)
    from kernelexp.dossier import dossiers
    from kernelexp.project import parse_variant

    before, after = (parse_variant(project, text) for text in variants)
    sides = dossiers.of_pair(project, before, after, _required(session, one))
    return of_dossier(sides[0], project.root), of_dossier(sides[1], project.root)


def pair(project: Project | None, text: str) -> tuple[str, str]:
    """The texts of both sides where one is named: the record's baseline, and its candidate."""
    path, part = _file(text)
    name = str(path) if path else text.partition(":")[0]
    part = part or "" if path else text.partition(":")[2]
    is_kernel = project is not None and is_variant(project, text)
    if part == "baseline" or is_kernel or (path and path.suffix != ".json"):
        raise UsageError(
            f"{quote(text)} is one side of a comparison: name the other one too, or a record, "
            "whose baseline is compared with its candidate."
        )
    return f"{name}:baseline", f"{name}:{part or 'candidate'}"


MOST_PAIRS = 4
"""Candidates of a record that are compared without being named; `show` ranks those of a sweep."""


def pairs(project: Project | None, text: str) -> list[tuple[str, str]]:
    """The two sides of a comparison, for each candidate of a record that has a few."""
    one, other = pair(project, text)
    record = _record(project, text) if other.endswith(":candidate") else None
    count = len(record.candidates) if record else 1
    if not 1 < count <= MOST_PAIRS:
        return [(one, other)]
    name = one.removesuffix(":baseline")
    return [(one, f"{name}:{number}") for number in range(1, count + 1)]


def _record(project: Project | None, text: str) -> Record | None:
    """The record that a name alone stands for; None where it is none, or several."""
    from kernelexp.logs import records

    path, _ = _file(text)
    if path:
        return None if is_profile(None, text) else records.read_file(path)
    if project is None:
        return None
    text = project.id_of(text)
    if text in project.experiments:
        count = records.count(project.root, text)
        return records.read_file(records.find(project.root, text)) if count else None
    runs = records.matching(project.root, text)
    return records.read_file(runs[0]) if len(runs) == 1 else None


def _file(text: str) -> tuple[Path | None, str]:
    """The file that `text` names, and which part of it."""
    if os.path.isfile(text):  # Path.is_file() raises where a name is too long
        return Path(text), ""
    name, _, part = text.rpartition(":")
    return (Path(name), part) if os.path.isfile(name) else (None, "")


def _why_no_file(text: str) -> str:
    """Says why a path names no file to read."""
    if os.path.isdir(text):
        return "is a folder, where a file is wanted"
    if os.path.exists(text):
        return "is not a regular file: save what it gives to one"
    return "does not exist"


def _of_file(path: Path, part: str) -> Subject:
    if path.suffix != ".json":
        return _of_page(path, part)
    from kernelexp.logs import profiles, records

    profile = profiles.read_file(path)
    if isinstance(profile, Profile):
        return _of_profile(profile, part)
    if profiles.is_meant(path):
        raise UsageError(f"{path} {profile.why}.")
    return _of_record(records.read_file(path), part, None)


# ---- records -------------------------------------------------------------------------------------


def _of_experiment(project: Project, name: str, part: str) -> Subject:
    from kernelexp.logs import records

    if not records.count(project.root, name):
        raise UsageError(f"there is no record of {name} yet: kernelexp run {name} makes one.")
    return _of_record(records.read_file(records.find(project.root, name)), part, project.root)


def _of_run(project: Project, name: str, part: str) -> Subject:
    """A record or a profile whose run's name begins with `name`."""
    from kernelexp.logs import profiles, records

    runs = records.matching(project.root, name) if name else []
    every, unreadable = profiles.read_all(project.root)
    taken = [profile for profile in every if name and profile.run.startswith(name)]
    result = sorted(
        {*(path.name.split(".")[0] for path in runs), *(profile.run for profile in taken)}
    )
    if len(result) > 1:
        shown = join(result[:3]) + (", ..." if len(result) > 3 else "")
        raise UsageError(
            f"{quote(name)} is ambiguous: {len(result)} runs begin with it ({shown}); type more "
            "of it."
        )
    if not result:
        if damaged := next((x for x in unreadable if name and x.path.name.startswith(name)), None):
            raise UsageError(f"{damaged.path.relative_to(project.root)} {damaged.why}.")
        if "/" in name or Path(name).suffix in _SUFFIXES:
            raise UsageError(f"{quote(name)} {_why_no_file(name)}.")
        close = nearest(name, [*project.kernels, *project.experiments])
        hint = f"did you mean {close!r}? kernelexp" if close else "kernelexp"
        raise UsageError(
            f"{quote(name)} is not a file, an experiment, a kernel, or the beginning of a run's "
            f"name; {hint} show lists those that there are."
        )
    if taken:
        return _of_profile(taken[0], part)
    return _of_record(records.read_file(runs[0]), part, project.root)


def _of_record(record: Record, part: str, root: Path | None) -> Subject:
    index = _choose(record, part)
    arm, name = record.arms[index], record.names[index]
    about = [record.run if record.provenance == "run" else f"published, {record.source}"]
    profile = _profile_of_build(root, arm) or _published(root, record, index) if root else None
    if profile:
        arm = msgspec.structs.replace(arm, profiled=profile.arm.profiled)
        about.append(_spell(profile))
    return Subject(
        label=f"{record.experiment} {name}",
        arm=arm,
        conditions=conditions(arm, record, profile),
        about=tuple(about),
        run=record.run if arm.measured else "",
        code=_code(record, index),
    )


def _choose(record: Record, part: str) -> int:
    """The arm that is named; without a name the candidate, if there is one."""
    names = ["baseline", *(str(number) for number in range(1, len(record.arms)))]
    if len(names) == 2 and part in ("", "candidate"):
        return 1
    if part in names:
        return names.index(part)
    shown = names if len(names) <= 2 + MOST_PAIRS else [*names[:2], "...", names[-1]]
    known = join(item if item == "..." else f"{record.experiment}:{item}" for item in shown)
    if part in ("", "candidate"):
        raise UsageError(
            f"the record {record.run} has {len(names) - 1} candidates: name an arm ({known})."
        )
    raise UsageError(f"the record {record.run} has no arm {quote(part)}: it has {known}.")


# ---- profiles ------------------------------------------------------------------------------------


def _of_page(path: Path, part: str) -> Subject:
    """One launch of a CSV page that ncu printed, or of its report."""
    from kernelexp.evidence.profile import imports
    from kernelexp.evidence.profile.merging import bare

    page = imports.read_file(path)
    evidence = page.launches[_choose_launch(path, len(page.launches), part)].evidence
    arm = Arm(profiled=evidence)
    result = conditions(arm)
    about = (one_line(bare(evidence.entry)), result["profiled"]["GPU"])
    return Subject(
        label=f"{path.name}:{part}" if part else path.name,
        arm=arm,
        conditions=result,
        about=tuple(filter(None, about)),
        warnings=tuple(item.removesuffix(".") for item in page.lost),
    )


def _choose_launch(path: Path, count: int, part: str) -> int:
    """The place of the launch that is named; they are numbered from 1."""
    if not part and count == 1:
        return 0
    if part.isdecimal() and 1 <= int(part) <= count:
        return int(part) - 1
    which = f"{path.name}:1 to {path.name}:{count}" if count > 1 else path.name
    if part:
        raise UsageError(f"{path.name} has no launch {quote(part)}: it has {which}.")
    raise UsageError(f"{path.name} has {count} launches: name one, {which}.")


def _of_profile(profile: Profile, part: str) -> Subject:
    if part:
        raise UsageError(f"the profile {profile.run} has one arm: leave {quote(part)} out.")
    return Subject(
        label=f"profile {profile.run}",
        arm=profile.arm,
        conditions=conditions(profile.arm, None, profile),
        about=(_spell(profile),),
    )


def _spell(profile: Profile) -> str:
    """Returns the origin of the counters: profiled here, imported or published."""
    taken = {"run": "profiled", "imported": "imported", "published": "published"}
    source = f" from {profile.short_source}" if profile.source else ""
    return one_line(f"{taken[profile.provenance]} in {profile.run}{source}")


def _profile_of_build(root: Path, arm: Arm) -> Profile | None:
    """The latest profile of exactly this build."""
    from kernelexp.logs import profiles

    of_variant = profiles.of_variant(root, arm.kernel, arm.arch, arm.axes)
    same = (
        profile
        for profile in of_variant
        if profile.arm.identity and profile.arm.identity == arm.identity
    )
    return next(same, None)


def _code(record: Record, index: int) -> str:
    """Returns an identifier of an arm's code: one for the baseline and candidates with its SASS."""
    if record.provenance != "run":
        return ""
    same = index == 0 or record.candidates[index - 1].same_code
    return f"{record.experiment} {record.run} {0 if same else index}"


def _published(root: Path, record: Record, index: int) -> Profile | None:
    """Returns the profile published with a step of the history, which is of its candidate."""
    from kernelexp.logs import profiles

    if record.provenance != "published" or index != 1:
        return None
    every, _ = profiles.read_all(root)
    own = (item for item in every if item.provenance == "published")
    return next((item for item in own if item.step == record.experiment), None)


# ---- variants ------------------------------------------------------------------------------------


def _required(session: Session | None, text: str) -> Session:
    if session is None:
        raise UsageError(f"{quote(text)} is a variant: name a record or a file instead.")
    return session


def _digest(arm: Arm, root: Path) -> str:
    from kernelexp.evidence import build

    if arm.build is None:
        return ""
    return hashlib.sha256(build.artefacts(root, arm.identity).sass.encode()).hexdigest()


def of_dossier(dossier: Dossier, root: Path) -> Subject:
    """The variant as it is now, with the times that speak for it and the latest profile.

    BuildError where it does not build.
    """
    arm, record, profile = dossier.arm, dossier.record, dossier.profile
    if not arm.is_built:
        reason = arm.refused.sentence if arm.refused else "it does not build."
        raise BuildError(f"{dossier.label}: {reason}")
    about, warnings = [f"built with nvcc {dossier.compiler}"], []
    if arm.emulated is None and not arm.program:
        about.append("not emulated (--emulate does it)")
    if dossier.run:
        about.append(f"measured in {dossier.run}")
        if dossier.changed:
            changed = join(dossier.changed)
            warnings.append(f"measured in {dossier.run}, before this changed: {changed}")
    if profile:
        about.append(_spell(profile))
        if dossier.profile_changed:
            changed = join(dossier.profile_changed)
            warnings.append(f"{_spell(profile)}, before this changed: {changed}")
    result = conditions(arm, record if dossier.run else None, profile)
    result["built"] = {"compiler": dossier.compiler}
    return Subject(
        label=dossier.label,
        arm=arm,
        conditions=result,
        about=tuple(about),
        warnings=tuple(warnings),
        run=dossier.run,
        code=_digest(arm, root),
    )
