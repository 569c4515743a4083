"""The log as data: history and experiments of each kernel, from the project and its records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from kernelexp.measurement import Effect
from kernelexp.model import (
    Experiment,
    Provenance,
    PublishedResult,
    Record,
    Verdict,
    arm_names,
    spell_point,
)
from kernelexp.project import Project
from kernelexp.records import Told


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says of one arm, and where it is from."""

    variant: str
    """Where it departs from the defaults (baseline) or from the baseline (candidate)."""
    published: PublishedResult = PublishedResult()
    time_us: float | None = None
    """The median that was measured."""
    tflops: float | None = None
    """Of the measured median."""
    effect: Effect | None = None
    """Against the baseline, as measured."""
    registers_built: int | None = None
    """What this project's own build of the variant has; never mixed with published figures."""

    @property
    def time_ms(self) -> float | None:
        """Measured, or else published."""
        return self.published.time_ms if self.time_us is None else self.time_us / 1000


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the history."""

    commit: str
    change: str
    figures: Figures
    notes: str
    provenance: Provenance | None
    """None: no record of the step says anything."""
    device: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment of the log with what its most telling record says."""

    id: str
    experiment: Experiment
    date: str
    provenance: Provenance | None
    device: str
    source: str
    baseline: Figures
    candidates: tuple[Figures, ...]
    verdicts: tuple[Verdict, ...]
    """One for each candidate."""
    records: int
    """How many records there are of it."""


class KernelLog(msgspec.Struct, frozen=True, kw_only=True):
    """The log of one kernel on one architecture."""

    kernel: str
    arch: str
    title: str
    problem: str
    device: str
    best: Step | None
    """The fastest step of the history."""
    history: tuple[Step, ...]
    experiments: tuple[Entry, ...]


def assemble(project: Project, told: Mapping[str, Told]) -> tuple[KernelLog, ...]:
    """The log of every kernel and architecture, from what the records of its experiments tell."""
    entries: dict[tuple[str, str], list[tuple[str, Entry]]] = defaultdict(list)
    for name, experiment in project.experiments.items():
        key = (experiment.kernel, experiment.arch)
        entries[key].append((name, _enter(name, experiment, told[name])))
    return tuple(
        _log_kernel(project, kernel, arch, named) for (kernel, arch), named in entries.items()
    )


def _log_kernel(
    project: Project, kernel: str, arch: str, named: Sequence[tuple[str, Entry]]
) -> KernelLog:
    history = tuple(_step(entry) for name, entry in named if name in project.history)
    timed = [step for step in history if step.figures.time_ms is not None]
    written = project.kernels[kernel]
    return KernelLog(
        kernel=kernel,
        arch=arch,
        title=written.title,
        problem=written.problem,
        device=written.targets[arch].device,
        best=min(timed, key=lambda step: step.figures.time_ms or 0, default=None),
        history=history,
        experiments=tuple(entry for name, entry in named if name not in project.history),
    )


def _step(entry: Entry) -> Step:
    return Step(
        commit=entry.id,
        change=entry.experiment.title,
        figures=entry.candidates[0],
        notes=entry.experiment.notes,
        provenance=entry.provenance,
        device=entry.device,
    )


def _enter(name: str, experiment: Experiment, told: Told) -> Entry:
    record = told.record
    points = [spell_point(point) for point in experiment.candidates]
    if record is None:
        return Entry(
            id=name,
            experiment=experiment,
            date="",
            provenance=None,
            device="",
            source="",
            baseline=Figures(variant=spell_point(experiment.baseline)),
            candidates=tuple(Figures(variant=point) for point in points),
            verdicts=(),
            records=told.count,
        )
    return Entry(
        id=name,
        experiment=experiment,
        date=record.created[:10],
        provenance=record.provenance,
        device=record.device,
        source=record.source,
        baseline=_figures(spell_point(experiment.baseline), record, 0),
        candidates=tuple(
            _figures(point, record, index)
            for index, point in enumerate(points[: len(record.candidates)], 1)
        ),
        verdicts=tuple(each.verdict for each in record.candidates),
        records=told.count,
    )


def _figures(variant: str, record: Record, index: int) -> Figures:
    """Of the arm at `index`: 0 is the baseline."""
    arm = record.candidates[index - 1].arm if index else record.baseline
    name = arm_names(len(record.candidates))[index]
    found = record.estimate
    times = next((each for each in found.times if each.arm == name), None) if found else None
    effect = next((each for each in found.effects if each.arm == name), None) if found else None
    rate = record.flops / times.median_us / 1e6 if times and record.flops else None
    return Figures(
        variant=variant,
        published=arm.published or PublishedResult(),
        time_us=times.median_us if times else None,
        tflops=rate,
        effect=effect,
        registers_built=arm.build.resources.registers if arm.build else None,
    )
