"""A run as plain types: how it is to be done, what its experiments share, what became of each."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.dossier.session import Session
from kernelexp.evidence.measure.measured import Measuring
from kernelexp.judge import expectations
from kernelexp.judge.expectations import Judged
from kernelexp.logs import records
from kernelexp.model.errors import KernelexpError
from kernelexp.model.experiment import Variant
from kernelexp.model.measurement import Gpus
from kernelexp.model.record import Git, HostMachine, Record
from kernelexp.project import Project

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
            expectations=expectations.of_record(self.record),
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
