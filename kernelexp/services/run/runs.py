"""A run: how it is to be done, what its experiments share, their times, what became of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.dossier.session import Session
from kernelexp.evidence.measure import heats
from kernelexp.evidence.measure.measured import MeasurementTaken, Measuring
from kernelexp.evidence.measure.programs import measured_programs
from kernelexp.judge import expectations
from kernelexp.judge.expectations import Judged
from kernelexp.logs import records
from kernelexp.model.arm import Arm
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import Variant, arm_names
from kernelexp.model.measurement import Gpus, Measurement
from kernelexp.model.record import Git, HostMachine, Record
from kernelexp.project import Project
from warpsim.launch import Launch

Faults: TypeAlias = tuple[tuple[Variant, KernelexpError], ...]


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a run, as the command line gives them."""

    measuring: Measuring | None = None
    """None: nothing is timed."""
    keep: bool = True
    """Write records."""
    partial: bool = False
    """Leave out candidates that could not be examined, where there are others."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment for programs: its record, or the error that kept it from one."""

    experiment: str
    path: str | None = None
    """The record's file; None where none was written."""
    record: Record | None = None
    expectations: dict[str, tuple[Judged, ...]] = {}
    """What became of them, by the candidate's name."""
    error: str | None = None


class Concluded(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment that has a record, with what it was compared with."""

    record: Record
    path: Path | None = None
    """None where records are not kept."""
    unkept: str = ""
    """Why the record could not be written, where it was to be."""
    earlier: tuple[Record, ...] = ()
    unreadable: tuple[records.Unreadable, ...] = ()
    faults: Faults = ()
    """Candidates that could not be examined, where the others were run without them."""

    @property
    def experiment(self) -> str:
        return self.record.experiment

    @property
    def ran(self) -> Ran:
        return Ran(
            experiment=self.experiment,
            path=str(self.path) if self.path else None,
            record=self.record,
            error=self.unkept or None,
            expectations=expectations.of_record(self.record) if self.record.expect else {},
        )


class FailedRun(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment that a mistake or a fault kept from a record."""

    experiment: str
    error: KernelexpError

    @property
    def ran(self) -> Ran:
        return Ran(experiment=self.experiment, error=str(self.error))


Outcome: TypeAlias = Concluded | FailedRun


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context that all experiments of a run share."""

    project: Project
    home: Path
    """Where records go: the project's root, or that of the project whose record is repeated."""
    session: Session
    settings: RunSettings
    gpus: Gpus
    host_files: dict[str, dict[str, str]]
    """Of each kernel, as its files were before anything ran."""
    git: Git | None
    machine: HostMachine


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement of an experiment's arms, or why there is none."""

    measurement: Measurement | None = None
    heats: tuple[Measurement, ...] = ()
    why_not: str = ""
    size: str = ""
    parameters: dict[str, int] = {}
    flops: int = 0
    bytes: int = 0
    margin: float = 0.01
    journals: tuple[Path, ...] = ()


def as_timed(taken: MeasurementTaken, measuring: Measuring) -> Timed:
    """Returns the measurement taken, with what it was taken of."""
    return Timed(
        measurement=taken.measurement,
        heats=taken.heats,
        size=measuring.size,
        parameters=taken.parameters,
        flops=taken.flops,
        bytes=taken.bytes,
        margin=measuring.margin,
        journals=taken.journals,
    )


def take(
    shared: RunContext,
    arms: Sequence[Arm],
    launches: Mapping[str, Sequence[Launch]] | None = None,
    size: str = "",
) -> Timed:
    """Times what can be timed, the baseline first; raises what keeps a GPU from timing it.

    `size` is the experiment's own. `launches` are those of arms, by name, that the project's own
    problem.py does not launch.
    """
    measuring, session = shared.settings.measuring, shared.session
    root, limits, executor = shared.project.root, session.limits, session.executor
    names = arm_names(len(arms) - 1)
    usable = {
        name: arm for name, arm in zip(names, arms, strict=True) if arm.is_built and not arm.refused
    }
    program = next((arm.program.spec for arm in usable.values() if arm.program), None)
    on_cpu = measuring is not None and program is not None and not program.gpu
    gpus = shared.gpus.of(arms[0].arch)
    if not (gpus.devices or on_cpu):
        return Timed(why_not=gpus.why_none)
    if measuring is None or names[0] not in usable or len(usable) < 2:
        return Timed(why_not="there is nothing to time.")
    measuring = measuring.at(size)
    if program:
        measuring = msgspec.structs.replace(measuring, size="")
        run = measured_programs.take(
            root, usable, measuring, limits, executor.run_programs, on_progress=session.on_progress
        )
        return as_timed(run, measuring)
    # Verdicts are of arms that were timed side by side; only a race for the fastest has heats.
    wanted = len(gpus.devices) if measuring.goal == "fastest" else 1
    taken = heats.take(
        root,
        usable,
        measuring,
        limits,
        executor.measure,
        wanted,
        on_progress=session.on_progress,
        launches=launches,
    )
    return as_timed(taken, measuring)
