"""Variants that are built, to a measurement on a GPU: evidence of kind `measured`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from kernelexp.errors import UsageError
from kernelexp.gpu.job import ArmJob, Job
from kernelexp.gpu.measure import OnProgress, measure
from kernelexp.measurement import Measurement, Options, Role, TimedArm
from kernelexp.model import Variant
from kernelexp.problem import Problem, blame

SIZE = "full"


class Measuring(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure, as the command line says it."""

    options: Options = Options()
    device: str | None = None
    """Index or UUID; None takes the first."""
    margin: float = 0.01
    size: str = SIZE


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """A variant that is built, as an arm of a measurement."""

    name: str
    variant: Variant
    identity: str
    cubin: Path
    exports: Mapping[str, int]


def take(
    root: Path,
    problem: Problem,
    baseline: Side,
    candidates: Sequence[Side],
    measuring: Measuring,
    *,
    enough: Callable[[Measurement], bool],
    on_progress: OnProgress | None = None,
) -> Measurement:
    """Times baseline, placebo, candidates and peers in the same processes.

    Raises what kernelexp.gpu.measure.measure raises, ConfigurationError for the problem's faults.
    """
    name = f"variants/{baseline.variant.kernel}/problem.py"
    if measuring.size not in problem.SIZES:
        known = ", ".join(problem.SIZES)
        raise UsageError(f"{name} has no size {measuring.size!r}; known: {known}.")
    with blame(root, name):
        size = dict(problem.SIZES[measuring.size])
        arms = [
            _arm(problem, baseline, "baseline", size, baseline.name),
            _arm(problem, baseline, "placebo", size, "placebo"),
            *(_arm(problem, each, "candidate", size, each.name) for each in candidates),
        ]
    if measuring.options.peers:
        for peer in getattr(problem, "PEERS", ()):
            arms.append(ArmJob(arm=TimedArm(name=peer, role="peer")))
    job = Job(problem=str(root / name), size=size, arms=tuple(arms))
    return measure(
        job,
        measuring.options,
        device=measuring.device,
        on_progress=on_progress,
        enough=enough,
    )


def _arm(problem: Problem, side: Side, role: Role, size: Mapping[str, int], name: str) -> ArmJob:
    return ArmJob(
        arm=TimedArm(name=name, role=role, identity=side.identity),
        cubin=str(side.cubin),
        arch=side.variant.arch,
        launch=problem.launch(side.variant.axes, size, side.exports),
        axes=side.variant.axes,
    )
