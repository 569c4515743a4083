"""The figures with a fixed name: a new one is one entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kernelexp.facts import counters
from kernelexp.facts.counters import Better
from kernelexp.facts.metrics.metric import Kind, Metric, Value
from kernelexp.model.arm import (
    Arm,
    BuildEvidence,
    EmulatedEvidence,
    MeasuredEvidence,
    ProgramEvidence,
    ProgramKernel,
    PublishedResult,
)

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


def _emulated(
    read: Callable[[EmulatedEvidence], Value],
) -> _Source:
    return _entry("emulated", lambda arm: arm.executed, read)


def _measured(
    read: Callable[[MeasuredEvidence], Value | None],
) -> _Source:
    return _entry("measured", lambda arm: arm.measured, read)


def _published(
    read: Callable[[PublishedResult], Value | None],
) -> _Source:
    return _entry("published", lambda arm: arm.published, read)


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
