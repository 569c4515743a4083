"""The messages of a measurement: its job, and what its processes receive and answer."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from kernelexp.model.measurement import Check, Device, Failure, Options, TimedArm, Worker
from kernelexp.project.problem.files import Used
from warpsim.launch import Launch

PREPARING_PEERS = "preparing peers"
"""The phase of a process in which its peers are called first: a minute where they compile
themselves. A measurement's budget does not count it."""


class ArmJob(msgspec.Struct, frozen=True, kw_only=True):
    """An arm to time: a cubin with its launches, or, without any, the peer of the arm's name.

    The same cubin may serve several arms; each loads a module of its own.
    """

    arm: TimedArm
    cubin: str = ""
    """Path of the cubin."""
    arch: str = ""
    """What the cubin was compiled for."""
    launches: tuple[Launch, ...] = ()
    """In their order; their sum is timed."""
    axes: dict[str, Any] = {}
    """The variant's point, for the problem's `arrange` and `workspaces`."""
    exports: dict[str, int] = {}


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A problem at one size with the arms to time on it, the baseline among them once."""

    problem: str
    """Path of the problem's module."""
    name: str = ""
    """What sentences call it: its path from the project's root."""
    size: dict[str, int]
    size_name: str = ""
    arms: tuple[ArmJob, ...]


class WorkerJob(msgspec.Struct, frozen=True, kw_only=True):
    """One process's share of a measurement; `arms` of `job` stand in the order to load them."""

    job: Job
    options: Options
    device: Device
    process: int
    seed: int
    load_order: tuple[int, ...]
    with_peers: bool
    parent: int
    """Process id of whoever waits for the answer: without it there is nothing to work for."""
    once: bool = False
    """Launch each arm once and leave: for compute-sanitizer."""
    checked: bool = False
    """With `once`: what was written is compared with the reference: for ncu."""
    limit_s: float | None = None
    """How long its turn may take; None where its timing says that."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Leave to use the GPU."""

    excluded: tuple[str, ...] = ()
    """Arms that failed in an earlier process."""


class Phase(msgspec.Struct, frozen=True, kw_only=True, tag="phase"):
    """A worker has begun something."""

    name: str


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="found"):
    """A worker has finished."""

    worker: Worker


class ProblemRead(msgspec.Struct, frozen=True, kw_only=True, tag="read"):
    """Everything that problem.py read and a record has to name."""

    used: Used


class Launched(msgspec.Struct, frozen=True, kw_only=True, tag="launched"):
    """Each arm was launched once, and what it wrote is right."""

    checks: tuple[Check, ...]


class FailedJob(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """An arm failed, and the process with it."""

    failure: Failure


class SharedGpu(msgspec.Struct, frozen=True, kw_only=True, tag="shared"):
    """Another process uses the GPU."""

    others: int


class RefusedJob(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """Something that the user must change or install, as a sentence."""

    sentence: str
    environment: bool
    """It is missing on this machine, rather than wrong in the project."""


Answer: TypeAlias = Phase | ProblemRead | Finished | Launched | FailedJob | SharedGpu | RefusedJob
