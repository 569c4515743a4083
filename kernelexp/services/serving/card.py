"""Conditions that a GPU has to meet before a worker times on it.

It is whole (memory errors, rows to be remapped), free (nobody else computes on it), not held down
(heat, power, clocks that somebody set), and a kernel beside itself takes the same time on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from kernelexp.judge.statistics import stats
from kernelexp.judge.verdict import decided
from kernelexp.model.arm import Status
from kernelexp.model.errors import EnvironmentFault
from kernelexp.model.measurement import Device, Measurement, Options
from kernelexp.services import calibration
from kernelexp.system import device as devices
from kernelexp.system.device import DeviceHealth

NONE = "none"
OPTIONS = Options(processes=4, processes_max=8, timing_s=0.5, budget_s=60.0, peers=False)
HELD_DOWN = frozenset(
    {
        "applications_clocks_setting",
        "hw_slowdown",
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
        "hw_power_brake_slowdown",
        "display_clock_setting",
    }
)
"""Reasons for a lower clock that are no part of a healthy card at work; its power limit is."""
TRIES = 2
"""Of 100 sound cards about one seems to differ from itself."""


@contextlib.contextmanager
def proved(
    selector: str | None, nvcc: str | None, say: Callable[[str], object]
) -> Iterator[Device | None]:
    """The GPU that a worker may time on, which no other worker of this machine gets meanwhile.

    None where it is to have none, or where there is none and none was named. EnvironmentFault for
    one that is not fit.
    """
    gpu = None
    if selector != NONE:
        gpu = devices.find(selector) if selector else devices.find_if_any()
    if gpu is None:
        yield None
        return
    with _reserved(gpu):
        health = devices.Monitor(gpu.uuid).health()
        _refuse(gpu, list(faults(health)))
        for attempt in range(TRIES):
            doubts = list(doubts_of(calibration.beside_itself(gpu.uuid, nvcc, OPTIONS)))
            if not doubts:
                break
            if attempt == TRIES - 1:
                _refuse(gpu, doubts)
        say(f"{gpu.name} {gpu.uuid} is fit: whole, free, not held down, and equal to itself.")
        yield gpu


@contextlib.contextmanager
def _reserved(gpu: Device) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(devices.hold(f"worker-{gpu.uuid}"))
        except EnvironmentFault:
            raise EnvironmentFault(
                f"another worker times on {gpu.name} {gpu.uuid}: name another GPU with --device, "
                "or none."
            ) from None
        yield


def _refuse(gpu: Device, sentences: list[str]) -> None:
    if sentences:
        raise EnvironmentFault(f"{gpu.name} {gpu.uuid} is not fit to time on: {sentences[0]}.")


def faults(health: DeviceHealth) -> Iterator[str]:
    """Yields the faults that keep an idle card from being used, as clauses; the worst first."""
    if health.remap_failed:
        yield "a row of its memory could not be remapped: it has to be replaced"
    if health.uncorrected:
        yield f"{health.uncorrected} memory errors were not corrected since it was last reset"
    if health.remap_pending:
        yield "rows of its memory will be remapped: it has to be reset"
    if health.mig:
        yield "it is split into instances (MIG), which share its memory's bandwidth"
    if health.computing:
        others = "process computes" if health.computing == 1 else "processes compute"
        yield f"{health.computing} other {others} on it"
    yield from _held_down(health.throttle)


def _held_down(reasons: tuple[str, ...]) -> Iterator[str]:
    for reason in reasons:
        if reason in HELD_DOWN:
            yield f"its clock is held down ({reason})"


def doubts_of(measurement: Measurement) -> Iterator[str]:
    """Yields the doubts about the card from a kernel beside itself, as clauses."""
    if measurement.invalid:
        yield measurement.invalid.rstrip(".")
    for failure in measurement.failures:
        yield f"the calibration kernel is {failure.status}: {failure.words.rstrip('.')}"
    effects, placebo = stats.ratios(measurement)
    if not effects:
        yield "the calibration kernel could not be timed"
    for effect in effects:
        verdict = decided(effect, placebo)
        if verdict.status is not Status.NEUTRAL:
            ratio = f"{100 * (effect.ratio - 1):+.2f}%"
            words = f"({100 * (effect.low - 1):+.2f}% to {100 * (effect.high - 1):+.2f}%)"
            yield f"a kernel beside itself takes {ratio} {words}"
    reasons = {
        reason
        for worker in measurement.workers
        for block in worker.blocks
        for state in (block.before, block.after)
        for reason in state.throttle
    }
    yield from _held_down(tuple(sorted(reasons)))
