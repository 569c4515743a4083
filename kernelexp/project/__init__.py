"""A project: its kernels and experiments, loaded from YAML; a mistake is a sentence with its place.

    experiments.yaml             version, kernels, experiments and history
    experiments/<id>.yaml        one more experiment, at the top of its own file
    history/<number>-<id>.yaml   one more step of the history
    variants/<kernel>/           problem.py and sources of a kernel
    logs/decisions/              what is accepted: the baseline of experiments that name none

Experiments with files of their own follow those of experiments.yaml, F2 before F10; steps follow
each other by number, then by name. So branches that add experiments or steps merge without a
conflict. Files of other kinds are ignored.

Imports logs, system, facts and model.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from kernelexp.model.errors import ConfigurationError, UsageError, explain, nearest, suggest
from kernelexp.model.experiment import (
    Experiment,
    Kernel,
    Placed,
    Point,
    Program,
    Target,
    Variant,
    fill,
    placeholders,
    spell,
    spell_point,
)
from kernelexp.model.text import quote, shorten, spelled
from kernelexp.project import shape
from kernelexp.project.faults import Fault
from kernelexp.project.kernels import check_point
from kernelexp.project.shape import ProjectEntry, Section, section_of
from kernelexp.project.yamlfile import MAX_VALUES, Document
from kernelexp.system import disk

PROJECT_FILE = "experiments.yaml"
MAX_BYTES = 4 << 20
_STEP = re.compile(r"([0-9]+)-(.+)", re.DOTALL)
MAX_FAULTS = 1000
"""Where looking for more ends."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A folder with experiments.yaml, loaded and found right."""

    root: Path
    kernels: dict[str, Kernel]
    experiments: dict[str, Experiment]
    """All by id, the steps of the history too."""
    history: tuple[str, ...]
    """The ids of the committed steps, in order."""
    places: dict[str, str]
    """File and line of each experiment and step: experiments.yaml:16, experiments/F3.yaml:1."""

    def place(self, name: str) -> str:
        """Returns where the experiment or step `name` is defined; UsageError as of `experiment`."""
        self.experiment(name)
        return self.places[name]

    def experiment(self, name: str) -> Experiment:
        """The experiment or step `name`; UsageError with the nearest name if there is none."""
        if name not in self.experiments and name in self.kernels:
            raise UsageError(
                f"{name} is a kernel, not an experiment: kernelexp emulate {name} executes it, "
                f"kernelexp new --kernel {name} adds an experiment on it."
            )
        if name not in self.experiments:
            close = nearest(name, [*self.experiments, *self.kernels])
            hint = f"did you mean {close!r}? kernelexp" if close else "kernelexp"
            raise UsageError(
                f"there is no experiment {quote(name)}; {hint} show lists those that there are."
            )
        return self.experiments[name]

    def id_of(self, word: str) -> str:
        """`word` with the id that it begins with, as in f3 or t3:1, in that id's own case; as it is
        where no experiment or several are meant."""
        name, colon, part = word.partition(":")
        if name in self.experiments:
            return word
        alike = [item for item in self.experiments if item.casefold() == name.casefold()]
        return f"{alike[0]}{colon}{part}" if len(alike) == 1 else word

    def kernel(self, name: str) -> Kernel:
        """The kernel `name`; UsageError with the nearest name if there is none."""
        if name not in self.kernels and re.fullmatch(r"\w+=\S+", name):
            only = next(iter(self.kernels)) if len(self.kernels) == 1 else "KERNEL"
            raise UsageError(
                f"{quote(name)} is not a kernel: the axes of a variant follow its kernel after a "
                f"colon, as in {only}:{name}."
            )
        if name not in self.kernels:
            raise UsageError(f"there is no kernel {quote(name)}{suggest(name, self.kernels)}.")
        return self.kernels[name]

    def variant(self, kernel: str, arch: str | None, *points: Point) -> Variant:
        """The variant at the defaults, changed by each of `points` in turn.

        Without `arch` the kernel's only architecture. UsageError names what does not exist.
        """
        targets = self.kernel(kernel).targets
        if arch is None and len(targets) > 1:
            raise UsageError(
                f"kernel {kernel} has several architectures: say which, as in "
                f"{kernel}@{next(iter(targets))}."
            )
        arch = arch or next(iter(targets))
        if arch not in targets:
            raise UsageError(
                f"kernel {kernel} has no {shorten(spelled(arch))}{suggest(arch, targets)}."
            )
        target = targets[arch]
        axes = {name: axis.default for name, axis in target.axes.items()}
        for point in points:
            for _, complaint in check_point(point, target.axes):
                raise UsageError(complaint)
            axes.update(point)
        return Variant(
            kernel=kernel,
            arch=arch,
            source=f"variants/{kernel}/{fill(target.source, axes)}",
            sources=target.source if placeholders(target.source) else "",
            axes=axes,
            flags=tuple(target.flags),
            config=f"variants/{kernel}/{target.config}" if target.config else "",
            program=_settled(self.kernels[kernel].program),
        )

    def variants(self, experiment: Experiment) -> tuple[Variant, tuple[Variant, ...]]:
        """Baseline and candidates of an experiment."""
        baseline = self.variant(experiment.kernel, experiment.arch, experiment.baseline)
        candidates = tuple(
            self.variant(experiment.kernel, experiment.arch, experiment.baseline, point)
            for point in experiment.candidates
        )
        return baseline, candidates

    def label(self, variant: Placed) -> str:
        """The variant by what it departs from the defaults in."""
        axes = self.kernels[variant.kernel].targets[variant.arch].axes
        departs = {k: v for k, v in variant.axes.items() if v != axes[k].default}
        return f"{variant.kernel}@{variant.arch}: {spell_point(departs)}"


