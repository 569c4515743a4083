"""Figures that are named by what was counted or printed, so that the evidence has their names."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from kernelexp.facts import counters, derived
from kernelexp.facts.counters import Better
from kernelexp.facts.metrics.metric import Metric, Value
from kernelexp.model.arm import Arm, EmulatedEvidence

BY_PIPE = "sass_instructions_"
"""Before the name of a pipe: instructions in the code, which versions may put with other pipes."""
PRINTED = "printed_"
"""Before the name of what a program prints."""
_UNITS = ("sectors", "wavefronts")


def figures(arm: Arm) -> Iterator[tuple[Metric, Value]]:
    """Instructions by pipe, what a program printed, a profile's figures, then counters of
    emulations: a figure that was profiled goes before an emulation's count of the same name."""
    for pipe, count in _pipes(arm).items():
        yield of_pipe(pipe), count
    for name, result in (arm.measured.printed if arm.measured else {}).items():
        yield of_printed(name, result.unit, result.better), result.value
    if arm.profiled:
        for name, value in (*arm.profiled.figures.items(), *derived.derive(arm.profiled.figures)):
            if _is_figure(value):
                yield _of_profile(name, arm.profiled.units.get(name, "")), value
    for counts in _counts(arm):
        for counter, count in counts.counters.items():
            yield of_counter(counter), count


def _pipes(arm: Arm) -> dict[str, int]:
    code = arm.build or arm.program
    # Older records have FMA and LSU where ncu has fma and lsu.
    return {pipe.lower(): count for pipe, count in code.pipes.items()} if code else {}


def of_printed(name: str, unit: str, better: Better) -> Metric:
    """Returns the metric of a printed figure; unit and direction are as its project says."""

    def read(arm: Arm) -> Value | None:
        result = arm.measured.printed.get(name) if arm.measured else None
        return result.value if result else None

    return Metric(
        name=f"{PRINTED}{name}",
        label=spell_printed(name, unit),
        kind="measured",
        unit=unit,
        better=better,
        group="time",
        read=read,
    )


def printed(arm: Arm) -> dict[str, float]:
    """The values of what a program printed, by the names of their metrics."""
    results = arm.measured.printed if arm.measured else {}
    return {f"{PRINTED}{name}": result.value for name, result in sorted(results.items())}


def spell_printed(name: str, unit: str) -> str:
    """Returns the name of a printed figure in a table: "bandwidth, GB/s"."""
    return f"{name}, {unit}" if unit and unit != name else name


@functools.cache
def of_pipe(pipe: str) -> Metric:
    return Metric(
        name=f"{BY_PIPE}{pipe}",
        label=f"  {pipe}",
        kind="built",
        group="instructions",
        read=lambda arm: _pipes(arm).get(pipe, 0) if arm.is_built else None,
    )


@functools.lru_cache(maxsize=8192)
def of_counter(counter: str) -> Metric:
    isa = "ptx" if counter.startswith(counters.PTX) else "sass"

    def read(arm: Arm) -> Value | None:
        of_isa = (count for count in _counts(arm) if count.isa == isa)
        return next((evidence.counters.get(counter, 0) for evidence in of_isa), None)

    return Metric(
        name=counter,
        label=counters.describe(counter).label,
        kind="emulated",
        unit=next((unit for unit in _UNITS if unit in counter), ""),
        better="" if "mbarrier_wait" in counter else "less",  # how often it looks again is noise
        group=counters.describe(counter).group,
        read=read,
    )


def _is_figure(value: Value | None) -> bool:
    """ncu writes nan for 0 of 0."""
    return isinstance(value, str) or (value is not None and math.isfinite(value))


@functools.lru_cache(maxsize=8192)
def _of_profile(name: str, unit: str) -> Metric:
    known = counters.describe(name)

    def read(arm: Arm) -> Value | None:
        if arm.profiled is None:
            return None
        value = arm.profiled.figures.get(name)
        if value is None and derived.is_derived(name):
            value = dict(derived.derive(arm.profiled.figures)).get(name)
        return value if _is_figure(value) else None

    return Metric(
        name=name,
        label=known.label,
        kind="profiled",
        unit=known.unit or unit,
        better=known.better,
        group=known.group,
        read=read,
    )


def _counts(arm: Arm) -> tuple[EmulatedEvidence, ...]:
    """The emulations that counters are read from: of SASS, under ncu's names, and of PTX."""
    ptx = arm.executed if arm.executed and arm.executed.isa == "ptx" else None
    return tuple(evidence for evidence in (arm.counted, ptx) if evidence and evidence.finished)
