"""Arms as messages to the processes that execute them: the one place that makes these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelexp.evidence import build, native
from kernelexp.evidence.emulate.job import EmulationJob, ModellingJob
from kernelexp.evidence.measure.job import ArmJob
from kernelexp.model.arm import Arm, Isa
from kernelexp.model.measurement import Role, TimedArm
from kernelexp.system.process.isolated import TimeLimit
from warpsim.launch import Launch, of_entries
from warpsim.schedule import USUAL, Schedule, first_schedules


def emulation(
    root: Path,
    arm: Arm,
    size: str,
    problem: TimeLimit,
    whole: TimeLimit,
    schedules: Sequence[Schedule] = first_schedules(USUAL),
    isa: Isa = "ptx",
) -> EmulationJob:
    """An arm that is built, to execute at a size of its problem."""
    artefacts = build.artefacts(root, arm.identity)
    return EmulationJob(
        root=str(root),
        kernel=arm.kernel,
        arch=arm.arch,
        ptx=str(artefacts.ptx or ""),
        cubin=str(artefacts.cubin) if isa == "sass" else "",
        listing=str(artefacts.listing) if isa == "sass" else "",
        axes=arm.axes,
        size=size,
        entries=_symbols(arm),
        exports=arm.exports,
        schedules=tuple(schedules),
        problem_limit=problem,
        emulation_limit=whole,
        native=native.library(root),
    )


def modelling(
    root: Path,
    arm: Arm,
    chip: str,
    size: str,
    problem: TimeLimit,
    whole: TimeLimit,
    trace: str = "",
) -> ModellingJob:
    """An arm that is built, to model its time at a size of its problem; `trace` is where the time
    line of its first CTA is written."""
    artefacts = build.artefacts(root, arm.identity)
    occupancy = arm.build.occupancy if arm.build else None
    return ModellingJob(
        root=str(root),
        kernel=arm.kernel,
        chip=chip,
        cubin=str(artefacts.cubin),
        listing=str(artefacts.listing),
        axes=arm.axes,
        size=size,
        exports=arm.exports,
        entries=_symbols(arm),
        resident=occupancy.ctas_per_sm if occupancy else 1,
        native=native.library(root),
        problem_limit=problem,
        emulation_limit=whole,
        trace=trace,
    )


def timed(root: Path, arm: Arm, name: str, role: Role, launches: Sequence[Launch]) -> ArmJob:
    """An arm that is built, to time under a name and in a role."""
    return ArmJob(
        arm=TimedArm(name=name, role=role, identity=arm.identity),
        cubin=str(build.artefacts(root, arm.identity).cubin),
        arch=arm.arch,
        launches=tuple(of_entries(launch, _symbols(arm)) for launch in launches),
        axes=arm.axes,
        exports=arm.exports,
    )


def _symbols(arm: Arm) -> tuple[str, ...]:
    """The entries that the arm's launches name."""
    return (arm.build.entry, *arm.build.others) if arm.build else ()