def _settled(program: Program | None) -> Program | None:
    """Names the figure that judges: records do not keep the order of figures."""
    return msgspec.structs.replace(program, judge=program.judged) if program else None


class ExperimentFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that defines one experiment."""

    file: str
    """Path from the project's root."""
    section: Section
    id: str


def find(start: Path) -> Path:
    """The experiments.yaml of `start` (the file, its folder, or a folder below it).

    Whatever has this name is returned, be it a regular file or not. UsageError if nothing has.
    """
    try:
        mode = os.stat(start).st_mode
        folder = Path(os.path.realpath(start))
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"there is no file or folder {str(start)!r}.") from None
    except (OSError, ValueError) as error:
        reason = explain(error) if isinstance(error, OSError) else f"{str(start)!r}: {error}"
        raise UsageError(f"{reason}.") from None
    if not stat.S_ISDIR(mode):
        return folder
    for parent in (folder, *folder.parents):
        if os.path.lexists(parent / PROJECT_FILE):
            return parent / PROJECT_FILE
    raise UsageError(
        f"no {PROJECT_FILE} in {str(folder)!r} nor above it: run kernelexp in a project, "
        "name one with --project, or start one with kernelexp init (--empty: without an example)."
    )


def files_of(root: Path) -> tuple[list[ExperimentFile], list[Fault]]:
    """The files of experiments/ and history/, each folder in its order; names that do not fit."""
    experiments, faults = _list(root, "experiments")
    steps, more = _list(root, "history")
    experiments.sort(key=lambda item: (_natural(item.id), item.id))
    steps.sort(key=lambda item: (_number(item.file), item.file))
    return [*experiments, *steps], [*faults, *more]


def _list(root: Path, section: Section) -> tuple[list[ExperimentFile], list[Fault]]:
    listed: list[ExperimentFile] = []
    faults: list[Fault] = []
    try:
        names = sorted(os.listdir(root / section))
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        return [], [_fault(section, f"this folder can't be read: {error.strerror}.")]
    for name in names:
        stem, suffix = os.path.splitext(name)
        file = f"{section}/{name}"
        step = _STEP.fullmatch(stem)
        if name.startswith(".") or suffix not in (".yaml", ".yml"):
            continue  # an editor's or the system's own file, a README
        if suffix == ".yml":
            faults.append(_fault(file, "a project's files end in .yaml; rename this one."))
        elif section == "experiments":
            listed.append(ExperimentFile(file=file, section=section, id=stem))
        elif step:
            listed.append(ExperimentFile(file=file, section=section, id=step[2]))
        else:
            message = "the file of a step is named NUMBER-ID.yaml, as in 12-6319928.yaml."
            faults.append(_fault(file, message))
    return listed, faults


def _number(file: str) -> int:
    match = _STEP.fullmatch(file.partition("/")[2])
    return int(match[1]) if match else 0


def _natural(name: str) -> list[tuple[int, str]]:
    """F2 before F10."""
    parts = re.findall(r"([0-9]+)|([^0-9]+)", name)
    return [(int(digits), "") if digits else (-1, text) for digits, text in parts]


def _read_text(root: Path, file: str) -> str | Fault:
    """The text of a file; a fault if it is not a regular file inside of `root`, or not UTF-8."""
    path = root / file
    if file != PROJECT_FILE and not disk.inside(root, file):
        return _fault(file, "this is a symbolic link to a file outside of the project.")
    try:
        # Without O_NONBLOCK a FIFO would keep us waiting for its writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return _fault(file, "this can't be read: it is not a regular file.")
            raw = stream.read(MAX_BYTES + 1)
    except IsADirectoryError:
        return _fault(file, "this can't be read: it is a folder.")
    except OSError as error:
        return _fault(file, f"this can't be read: {error.strerror}.")
    if len(raw) > MAX_BYTES:
        return _fault(file, f"this file is larger than {MAX_BYTES >> 20} MiB.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8-sig").splitlines(keepends=True) or [""]
        ended = before[-1].endswith(("\n", "\r"))
        line, column = (len(before) + 1, 1) if ended else (len(before), len(before[-1]) + 1)
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file in UTF-8."
        return Fault(file, (line, column), "", message)


def _fault(file: str, message: str) -> Fault:
    return Fault(file, (1, 1), "", message)


