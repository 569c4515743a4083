"""The log as data: history and experiments of each kernel, each with what is known of it now."""

from __future__ import annotations

import contextlib
import gc
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kernelexp.dossier import standing
from kernelexp.dossier.standing import Standing, Standings, Tree
from kernelexp.facts import metrics
from kernelexp.logs import decisions, records
from kernelexp.logs.decisions import Decision
from kernelexp.logs.records import Unreadable
from kernelexp.model.axes import AxisValue
from kernelexp.model.errors import UsageError
from kernelexp.model.names import SWEEP
from kernelexp.model.record import Record
from kernelexp.project import Project
from kernelexp.report.document import markdown
from kernelexp.report.document.document import Document
from kernelexp.system import wholefile

_SWEEPS_SHOWN = 5


class KernelLog(msgspec.Struct, frozen=True, kw_only=True):
    """The log of one kernel on one architecture; experiments by id, in the project's order."""

    kernel: str
    arch: str
    title: str
    problem: str
    device: str
    history: dict[str, Standings]
    experiments: dict[str, Standings]
    defaults: dict[str, AxisValue] = {}
    """Of the target's axes."""
    sweeps: tuple[Record, ...] = ()
    """The latest ones, oldest first."""
    sweeps_changed: dict[str, tuple[str, ...]] = {}
    """By run, what is no longer as it was when a sweep ran; those of which nothing changed are left
    out."""
    sweeps_unreadable: tuple[Unreadable, ...] = ()
    accepted: Decision | None = None
    """The decision that makes a variant the current best; None where there is none."""

    @property
    def standings(self) -> dict[str, Standings]:
        """The history's steps, then the experiments."""
        return {**self.history, **self.experiments}

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """Files among the records that were skipped."""
        entries = (*self.history.values(), *self.experiments.values())
        own = (item for entry in entries for item in entry.unreadable)
        return (*own, *self.sweeps_unreadable)

    @property
    def best(self) -> str | None:
        """The experiment accepted last; else the fastest step that still stands, measured ones
        before published ones."""
        if self.accepted:
            return self.accepted.experiment
        for name in ("time_ms", "published_time_ms"):
            times = {
                step: time
                for step, entry in self.history.items()
                if (time := time_of(entry.candidates[0], name)) is not None
            }
            if times:
                return min(times, key=lambda step: times[step])
        return None


def time_of(entry: Standing, metric: str) -> float | None:
    """The candidate's time under this metric, if it is of the variant as it is now."""
    if entry.arm is None or entry.changed:
        return None
    value = metrics.read(metric, entry.arm)
    return None if value is None or isinstance(value, str) else value


def assemble(project: Project, tree: Tree | None = None) -> tuple[KernelLog, ...]:
    """The log of every kernel and architecture that has experiments; `tree` as it is now."""
    tree = tree or Tree(project.root)
    entries: dict[tuple[str, str], dict[str, Standings]] = defaultdict(dict)
    with _uncollected():
        for name, experiment in project.experiments.items():
            where = (experiment.kernel, experiment.arch)
            entries[where][name] = standing.of_experiment(project, name, tree)
    swept = {where: _sweeps(project, *where) for where in entries}
    sweeps = {where: shown for where, (shown, _) in swept.items()}
    return tuple(
        KernelLog(
            kernel=kernel,
            arch=arch,
            title=project.kernels[kernel].title,
            problem=project.kernels[kernel].problem,
            device=project.kernels[kernel].targets[arch].device,
            history={
                name: standings for name, standings in named.items() if name in project.history
            },
            experiments={
                name: standings for name, standings in named.items() if name not in project.history
            },
            defaults=project.variant(kernel, arch).axes,
            sweeps=sweeps[kernel, arch],
            sweeps_unreadable=swept[kernel, arch][1],
            sweeps_changed={
                record.run: changed
                for record in sweeps[kernel, arch]
                if (changed := standing.of_sweep(project, record, tree))
            },
            accepted=decisions.best(tree.decided[0], kernel, arch),
        )
        for (kernel, arch), named in entries.items()
    )


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Disables Python's garbage collector, which goes through all records again and again: 0.9 of
    2.5 s for 10,000, of which nothing is garbage. What was read is never gone through again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def _sweeps(
    project: Project, kernel: str, arch: str
) -> tuple[tuple[Record, ...], tuple[Unreadable, ...]]:
    """The latest ones of an architecture, and the files of the kernel's that are none."""
    result, unreadable = records.read(project.root, f"{SWEEP}{kernel}")
    shown = tuple(record for record in result if record.arch == arch)[-_SWEEPS_SHOWN:]
    return shown, tuple(unreadable)


NAME = "logs/EXPERIMENTS.md"
_BEGINNING = "# Experiment log\n\nRendered by `kernelexp log --write` from"
_ATTRIBUTES = "logs/.gitattributes"
# Two branches that both ran would conflict in a rendered file; git's own union driver takes both
# sides, and the next rendering puts it right.
_ATTRIBUTES_TEXT = "EXPERIMENTS.md merge=union linguist-generated\n"


def write(root: Path, document: Document, force: bool = False) -> bool:
    """Writes the log, and returns whether it was another one; UsageError if the file there does
    not begin as a rendered one, unless `force`."""
    path = root / NAME
    if not force and not _is_rendered(path):
        raise UsageError(
            f"{NAME} was not written by kernelexp, and is left as it is: move it, or overwrite it "
            "with `kernelexp log --write --force`."
        )
    text = markdown.render(document)
    with wholefile.FilesTogether() as files:
        if not (root / _ATTRIBUTES).exists():
            files.write(root / _ATTRIBUTES, _ATTRIBUTES_TEXT.encode())
        if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == text:
            return False
        files.write(path, text.encode())
    return True


def is_current(root: Path, document: Document) -> bool:
    """Whether the file is what would be written now."""
    path = root / NAME
    return path.is_file() and path.read_bytes() == markdown.render(document).encode()


def _is_rendered(path: Path) -> bool:
    if not path.is_file():  # a link to a device has no end
        return not path.exists()
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING
