"""The service of log: history and experiments of each kernel, each with what is known of it now."""

from __future__ import annotations

import contextlib
import gc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from kernelexp.dossier import standing
from kernelexp.dossier.standing import Standing, Standings
from kernelexp.dossier.tree import Tree
from kernelexp.facts import metrics
from kernelexp.judge import consistency
from kernelexp.judge.verdict import DECIDED
from kernelexp.logs import decisions, records
from kernelexp.logs.decisions import Decision
from kernelexp.logs.records import Unreadable
from kernelexp.model.arm import Arm, Status, Verdict
from kernelexp.model.experiment import SWEEP, AxisValue, Experiment, Point, spell_point
from kernelexp.model.measurement import L2
from kernelexp.model.record import Provenance, Record, is_of, swept_axes
from kernelexp.project import Project


class LoggedArm(msgspec.Struct, frozen=True, kw_only=True):
    """One arm of an experiment, a step or a sweep, without its figures."""

    id: str
    title: str
    arm: Literal["baseline", "candidate"]
    variant: str
    date: str
    run: str
    """Empty where there is no record of it."""
    provenance: Provenance | Literal[""]
    device: str
    size: str
    """What was timed; empty where nothing was."""
    l2: L2 | Literal[""]
    """Whether L2 was flushed before each launch, or left warm."""
    verdict: str
    """A status such as IMPROVED; empty where there is none."""
    decision: str
    """A person's word; empty where there is none."""
    changed_since: tuple[str, ...]
    """What has changed since the run; figures and verdict are then left out."""
    same_code_since: tuple[str, ...] | UnsetType = UNSET
    """Sources whose text has changed since, where the machine code has not; left out where there
    are none."""
    published_approximate: bool
    printed: dict[str, metrics.Value] | UnsetType = UNSET
    """Figures that a program printed, by the names that it has for them."""


# A row of the table: an arm with the figures that there are of it, each under its own name.
_FIELDS = {f"figure_{number}": name for number, name in enumerate(metrics.METRICS)}
if TYPE_CHECKING:
    LoggedRow: TypeAlias = LoggedArm
else:
    LoggedRow = msgspec.defstruct(
        "LoggedRow",
        [(field, metrics.Value | UnsetType, UNSET) for field in _FIELDS],
        bases=(LoggedArm,),
        rename=_FIELDS,
        frozen=True,
        kw_only=True,
    )