def load(start: Path, *, sources: bool = True) -> Project:
    """The project at or above `start`; ConfigurationError with every fault of its files.

    Without `sources` the kernels' own files may be missing, as for what only reads records.
    """
    path = find(start)
    main, files, faults = _read(path)
    kernels = _convert_kernels(main)
    entries = [*_inline(main, "experiments"), *_inline(main, "history")]
    for source, document in files:
        experiment = shape.convert(document.value, Experiment)
        entry = ProjectEntry(
            id=source.id, section=source.section, document=document, path=(), experiment=experiment
        )
        entries.append(entry)
    entries, unfilled = shape.fill_baselines(entries, kernels, path.parent)
    faults += unfilled
    faults += islice(shape.check_meaning(main, kernels, entries, path.parent, sources), MAX_FAULTS)
    if faults:
        raise _configuration_error(faults)
    return Project(
        root=path.parent,
        kernels=kernels,
        experiments={
            entry.id: entry.experiment
            for section in ("experiments", "history")
            for entry in entries
            if entry.section == section and entry.experiment
        },
        history=tuple(entry.id for entry in entries if entry.section == "history"),
        places={entry.id: entry.place for entry in entries},
    )


def _read(path: Path) -> tuple[Document, list[tuple[ExperimentFile, Document]], list[Fault]]:
    """experiments.yaml, the files of one experiment each, and the faults of their form."""
    sources, faults = files_of(path.parent)
    files: list[tuple[ExperimentFile, Document]] = []
    main: Document | None = None
    values = 0
    for source in (None, *sources):
        kind = shape.KINDS["experiment" if source else "project"]
        file = source.file if source else path.name
        text = _read_text(path.parent, file)
        if isinstance(text, Fault):
            faults.append(text)
            continue
        document = Document(text, file, shape.scalars(kind), MAX_VALUES - values)
        values += document.values
        faults += document.faults
        if document.readable:
            faults += islice(shape.check(document, kind), MAX_FAULTS)
        if source is None:
            main = document
        else:
            files.append((source, document))
    if main is None or not all(item.readable for item in (main, *(item for _, item in files))):
        # What refers to something in a file that can't be read would look wrong.
        raise _configuration_error(faults)
    return main, files, faults


def _configuration_error(faults: Iterable[Fault]) -> ConfigurationError:
    return ConfigurationError(*(fault.sentence() for fault in sorted(set(faults))))


def _convert_kernels(document: Document) -> dict[str, Kernel]:
    """Each kernel that is right by itself."""
    converted = {
        name: shape.convert(value, Kernel)
        for name, value in section_of(document, "kernels").items()
    }
    return {name: kernel for name, kernel in converted.items() if kernel}


def _inline(document: Document, section: Section) -> Iterator[ProjectEntry]:
    for key, value in section_of(document, section).items():
        experiment = shape.convert(value, Experiment)
        path = (section, key)
        yield ProjectEntry(
            id=key, section=section, document=document, path=path, experiment=experiment
        )


def require_candidate(name: str, experiment: Experiment, number: int) -> None:
    """UsageError where the experiment has no candidate of this number, counted from 1."""
    count = len(experiment.candidates)
    if number > count:
        several = f"{count} candidates" if count > 1 else "one candidate"
        raise UsageError(f"{name} has {several}: there is no --candidate {number}.")


def parse_point(target: Target, assignments: Iterable[str], where: str) -> Point:
    """`stages=4` texts to a point on the target's axes; UsageError says what does not exist."""
    point: Point = {}
    where = shorten(spelled(where))
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"{where}: {quote(assignment)} should be AXIS=VALUE, as in stages=4.")
        if name in point:
            raise UsageError(f"{where}: axis {name!r} is given twice.")
        values = target.axes[name].values if name in target.axes else []
        point[name] = next((value for value in values if spell(value) == text), text)
    for _, complaint in check_point(point, target.axes):
        raise UsageError(f"{where}: {complaint}")
    return point


def parse_variant(project: Project, text: str) -> Variant:
    """KERNEL, KERNEL@ARCH or KERNEL@ARCH:axis=value,...; UsageError says what does not exist."""
    name, _, assignments = text.partition(":")
    kernel, _, arch = name.partition("@")
    variant = project.variant(kernel, arch or None)
    target = project.kernels[kernel].targets[variant.arch]
    point = parse_point(target, assignments.split(",") if assignments else [], text)
    return project.variant(kernel, variant.arch, point)


def parse_arm(project: Project, text: str) -> tuple[Variant, str, int]:
    """One variant: an experiment's candidate (F3, or F3:2 of several), its baseline (F3:baseline),
    or as parse_variant() reads it.

    Of a candidate also the experiment and its number in it, from 1; else "" and 1.
    """
    name, _, part = text.partition(":")
    if name not in project.experiments:
        return parse_variant(project, text), "", 1
    baseline, candidates = project.variants(project.experiments[name])
    if part == "baseline":
        return baseline, "", 1
    if not part and len(candidates) > 1:
        raise UsageError(f"{name} has {len(candidates)} candidates: write {name}:1 or another.")
    if part and not (part.isdigit() and 1 <= int(part) <= len(candidates)):
        raise UsageError(
            f"{quote(text)}: after the colon comes baseline or the number of a candidate, up to "
            f"{len(candidates)}."
        )
    number = int(part or 1)
    return candidates[number - 1], name, number
