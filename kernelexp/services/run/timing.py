"""An experiment's arms to times, on the GPUs that there are; or why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.measure import heats
from kernelexp.evidence.measure.measured import MeasurementTaken, Measuring
from kernelexp.evidence.measure.programs import measured_programs
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import arm_names
from kernelexp.model.measurement import Measurement
from kernelexp.services.run.runs import RunContext
from warpsim.launch import Launch


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