class LoggedExperiment(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment or a step of the history with its arms."""

    id: str
    experiment: Experiment
    records: int
    arms: tuple[LoggedRow, ...]


class LoggedSweep(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep with its variants."""

    id: str
    """Its run."""
    title: str
    changed_since: tuple[str, ...]
    arms: tuple[LoggedRow, ...]


class Logged(msgspec.Struct, frozen=True, kw_only=True):
    """The log of one kernel on one architecture."""

    kernel: str
    arch: str
    title: str
    problem: str
    device: str
    best: str | None
    """The fastest step that still stands."""
    history: tuple[LoggedExperiment, ...]
    experiments: tuple[LoggedExperiment, ...]
    sweeps: tuple[LoggedSweep, ...]


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

    def logged(self) -> Logged:
        """The log for programs; a figure that is not there is left out."""
        return Logged(
            kernel=self.kernel,
            arch=self.arch,
            title=self.title,
            problem=self.problem,
            device=self.device,
            best=self.best,
            history=_section(self.history),
            experiments=_section(self.experiments),
            sweeps=tuple(_sweep(self, record) for record in self.sweeps),
        )

    @property
    def standings(self) -> dict[str, Standings]:
        """The history's steps, then the experiments."""
        return {**self.history, **self.experiments}

    def changes(self, sweep: Record) -> tuple[str, ...]:
        """What is no longer as it was when a sweep ran."""
        return self.sweeps_changed.get(sweep.run, ())

    @property
    def best_standing(self) -> Standing | None:
        """The candidate that is the best: the one that was accepted, else that of the step; None
        where the experiment no longer has it."""
        entry = self.standings.get(self.best or "")
        every = entry.candidates if entry else ()
        own = [one for one in every if self.accepted in (None, one.decision)]
        return own[0] if own else None

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
    return tuple(_kernel(project, tree, *where, named) for where, named in entries.items())


def _kernel(
    project: Project, tree: Tree, kernel: str, arch: str, entries: dict[str, Standings]
) -> KernelLog:
    own, steps = project.kernels[kernel], project.history
    sweeps, unreadable = _sweeps(project, kernel, arch)
    return KernelLog(
        kernel=kernel,
        arch=arch,
        title=own.title,
        problem=own.problem,
        device=own.targets[arch].device,
        history={name: entry for name, entry in entries.items() if name in steps},
        experiments={name: entry for name, entry in entries.items() if name not in steps},
        defaults=project.variant(kernel, arch).axes,
        sweeps=sweeps,
        sweeps_unreadable=unreadable,
        sweeps_changed={
            record.run: changed
            for record in sweeps
            if (changed := standing.of_sweep(project, record, tree))
        },
        accepted=decisions.best(tree.decided[0], kernel, arch),
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


# ---- for programs --------------------------------------------------------------------------------


def _section(entries: dict[str, Standings]) -> tuple[LoggedExperiment, ...]:
    return tuple(
        LoggedExperiment(
            id=name,
            experiment=entry.experiment,
            records=entry.records,
            arms=tuple(map(_logged, rows)),
        )
        for name, entry in entries.items()
        if (rows := list(_arms(name, entry)))
    )


def _sweep(log: KernelLog, record: Record) -> LoggedSweep:
    changed = log.changes(record)
    arms = tuple(map(_logged, _swept(record, changed)))
    return LoggedSweep(id=record.run, title=record.title, changed_since=changed, arms=arms)


def _logged(row: dict[str, Any]) -> LoggedArm:
    return msgspec.convert(row, LoggedRow)


def _arms(name: str, entry: Standings) -> Iterator[dict[str, Any]]:
    """Baseline and candidates; the baseline once for each record that candidates come from."""
    title, shown = entry.experiment.title, None
    for index, (known, point) in enumerate(entry.points):
        record, verdict, changed = known.record, known.verdict, known.changed
        run, same = record.run if record else None, known.rewritten
        if index == 0 or run != shown:
            base = None if changed else known.baseline
            of_base = entry.experiment.baseline
            yield _row(name, title, "baseline", of_base, base, record, changed, None, same)
        shown = run
        row = _row(name, title, "candidate", point, known.current, record, changed, verdict, same)
        yield {**row, "decision": known.decision.word if known.decision else ""}


def _swept(record: Record, changed: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Each variant of a sweep in the order in which they were named, by its own axes."""
    own = swept_axes(record)
    verdicts = (None, *(candidate.verdict for candidate in record.candidates))
    for arm, verdict in zip(record.arms, verdicts, strict=True):
        point = {axis: arm.axes[axis] for axis in own}
        role = "candidate" if verdict else "baseline"
        taken = None if changed else arm
        yield _row(record.run, record.title, role, point, taken, record, changed, verdict)


def _row(
    name: str,
    title: str,
    role: str,
    point: Point,
    arm: Arm | None,
    record: Record | None,
    changed: Sequence[str],
    verdict: Verdict | None = None,
    rewritten: Sequence[str] = (),
) -> dict[str, Any]:
    """The row of an arm, which is None where its figures are not current or not known."""
    timed = record if arm and arm.measured else None
    figures = {
        key: value
        for key in metrics.METRICS
        if arm is not None and (value := metrics.read(key, arm)) is not None
    }
    return {
        "id": name,
        "title": title,
        "arm": role,
        "variant": spell_point(point),
        "date": record.created[:10] if record else "",
        "run": record.run if record else "",
        "provenance": record.provenance if record else "",
        "device": record.device if record else "",
        "size": (", ".join(one.size for one in timed.sizes) or timed.size) if timed else "",
        "l2": _l2(timed) if timed else "",
        "verdict": verdict.status.value if verdict and not changed else "",
        "decision": "",
        "changed_since": list(changed),
        "published_approximate": bool(arm and arm.published and arm.published.approximate),
        **figures,
        **({"printed": printed} if arm and (printed := metrics.printed(arm)) else {}),
        **({"same_code_since": list(rewritten)} if rewritten else {}),
    }


def _l2(record: Record) -> str:
    """Returns the state of L2 before each launch; empty for a program, which sets its own."""
    taken = record.measurement
    return "" if taken is None or taken.printed else taken.options.l2


def by_card(entry: Standings, records: Sequence[Record]) -> dict[str, str]:
    """The latest verdicts on each GPU of the candidates for which they differ, by the candidate, at
    the size of its standing record: "REJECTED on NVIDIA H100 (2026-11-26); IMPROVED on ...".
    `records` are the experiment's, in any order."""
    verdicts = ((spell_point(point), of_cards(one, records)) for one, point in entry.points)
    return {point: "; ".join(words) for point, words in verdicts if words}


def of_cards(standing: Standing, records: Sequence[Record]) -> list[str]:
    """The latest verdict on each GPU, that which stands first; empty where all are alike."""
    own = standing.record
    if own is None or standing.arm is None or own.measurement is None or standing.doubted:
        return []
    verdicts: dict[str, tuple[Status, str]] = {}
    for record in (own, *sorted(records, key=lambda one: one.created, reverse=True)):
        alike = (
            candidate
            for candidate in record.candidates
            if is_of(dict(standing.variant.axes), candidate.arm)
            and is_of(record.baseline.axes, own.baseline)
        )
        if record.measurement is None or record.edited or _sizes(record) != _sizes(own):
            continue
        for candidate in alike:
            status = (candidate.over_sizes or candidate.verdict).status
            is_new = status in DECIDED and record.device not in verdicts
            differs = any(status != known for known, _ in verdicts.values())
            if is_new and differs and any(consistency.doubts(record, candidate)):
                continue
            if is_new:
                then_files, now_files = candidate.arm.files, standing.arm.files
                shared = then_files.keys() & now_files.keys()  # headers may be the package's
                is_edited = any(then_files[file] != now_files[file] for file in shared)
                then = f"{record.created[:10]}{', from other sources' if is_edited else ''}"
                verdicts[record.device] = status, then
    if len({status for status, _ in verdicts.values()}) < 2:
        return []
    return [f"{status} on {card} ({then})" for card, (status, then) in verdicts.items()]


def _sizes(record: Record) -> list[str]:
    """All that its run timed, if the record is that of the last; else its own."""
    return [one.size for one in record.sizes] or [record.size]
