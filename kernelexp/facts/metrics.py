"""The figures of an arm by name: fixed ones, of which a new one is one entry, and those named by
what was counted or printed, so that the evidence has their names.

Pages, lists, gates, the log, CSV and JSON read figures from here. A figure that carries a name of
ncu's equals what ncu shows, be it profiled or counted in an emulation of SASS; every other one has
a name of its own, and what an emulation counts on PTX begins with ptx__.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, TypeAlias

import msgspec

from kernelexp.facts import counters, derived
from kernelexp.facts.counters import Better
from kernelexp.model.arm import (
    Arm,
    BuildEvidence,
    EmulatedEvidence,
    MeasuredEvidence,
    ProgramEvidence,
    ProgramKernel,
)
from kernelexp.model.errors import suggest
from kernelexp.model.text import quote

Kind: TypeAlias = Literal["built", "emulated", "modelled", "measured", "profiled", "published"]
Value: TypeAlias = int | float | str


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of an arm."""

    name: str
    label: str
    """As a table shows it."""
    kind: Kind
    unit: str = ""
    better: Better = ""
    """Which way is better; empty where that depends on the kernel."""
    group: str = counters.OTHER
    """What it tells about, one of counters.GROUPS."""
    read: Callable[[Arm], Value | None]
    """None where the arm lacks this evidence."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A metric with the value that one arm has."""

    metric: Metric
    value: Value


_Source: TypeAlias = tuple[Kind, Callable[[Arm], Value | None]]
"""The kind of evidence that has a figure, and how it is read."""


def _entry(kind: Kind, part: Callable[[Arm], Any], read: Callable[[Any], Value | None]) -> _Source:
    def of_arm(arm: Arm) -> Value | None:
        evidence = part(arm)
        return None if evidence is None else read(evidence)

    return kind, of_arm


def _built(
    read: Callable[[BuildEvidence], Value | None],
    linked: Callable[[ProgramEvidence], Value | None] = lambda _program: None,
) -> _Source:
    """Returns the source of a built figure: of a kernel, or of a program with several."""

    def of_arm(arm: Arm) -> Value | None:
        if arm.program:
            return linked(arm.program)
        return read(arm.build) if arm.build else None

    return "built", of_arm


def _most(part: Callable[[ProgramKernel], int]) -> Callable[[ProgramEvidence], Value | None]:
    """The largest of a program's kernels."""
    return lambda program: max(map(part, program.kernels), default=None)


def _total(part: Callable[[ProgramKernel], int]) -> Callable[[ProgramEvidence], Value | None]:
    """Returns a function that sums over all of a program's kernels."""
    return lambda program: sum(map(part, program.kernels)) if program.kernels else None


_emulated = partial(_entry, "emulated", lambda arm: arm.executed)
_measured = partial(_entry, "measured", lambda arm: arm.measured)
_published = partial(_entry, "published", lambda arm: arm.published)


def _rate(tflops: float) -> float:
    """Rounds a rate to a tenth; a small one to four digits."""
    return round(tflops, 1) if tflops >= 10 else float(f"{tflops:.4g}")


def _percent(taken: MeasuredEvidence, end: int) -> float | None:
    """The change of the time, or an end of its interval; None where no time was compared."""
    if taken.effect is None or taken.judged:
        return None
    effect = taken.effect
    return round(100.0 * ((effect.ratio, effect.low, effect.high)[end] - 1.0), 4)


