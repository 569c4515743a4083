"""A measurement for people: times, effects, conditions, and how it is going."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kernelexp.judge.stats import estimate
from kernelexp.measurement import Effect, Estimate, Measurement
from kernelexp.model import Record
from kernelexp.report import figures


def progress_line(phase: str, so_far: Measurement) -> str:
    """What a measurement does now, and the intervals as they narrow."""
    effects = estimate(so_far).effects if len(so_far.workers) > 1 else ()
    return ", ".join([phase, *(spell_effect(effect) for effect in effects)])


def spell_effect(effect: Effect) -> str:
    """The change of time with its interval: "-1.24% (-1.31% to -1.17%)".

    One process gives no interval (low is 0), and two may give one that is wider than any table.
    """
    low, middle, high = (
        f"{100 * (ratio - 1):+.2f}%" if ratio < 11 else "over +1000%"
        for ratio in (effect.low, effect.ratio, effect.high)
    )
    return f"{middle} ({low} to {high})" if effect.low > 0 else f"{middle} (no interval)"


def render(record: Record) -> Iterator[RenderableType]:
    """Times and effects of every arm, then how they were measured."""
    measurement, found = record.measurement, record.estimate
    if measurement is None or found is None:
        return
    yield _table(record, measurement, found)
    yield Text(_method(measurement, found))
    conditions = _conditions(found)
    if conditions:
        yield Text(conditions)
    for failure in measurement.failures:
        yield Text(f"{failure.arm}: {failure.status}: {failure.words}")


def _table(record: Record, measurement: Measurement, found: Estimate) -> Table:
    title = f"measured, {measurement.device.name}"
    header = (title, "ms", "TFLOPS", "against the baseline", "detects")
    table = Table(*header, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for column in table.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    effects = [*found.effects, *found.peers, *([found.placebo] if found.placebo else [])]
    by_arm = {effect.arm: effect for effect in effects}
    for times in found.times:
        effect = by_arm.get(times.arm)
        table.add_row(
            Text(times.arm),
            figures.time_ms(times.median_us / 1000),
            figures.tflops(record.flops, times.median_us),
            Text(spell_effect(effect)) if effect else "",
            f"{100 * effect.detectable:.2f}%" if effect and effect.processes > 1 else "",
        )
    return table


def _method(measurement: Measurement, found: Estimate) -> str:
    pairs = sum(effect.pairs for effect in found.effects[:1])
    dropped = sum(effect.dropped for effect in found.effects[:1])
    level = found.effects[0].level if found.effects else 0.0
    l2 = "L2 flushed" if measurement.options.l2 == "cold" else "L2 warm"
    return (
        f"{pairs:,} pairs in {len(measurement.workers)} processes, {dropped} dropped, "
        f"{100 * level:.4g}% intervals over processes, {l2}, random inputs, "
        f"{measurement.elapsed_s:.0f} s."
    )


def _conditions(found: Estimate) -> str:
    state = found.conditions
    if state is None:
        return ""
    throttle = ", ".join(f"{name} {100 * share:.0f}%" for name, share in state.throttle.items())
    return (
        f"SM {state.sm_clock_mhz:.0f} MHz ({state.sm_clock_low_mhz} to {state.sm_clock_high_mhz}), "
        f"memory {state.memory_clock_mhz:.0f} MHz, {state.power_w:.0f} W, "
        f"{state.temperature_c:.0f} C{'; ' + throttle if throttle else ''}."
    )
