"""Brings a log that was kept by hand into a project: a kernel, its entries, their records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kernelexp import project as projects
from kernelexp.facts.chips import ARCHITECTURES
from kernelexp.logs import records
from kernelexp.model.arm import Arm
from kernelexp.model.errors import UsageError, suggest
from kernelexp.model.experiment import is_name
from kernelexp.model.record import Candidate, Record
from kernelexp.project import PROJECT_FILE, Project, editing, scaffold
from kernelexp.services.handlog import reading, sections, tables
from kernelexp.services.handlog.reading import Log, LoggedVariant, Read
from kernelexp.system import disk

AXIS = "state"
COPIES = "logs/imported"
_KERNEL = re.compile(
    r"^kernel:\s*`?([A-Za-z0-9][\w.-]*)`?\s*(?:[\u2014\u2013-]\s*(.*))?$", re.I | re.M
)
_ARCH = re.compile(r"\bsm_?(\d{2,3}[a-z]?)\b", re.IGNORECASE)
MAX_BYTES = 4 << 20


class LogSubject(msgspec.Struct, frozen=True, kw_only=True):
    """The subject of a log, as far as it says."""

    kernel: str
    title: str
    problem: str
    arch: str


class ImportedLog(msgspec.Struct, frozen=True, kw_only=True):
    """An imported log, as it was written."""

    kernel: str
    log: Log
    copy: Path


def read(
    path: Path, columns: Mapping[sections.Role, str] = {}, ask: tables.Asking | None = None
) -> tuple[str, Log, LogSubject]:
    """The text of a log, what it says, and of what; UsageError where it has nothing.

    `columns` and `ask` say what the columns of a table are whose headings do not.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES >> 20} MiB.")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{path} can't be read: {why}.") from None
    is_csv = path.suffix.lower() in (".csv", ".tsv")
    log_sections = tables.from_csv(text) if is_csv else sections.read(text)
    log = reading.read([] if is_csv or columns else log_sections)
    if not (log.steps or log.experiments):
        try:
            rows, doubts = tables.read(log_sections, columns, ask)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
        log = msgspec.structs.replace(log, experiments=tuple(rows), doubts=tuple(doubts))
    if not (log.steps or log.experiments):
        raise UsageError(
            f"{path} has nothing that can be imported: no table of commits with times, no headings "
            "like 'Experiment F1: title' with **Result:** under them, no table."
        )
    names = [step.id for step in (*log.steps, *log.experiments)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{path} has two entries called {twice}: rename one of them.")
    return text, log, _subject(text, log_sections)


def _subject(text: str, log_sections: list[sections.LogSection]) -> LogSubject:
    named, arch = _KERNEL.search(text), _ARCH.search(text)
    texts = log_sections[0].texts if log_sections else ()
    first = next(
        (labelled_text.text for labelled_text in texts if named and named[0] in labelled_text.text),
        "",
    )
    rest = [line for line in first.splitlines() if line != (named[0] if named else "")]
    return LogSubject(
        kernel=named[1] if named else "",
        title=(named[2] if named else "") or "",
        problem="; ".join(line.strip().rstrip(".") for line in rest),
        arch=f"sm_{arch[1].lower()}" if arch else "",
    )


def write(
    project: Project,
    path: Path,
    kernel: str,
    arch: str,
    source: str,
    columns: Mapping[sections.Role, str] = {},
    ask: tables.Asking | None = None,
) -> ImportedLog:
    """Writes the kernel, whose one axis has a value for each state that the log tells of, its
    steps and experiments with the records of what was published, and a copy of the log.

    UsageError where something of that name is there already: nothing is written then.
    """
    text, log, subject = read(path, columns, ask)
    name, target = _placed(path, kernel or subject.kernel, arch or subject.arch)
    folder, copy = project.root / "variants" / name, project.root / COPIES / path.name
    log = _with_own_ids(project, name, log)
    entries = (*log.steps, *log.experiments)
    if name in project.kernels or folder.exists():
        raise UsageError(f"there is a kernel {name} already: give another name with --kernel.")
    for entry in entries:
        if entry.id in project.experiments or records.count(project.root, entry.id):
            raise UsageError(f"there is an experiment {entry.id} already: rename it in {path}.")
    if copy.exists():
        raise UsageError(f"{COPIES}/{path.name} is there already: this log was imported before.")
    main = (project.root / PROJECT_FILE).resolve()
    before = editing.read(project.root)
    with disk.FilesTogether() as files:
        files.write(folder / "problem.py", _template("imported/problem.txt"))
        files.write(folder / f"{name}.cu", _template("imported/kernel.txt"))
        files.write(main, _extended(before, log, subject, name, target).encode())
        projects.load(project.root)
        files.write(copy, text.encode())
        for entry in entries:
            record = _record(entry, name, target, source or path.name)
            files.write(records.place(project.root, record), records.encode(record).encode())
    return ImportedLog(kernel=name, log=log, copy=copy)


def _with_own_ids(project: Project, kernel: str, log: Log) -> Log:
    """Puts the kernel's name before the ids that rows were given by their number, where another log
    of the project has the same."""
    if not any(entry.id in project.experiments for entry in log.experiments):
        return log
    renamed = [
        msgspec.structs.replace(entry, id=f"{kernel}-{entry.id}")
        if re.fullmatch(r"row\d+", entry.id)
        else entry
        for entry in log.experiments
    ]
    return msgspec.structs.replace(log, experiments=tuple(renamed))


def _placed(path: Path, name: str, arch: str) -> tuple[str, str]:
    """Kernel and architecture; UsageError where one is not known."""
    if not name or not is_name(name):
        also = "" if arch in ARCHITECTURES else ", and its architecture with --arch"
        raise UsageError(
            f"{path} does not say which kernel it is about: name it with --kernel{also}."
        )
    if arch not in ARCHITECTURES:
        result = f"says {arch}, which is none" if arch else "names no architecture"
        raise UsageError(f"{path} {result}: give it with --arch{suggest(arch, ARCHITECTURES)}.")
    return name, arch


def _template(name: str) -> bytes:
    return (scaffold.TEMPLATES / name).read_bytes()


def _extended(before: str, log: Log, subject: LogSubject, name: str, arch: str) -> str:
    """experiments.yaml with the kernel and the entries."""
    entries = (*log.steps, *log.experiments)
    states = list(dict.fromkeys(state for entry in entries for state in _states(entry)))
    default = log.steps[-1].id if log.steps else states[0]
    about = "what the imported log tells of; its sources are not here yet"
    kernel = {
        "title": _line(subject.title) or name,
        "problem": _line(subject.problem) or "not stated",
        "targets": {
            arch: {
                "source": f"{name}.cu",
                "device": ARCHITECTURES[arch].card,
                "axes": {AXIS: {"values": states, "default": default, "about": about}},
            }
        },
    }
    text = editing.insert(before, "kernels", {name: kernel})
    steps = {step.id: _entry(step, name, arch, default) for step in log.steps}
    others = {
        experiment.id: _entry(experiment, name, arch, default) for experiment in log.experiments
    }
    text = editing.insert(text, "experiments", others) if others else text
    return editing.insert(text, "history", steps) if steps else text


def _states(entry: Read) -> Iterator[str]:
    yield entry.baseline.state
    yield from (candidate.state for candidate in entry.candidates)


def _entry(entry: Read, kernel: str, arch: str, default: str) -> dict[str, Any]:
    points = [{AXIS: candidate.state} for candidate in entry.candidates]
    base = entry.baseline.state
    titles = [candidate.title for candidate in entry.candidates if candidate.title]
    values: dict[str, Any] = {
        "kernel": kernel,
        "arch": arch,
        "title": _line(entry.title),
        "baseline": {} if base == default else {AXIS: base},
        "candidate": points[0] if len(points) == 1 else points,
        "hypothesis": entry.hypothesis,
    }
    optional = {
        "changes": list(entry.changes or (titles if len(points) > 1 else ())),
        "why": entry.why,
        "decision": entry.decision,
        "notes": entry.notes,
    }
    return values | {key: value for key, value in optional.items() if value}


def _line(text: str) -> str:
    return " ".join(text.split())


def _record(entry: Read, kernel: str, arch: str, source: str) -> Record:
    return Record(
        version=records.VERSION,
        run=records.PUBLISHED,
        experiment=entry.id,
        provenance="published",
        created=entry.date,
        kernel=kernel,
        arch=arch,
        title=_line(entry.title),
        hypothesis=entry.hypothesis,
        baseline=_arm(entry.baseline),
        candidates=tuple(
            Candidate(arm=_arm(candidate), verdict=candidate.verdict)
            for candidate in entry.candidates
            if candidate.verdict
        ),
        commit=entry.commit,
        device=ARCHITECTURES[arch].card,
        source=source,
    )


def _arm(variant: LoggedVariant) -> Arm:
    return Arm(axes={AXIS: variant.state}, published=variant.figures)
