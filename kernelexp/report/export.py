"""The log for programs: as CSV and as values, with every fixed figure by its name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from kernelexp.dossier.standing import Standing, Standings
from kernelexp.facts import metrics
from kernelexp.judge import sweeps
from kernelexp.model.arm import Arm, Verdict
from kernelexp.model.axes import spell_point
from kernelexp.model.experiment import Experiment
from kernelexp.model.measurement import L2
from kernelexp.model.record import Provenance, Record
from kernelexp.model.text import printable
from kernelexp.report.log.log import KernelLog

COLUMNS = (
    "kernel",
    "arch",
    "section",
    "id",
    "title",
    "arm",
    "variant",
    "date",
    "run",
    "provenance",
    "device",
    "size",
    "l2",
    "verdict",
    "decision",
    "changed_since",
    "published_approximate",
    *metrics.METRICS,
)


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


def to_values(logs: Sequence[KernelLog]) -> list[Logged]:
    """Each kernel's log with the rows of the CSV, for programs; a figure that is not there is left
    out."""
    return [
        Logged(
            kernel=log.kernel,
            arch=log.arch,
            title=log.title,
            problem=log.problem,
            device=log.device,
            best=log.best,
            history=_section(log.history),
            experiments=_section(log.experiments),
            sweeps=tuple(_sweep(log, record) for record in log.sweeps),
        )
        for log in logs
    ]


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
    changed = log.sweeps_changed.get(record.run, ())
    arms = tuple(map(_logged, _swept(record, changed)))
    return LoggedSweep(id=record.run, title=record.title, changed_since=changed, arms=arms)


def _logged(row: dict[str, Any]) -> LoggedArm:
    own = {key: value for key, value in row.items() if key in COLUMNS}
    printed = {key: value for key, value in row.items() if key not in COLUMNS}
    return msgspec.convert({**own, "printed": printed} if printed else own, LoggedRow)


def to_csv(logs: Sequence[KernelLog]) -> str:
    """A line for each arm of each step of the history, of each experiment and of each sweep.

    Figures and verdicts of variants that have changed since are left out. What programs print has
    columns of its own, the last ones.
    """
    rows = [
        {"kernel": log.kernel, "arch": log.arch, "section": section, **row}
        for log in logs
        for section, row in _rows(log)
    ]
    further = sorted({key for row in rows for key in row}.difference(COLUMNS))
    text = io.StringIO()
    writer = csv.DictWriter(text, (*COLUMNS, *further), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        row = {**row, "changed_since": "; ".join(row["changed_since"])}
        writer.writerow({k: printable(v) if isinstance(v, str) else v for k, v in row.items()})
    return text.getvalue()


def _rows(log: KernelLog) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each with its section."""
    for section, entries in (("history", log.history), ("experiment", log.experiments)):
        for name, entry in entries.items():
            yield from ((section, row) for row in _arms(name, entry))
    for record in log.sweeps:
        changed = log.sweeps_changed.get(record.run, ())
        yield from (("sweep", row) for row in _swept(record, changed))


def _arms(name: str, entry: Standings) -> Iterator[dict[str, Any]]:
    """Baseline and candidates; the baseline once for each record that candidates come from."""
    title, shown = entry.experiment.title, None
    for index, standing in enumerate(entry.candidates):
        run = standing.record.run if standing.record else None
        if index == 0 or run != shown:
            arm = None if standing.changed else standing.baseline
            variant = spell_point(entry.experiment.baseline)
            yield {
                **_row(name, title, "baseline", variant, standing, arm),
                "verdict": "",
                "decision": "",
            }
        shown = run
        variant = spell_point(entry.experiment.candidates[index])
        row = _row(
            name, title, "candidate", variant, standing, None if standing.changed else standing.arm
        )
        yield {**row, "decision": standing.decision.word if standing.decision else ""}


def _l2(record: Record) -> str:
    """Returns the state of L2 before each launch; empty for a program, which sets its own."""
    taken = record.measurement
    return "" if taken is None or taken.printed else taken.options.l2


def _row(
    name: str, title: str, role: str, variant: str, standing: Standing, arm: Arm | None
) -> dict[str, Any]:
    verdict = standing.verdict
    return _values(name, title, role, variant, arm, standing.record, verdict, standing.changed)


def _swept(record: Record, changed: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Each variant of a sweep in the order in which they were named, by its own axes."""
    own = sweeps.swept_axes(record)
    verdicts = (None, *(candidate.verdict for candidate in record.candidates))
    for arm, verdict in zip(record.arms, verdicts, strict=True):
        variant = spell_point({axis: arm.axes[axis] for axis in own})
        role = "candidate" if verdict else "baseline"
        taken = None if changed else arm
        title = record.title
        row = _values(record.run, title, role, variant, taken, record, verdict, changed)
        yield {**row, "decision": ""}


def _values(
    name: str,
    title: str,
    role: str,
    variant: str,
    arm: Arm | None,
    record: Record | None,
    verdict: Verdict | None,
    changed: Sequence[str],
) -> dict[str, Any]:
    timed = arm is not None and arm.measured is not None
    figures = {
        key: value
        for key in metrics.METRICS
        if arm is not None and (value := metrics.read(key, arm)) is not None
    }
    return {
        "id": name,
        "title": title,
        "arm": role,
        "variant": variant,
        "date": record.created[:10] if record else "",
        "run": record.run if record else "",
        "provenance": record.provenance if record else "",
        "device": record.device if record else "",
        "size": ", ".join(one.size for one in record.sizes) or record.size
        if record and timed
        else "",
        "l2": _l2(record) if record and timed else "",
        "verdict": verdict.status.value if verdict and not changed else "",
        "changed_since": list(changed),
        "published_approximate": bool(arm and arm.published and arm.published.approximate),
        **figures,
        **(metrics.printed(arm) if arm else {}),
    }
