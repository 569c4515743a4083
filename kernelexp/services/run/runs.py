"""A run as plain types: how it is to be done, what its experiments share, what became of each."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import msgspec

from kernelexp.evidence.executor import Executor, Local
from kernelexp.evidence.measure.measured import Measuring
from kernelexp.logs import records
from kernelexp.model.errors import KernelexpError
from kernelexp.model.limits import Limits
from kernelexp.model.measurement import Device
from kernelexp.model.progress import OnProgress
from kernelexp.model.record import Git, HostMachine, Record
from kernelexp.model.variant import Variant
from kernelexp.project import Project
from kernelexp.system.toolchain import Toolchain

Faults: TypeAlias = tuple[tuple[Variant, KernelexpError], ...]


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to run, as the command line says it."""

    emulate: bool = True
    measuring: Measuring | None = None
    """None: nothing is timed."""
    keep: bool = True
    """Write records."""
    partial: bool = False
    """Leave out candidates that could not be examined, where there are others."""
    limits: Limits = Limits()
    executor: Executor = Local()
    """Where the work is done."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one experiment: its record, or the mistake or fault that kept it from one."""

    experiment: str
    record: Record | None = None
    path: Path | None = None
    earlier: tuple[Record, ...] = ()
    unreadable: tuple[records.Unreadable, ...] = ()
    error: KernelexpError | None = None
    faults: Faults = ()
    """What kept candidates from being examined, where the others were run without them."""


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """What all experiments of a run share."""

    project: Project
    home: Path
    """Where records go: the project's root, or that of the project whose record is repeated."""
    tools: Toolchain
    settings: RunSettings
    gpus: tuple[Device, ...] | str
    """The GPUs to time on, or why there is none."""
    host_files: dict[str, dict[str, str]]
    """Of each kernel, as its files were before anything ran."""
    git: Git | None
    machine: HostMachine
    on_progress: OnProgress | None