# Name, label, unit, which way is better, and where the figure is read.
_TABLE: tuple[tuple[str, str, str, Better, _Source], ...] = (
    ("launch__registers_per_thread", "registers per thread", "", "less",
     _built(lambda build: build.resources.registers, _most(lambda kernel: kernel.registers))),
    ("spill_store_bytes", "spill stores", "B", "less",
     _built(lambda build: build.resources.spill_store_bytes,
            _total(lambda kernel: kernel.spill_store_bytes))),
    ("spill_load_bytes", "spill loads", "B", "less",
     _built(lambda build: build.resources.spill_load_bytes,
            _total(lambda kernel: kernel.spill_load_bytes))),
    ("stack_bytes", "stack", "B", "less",
     _built(lambda build: build.resources.stack_bytes, _most(lambda kernel: kernel.stack_bytes))),
    ("launch__shared_mem_per_block_static", "static shared memory", "B", "less",
     _built(lambda build: build.resources.static_smem_bytes,
            _most(lambda kernel: kernel.static_smem_bytes))),
    ("launch__shared_mem_per_block_dynamic", "dynamic shared memory", "B", "less",
     _built(lambda build: build.resources.dynamic_smem_bytes)),
    ("launch__block_size", "threads per CTA", "", "",
     _built(lambda build: build.resources.threads)),
    ("ctas_per_cluster", "CTAs per cluster", "", "", _built(lambda build: build.resources.cluster)),
    ("ctas_per_sm", "CTAs per SM", "", "", _built(lambda build: build.occupancy.ctas_per_sm)),
    ("warps_per_sm", "warps per SM", "", "more",
     _built(lambda build: build.occupancy.warps_per_sm)),
    ("occupancy_limit", "occupancy limited by", "", "",
     _built(lambda build: ", ".join(build.occupancy.limited_by))),
    ("sass_bytes", "SASS", "B", "less",
     _built(lambda build: build.resources.sass_bytes, _total(lambda kernel: kernel.sass_bytes))),
    ("sass_instructions", "SASS instructions", "", "less",
     _built(lambda build: sum(build.opcodes.values()),
            lambda program: sum(program.opcodes.values()) or None)),
    ("emulated_wrong_elements", "wrong elements", "", "less",
     _emulated(lambda run: sum(array.wrong for array in run.arrays))),
    ("emulated_findings", "findings", "", "less", _emulated(lambda run: len(run.findings))),
    ("time_ms", "time", "ms", "less",
     _measured(lambda taken: None if taken.time_us is None else round(taken.time_us / 1000, 6))),
    ("tflops", "TFLOPS", "", "more",
     _measured(lambda taken: _rate(taken.flops / taken.time_us / 1e6)
               if taken.flops and taken.time_us else None)),
    ("change_percent", "change of time", "%", "less",
     _measured(lambda taken: _percent(taken, 0))),
    ("change_low_percent", "change of time, lower end", "%", "less",
     _measured(lambda taken: _percent(taken, 1))),
    ("change_high_percent", "change of time, upper end", "%", "less",
     _measured(lambda taken: _percent(taken, 2))),
    ("published_time_ms", "published time", "ms", "less",
     _published(lambda result: result.time_ms)),
    ("published_time_ms_to", "published time, upper end", "ms", "less",
     _published(lambda result: result.time_ms_to)),
    ("published_tflops", "published TFLOPS", "", "more", _published(lambda result: result.tflops)),
    ("published_registers", "published registers per thread", "", "less",
     _published(lambda result: result.registers)),
)  # fmt: skip


def _group(name: str, kind: Kind) -> str:
    known = counters.describe(name).group
    if known != counters.OTHER:
        return known
    return {"built": "build", "measured": "time", "published": "time"}.get(kind, counters.OTHER)


METRICS: dict[str, Metric] = {
    name: Metric(
        name=name,
        label=label,
        unit=unit,
        better=better,
        kind=kind,
        read=read,
        group=_group(name, kind),
    )
    for name, label, unit, better, (kind, read) in _TABLE
}


BY_PIPE = "sass_instructions_"
"""Before the name of a pipe: instructions in the code, which versions may put with other pipes."""
_PRINTED = "printed_"
"""Before the name of what a program prints."""
_UNITS = ("sectors", "wavefronts")


def _of_evidence(arm: Arm) -> Iterator[tuple[Metric, Value]]:
    """Instructions by pipe, what a program printed, a profile's figures, then counters of
    emulations: a figure that was profiled goes before an emulation's count of the same name."""
    for pipe, count in _pipes(arm).items():
        yield _of_pipe(pipe), count
    for name, result in (arm.measured.printed if arm.measured else {}).items():
        yield _of_printed(name, result.unit, result.better), result.value
    if arm.profiled:
        for name, value in (*arm.profiled.figures.items(), *derived.derive(arm.profiled.figures)):
            if _is_figure(value):
                yield _of_profile(name, arm.profiled.units.get(name, "")), value
    for counts in _counts(arm):
        for counter, count in counts.counters.items():
            yield _of_counter(counter), count


def _pipes(arm: Arm) -> dict[str, int]:
    code = arm.build or arm.program
    # Older records have FMA and LSU where ncu has fma and lsu.
    return {pipe.lower(): count for pipe, count in code.pipes.items()} if code else {}


