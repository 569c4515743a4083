"""The messages of an emulation and of a modelled time: their jobs, and what is answered."""

from __future__ import annotations

import msgspec

from kernelexp.model.arm import EmulatedEvidence
from kernelexp.model.experiment import AxisValue
from kernelexp.model.modelled import ModelledRun
from kernelexp.project.problem.files import Used
from kernelexp.system.process.isolated import TimeLimit
from warpsim.lineinfo import Source
from warpsim.schedule import Schedule

SEED = 1


class ExecutionJob(msgspec.Struct, frozen=True, kw_only=True):
    """A variant that is built, to execute at a size of its problem."""

    root: str
    kernel: str
    axes: dict[str, AxisValue]
    size: str
    exports: dict[str, int]
    entries: tuple[str, ...]
    """Symbols of what launch() names."""
    cubin: str = ""
    """Path of the cubin, where its SASS is executed."""
    listing: str = ""
    """Path of what cuobjdump prints of it."""
    problem_limit: TimeLimit
    """For making the inputs, and for the reference."""
    emulation_limit: TimeLimit
    native: str = ""
    """Path of the compiled part of the emulator; without it Python computes the same."""


class EmulationJob(ExecutionJob, frozen=True, kw_only=True):
    """A variant to emulate."""

    arch: str
    ptx: str
    """Path; empty for a kernel that came as a cubin, whose SASS is executed."""
    schedules: tuple[Schedule, ...]
    memory_bytes: int = 0
    """What the emulation may allocate; 0: what there is."""
    seed: int = SEED
    """Of the inputs."""
    processes: int = 1
    """That may run schedules at once."""


class ModellingJob(ExecutionJob, frozen=True, kw_only=True):
    """A variant whose time is asked for."""

    chip: str
    resident: int
    """CTAs that fit on an SM."""
    trace: str = ""
    """Where a time line of the first CTA is written; empty: nowhere."""


class PtxAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Memory instructions of one width."""

    what: str
    """`shared load`, `global store`, ...: the class that they are counted in."""
    bits: int
    """Per lane."""
    count: int
    """Of the instructions, however often they were executed."""


class LineCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one source line in a launch, inlined at one place and run by the same warps."""

    entry: str = ""
    source: Source
    warps: int
    """The warps of a CTA that execute it, a bit each: bit 3 is warp 3."""
    counters: dict[str, int]
    """Those that are not 0."""
    accesses: tuple[PtxAccess, ...] = ()
    """The loads and stores whose state space PTX names."""


class InstructionCost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cost of one SASS instruction in all launches of its entry."""

    entry: str
    offset: int
    """Bytes from the entry's first instruction."""
    executed: int
    """Warp instructions, whatever their guard."""
    threads: int
    """Active threads of these."""
    wavefronts: int = 0
    """Of shared memory."""
    sectors: int = 0
    """Of global memory."""


class Emulated(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an emulation: the evidence that records keep, and the cost of every line."""

    evidence: EmulatedEvidence
    lines: tuple[LineCost, ...] = ()
    instructions: tuple[InstructionCost, ...] = ()
    """Of SASS, those that were executed."""
    used: Used = Used()
    """What problem.py read."""


class ModellingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A launch as it was modelled."""

    run: ModelledRun
    used: Used
    """What problem.py read."""
