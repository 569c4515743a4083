"""An experiment's arms to times, on the GPUs that there are; or why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.evidence.measure import heats, programs
from kernelexp.evidence.measure.measured import MeasurementTaken, Measuring
from kernelexp.model.arm import Arm
from kernelexp.model.measurement import Device, Measurement
from kernelexp.model.variant import arm_names
from kernelexp.services.run.runs import RunContext
from warpsim.launch import Launch


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement of an experiment's arms, or why there is none."""

    measurement: Measurement | None = None
    heats: tuple[Measurement, ...] = ()
    why_not: str = ""
    size: str = ""
    flops: int = 0
    margin: float = 0.01
    journals: tuple[Path, ...] = ()


def as_timed(taken: MeasurementTaken, measuring: Measuring) -> Timed:
    """What was taken, with what it was taken of."""
    return Timed(
        measurement=taken.measurement,
        heats=taken.heats,
        size=measuring.size,
        flops=taken.flops,
        margin=measuring.margin,
        journals=taken.journals,
    )


def cards(gpus: tuple[Device, ...] | str, arch: str) -> int | str:
    """How many of the GPUs can time variants of an architecture, or why none can."""
    if isinstance(gpus, str):
        return gpus
    fitting = [gpu for gpu in gpus if gpu.arch == arch]
    if not fitting:
        names = dict.fromkeys(f"{gpu.name} ({gpu.arch})" for gpu in gpus)
        return f"this machine's is {', '.join(names)}."
    return len(fitting)


def take(
    shared: RunContext,
    arms: Sequence[Arm],
    launches: Mapping[str, Sequence[Launch]] | None = None,
) -> Timed:
    """Times what can be timed, the baseline first; raises what keeps a GPU from timing it.

    `launches` are those of arms, by name, that the project's own problem.py does not launch.
    """
    settings, root, tell = shared.settings, shared.project.root, shared.on_progress
    measuring, limits, executor = settings.measuring, settings.limits, settings.executor
    names = arm_names(len(arms) - 1)
    usable = {
        name: arm for name, arm in zip(names, arms, strict=True) if arm.is_built and not arm.refused
    }
    program = next((arm.program.spec for arm in usable.values() if arm.program), None)
    on_cpu = measuring is not None and program is not None and not program.gpu
    number = 1 if on_cpu else cards(shared.gpus, arms[0].arch)
    if isinstance(number, str):
        return Timed(why_not=number)
    if measuring is None or names[0] not in usable or len(usable) < 2:
        return Timed(why_not="there is nothing to time.")
    if program:
        measuring = msgspec.structs.replace(measuring, size="")
        run = programs.take(
            root, usable, measuring, limits, executor.run_programs, on_progress=tell
        )
        return as_timed(run, measuring)
    # Verdicts are of arms that were timed side by side; only a race for the fastest has heats.
    wanted = number if measuring.goal == "fastest" else 1
    taken = heats.take(
        root,
        usable,
        measuring,
        limits,
        executor.measure,
        wanted,
        on_progress=tell,
        launches=launches,
    )
    return as_timed(taken, measuring)