def _of_printed(name: str, unit: str, better: Better) -> Metric:
    """Returns the metric of a printed figure; unit and direction are as its project says."""

    def read(arm: Arm) -> Value | None:
        result = arm.measured.printed.get(name) if arm.measured else None
        return result.value if result else None

    return Metric(
        name=f"{_PRINTED}{name}",
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
    return {f"{_PRINTED}{name}": result.value for name, result in sorted(results.items())}


def spell_printed(name: str, unit: str) -> str:
    """Returns the name of a printed figure in a table: "bandwidth, GB/s"."""
    return f"{name}, {unit}" if unit and unit != name else name


@functools.cache
def _of_pipe(pipe: str) -> Metric:
    return Metric(
        name=f"{BY_PIPE}{pipe}",
        label=f"  {pipe}",
        kind="built",
        group="instructions",
        read=lambda arm: _pipes(arm).get(pipe, 0) if arm.is_built else None,
    )


@functools.lru_cache(maxsize=8192)
def _of_counter(counter: str) -> Metric:
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


CHANGES = ("change_percent", "change_low_percent", "change_high_percent")
"""Figures of a candidate that compare it with its baseline already."""

# What ncu names has `__`, but for the counters of its source page.
_NCU = re.compile(r".*__|memory_|instexecuted|thread_instexecuted|local_|group:")


MODELLED = Metric(
    name="modelled",
    label="modelled cycles",
    kind="modelled",
    better="less",
    read=lambda arm: None,
)
"""What a search without a GPU may go by; no arm has it, as it is no evidence of one."""


def kind_of(name: str) -> Kind | None:
    """The kind of evidence that has a figure of this name; None where nothing could have it.

    A name of ncu's is that of a profile's figure, which an emulation of SASS may have counted too;
    an emulation's counters of PTX have their own.
    """
    if name in METRICS:
        return METRICS[name].kind
    if name.startswith(BY_PIPE):
        return "built"
    if name.startswith(counters.PTX):
        return "emulated"
    if name.startswith(_PRINTED):
        return "measured"
    return "profiled" if _NCU.match(name) else None


def find(name: str) -> Metric | None:
    """The metric of a name, those of the families included; None for figures of a profile."""
    if name in METRICS:
        return METRICS[name]
    if name.startswith(BY_PIPE):
        return _of_pipe(name.removeprefix(BY_PIPE))
    if name.startswith(_PRINTED):
        return _of_printed(name.removeprefix(_PRINTED), "", "")
    return _of_counter(name) if kind_of(name) == "emulated" else None


def searchable(name: str) -> Metric | None:
    """The metric that a search goes by: as find(), and what an emulation of SASS counts under
    ncu's name."""
    if name == MODELLED.name:
        return MODELLED
    return find(name) or (_of_counter(name) if kind_of(name) == "profiled" else None)


def unknown(name: str) -> str:
    """A sentence where no figure has this name; else empty."""
    if name == MODELLED.name or kind_of(name):
        return ""
    return f"no figure is called {quote(name)}{suggest(name, METRICS)}, and ncu's names."


def read(name: str, arm: Arm, kind: Kind | None = None) -> Value | None:
    """One figure of an arm by its name, of a kind if one is given; None where the arm does not
    have it."""
    if name in METRICS:
        return METRICS[name].read(arm)
    every = _of_evidence(arm)
    named = (
        figure for figure in every if figure[0].name == name and kind in (None, figure[0].kind)
    )
    return next((value for _, value in named), None)


def figures(arm: Arm, *kinds: Kind) -> dict[str, Figure]:
    """All figures of an arm by name, of the given kinds or of every kind, in the table's order."""
    figures_read: dict[str, Figure] = {}
    fixed = ((metric, metric.read(arm)) for metric in METRICS.values())
    for metric, value in itertools.chain(fixed, _of_evidence(arm)):
        if value is not None and (not kinds or metric.kind in kinds):
            # What was built goes before what a profile has under the same name of ncu's.
            figures_read.setdefault(metric.name, Figure(metric=metric, value=value))
    return figures_read


BUILD_SUMMARY: dict[str, tuple[str, ...]] = {
    "registers": ("launch__registers_per_thread",),
    "spill_bytes": ("spill_store_bytes", "spill_load_bytes"),
    "stack_bytes": ("stack_bytes",),
    "smem_bytes": (
        "launch__shared_mem_per_block_static",
        "launch__shared_mem_per_block_dynamic",
    ),
    "sass_bytes": ("sass_bytes",),
}
"""What a build comes to in five figures, each the sum of some; less is better in all of them."""


def summarize(arm: Arm) -> dict[str, int]:
    """The figures of BUILD_SUMMARY; empty for an arm that is not built."""
    if not arm.is_built:
        return {}
    return {
        name: sum(value for part in parts if isinstance(value := read(part, arm), int))
        for name, parts in BUILD_SUMMARY.items()
    }
