"""How figures are spelled: one way for each quantity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kernelexp.facts import metrics
from kernelexp.judge import ranking
from kernelexp.judge.ranking import ComparedFigure
from kernelexp.model.arm import Arm, PublishedResult
from kernelexp.model.experiment import AxisValue, spell, spell_point
from kernelexp.model.measurement import Effect
from kernelexp.model.record import Record, swept_axes, unusual

NONE = "—"  # the figure was not published, or nothing measured it


def time_ms(value: float | None) -> str:
    """Milliseconds, three digits after the point as the log carries them; four below 0.1 ms."""
    if value is None:
        return NONE
    return f"{value:.3f}" if value >= 0.1 else f"{value:.4f}"


def tflops(flops: int, time_us: float) -> str:
    """The rate of useful work; nothing where the problem does not state its work."""
    rate = flops / time_us / 1e6 if time_us else 0.0
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}" if rate else NONE


def value(figure: metrics.Value | None, unit: str = "") -> str:
    """Any figure: counts and large numbers with separators, others with four digits."""
    if figure is None:
        return NONE
    if isinstance(figure, float):
        text = f"{figure:,.0f}" if 1e3 <= abs(figure) < 1e9 else f"{figure:.4g}"
    else:
        text = figure if isinstance(figure, str) else f"{figure:,}"
    return f"{text} {unit}" if unit else text


def axis(value: AxisValue | None) -> str:
    """The value of an axis, which one of two arms may not have."""
    return NONE if value is None else spell(value)


_SCALED: dict[str, tuple[tuple[float, str], ...]] = {
    "B": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")),
    "B/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")),
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us")),
    "Hz": ((1e9, "GHz"), (1e6, "MHz")),
}
_UNITS = {
    **{item: item for item in (*_SCALED, "%", "ms", "cycles")},
    **{"byte": "B", "byte/block": "B", "byte/s": "B/s", "hz": "Hz"},
}


def pair(before: metrics.Value, after: metrics.Value, unit: str) -> tuple[str, str, str]:
    """Two values of one figure and their common unit: ("1.157", "1.017", "ms").

    Counts are whole, with separators, and have no unit: their label names what is counted. Sizes
    and times are in the unit that suits the larger of both.
    """
    unit = _UNITS.get(unit, "")
    if isinstance(before, str) or isinstance(after, str):
        return value(before), value(after), unit
    largest = max(abs(before), abs(after))
    divisor, name = next(
        ((size, name) for size, name in _SCALED.get(unit, ()) if largest >= size), (1.0, unit)
    )
    if unit == "ms":  # with three decimals both, as everywhere
        return f"{before:.3f}", f"{after:.3f}", unit
    return _number(before / divisor), _number(after / divisor), name


def _number(number: float) -> str:
    if float(number).is_integer() and abs(number) < 1e15:
        return f"{int(number):,}"
    return f"{number:,.0f}" if abs(number) >= 1e3 else f"{number:.4g}"


def growth(figure: ComparedFigure) -> str:
    """The relative change of a figure in a few characters: "+35.4%", "x 5,228", "new", "gone"."""
    before, after, change = figure.before, figure.after, figure.change
    if before == after:
        return "same"
    if isinstance(before, str) or isinstance(after, str) or change is None:
        return "changed" if isinstance(before, str) or isinstance(after, str) else "new"
    if not after:
        return "gone"
    if change >= 10:
        return f"x {ranking.factor(before, after):,.0f}"
    return f"{100 * change:+.1f}%"


def change(baseline: metrics.Value | None, candidate: metrics.Value | None) -> str:
    """The difference of two counts, with its sign; nothing where there is none."""
    if not isinstance(baseline, int | float) or not isinstance(candidate, int | float):
        return ""
    return f"{candidate - baseline:+,}" if candidate != baseline else ""


def relative(difference: ranking.Difference) -> str:
    """The relative change of a figure: "+12.5%"; nothing where it was zero, or is not a number."""
    if difference.change is None or difference.metric.unit == "%":
        return ""
    return f"{100 * difference.change:+.1f}%"


def percent(ratio: float) -> str:
    """A time ratio as a change: 0.9876 is -1.24%; beyond ten times it only says so."""
    if ratio >= 11:
        return "over +1,000%"
    change = round(100 * (ratio - 1), 2)
    return f"{change:+.2f}%" if change else "0.00%"


def interval(effect: Effect) -> str:
    """The ends of an effect's interval: "-1.31% to -1.17%".

    One process gives no interval (its low end is 0).
    """
    if effect.low <= 0:
        return "no interval"
    _, low, high = effect.printed
    return f"{percent(low)} to {percent(high)}"


def effect(change: Effect | None) -> str:
    """The change of time with its interval: "-1.24% (-1.31% to -1.17%)"; empty for none."""
    return f"{ratio(change)} ({interval(change)})" if change else ""


def ratio(change: Effect | None) -> str:
    """The change of time, or of what a program prints instead: "-1.24%"; empty for none."""
    return percent(change.printed[0]) if change else ""


def judged(arms: Iterable[Arm]) -> str:
    """Names the figure that programs were judged by, where it is not a time; else empty."""
    return next((arm.measured.judged for arm in arms if arm.measured and arm.measured.judged), "")


def compared(arms: Iterable[Arm]) -> str:
    """Names the quantity whose change is given and of which less is better: time, comparisons, 1 /
    bandwidth."""
    arms = [*arms]
    name = judged(arms)
    results = [arm.measured.printed[name] for arm in arms if arm.measured and name]
    return f"1 / {name}" if any(result.better == "more" for result in results) else name or "time"


def head_of(arms: Iterable[Arm]) -> str:
    """The head of a column of times, `cell_of` of each arm: ms, or "bandwidth, GB/s"."""
    for arm in arms:
        if arm.measured and (name := arm.measured.judged):
            return metrics.spell_printed(name, arm.measured.printed[name].unit)
    return "ms"


def cell_of(arm: Arm | None) -> str:
    """The arm's time, or what a program was judged by instead, without a unit."""
    if arm and arm.measured and arm.measured.judged:
        return value(arm.measured.printed[arm.measured.judged].value)
    return time_of(arm)


def timed(arm: Arm) -> str:
    """The arm's time with its unit, or what it was judged by instead: "0.295 ms", "812 GB/s"."""
    text = time_of(arm)
    return text if arm.measured and arm.measured.judged else f"{text} ms"


def conditions(record: Record | None) -> str:
    """Those of a record's times that are not the usual ones, as in ", size small"."""
    return "".join(f", {item}" for item in unusual(record)) if record else ""


def standing_conditions(record: Record | None) -> str:
    """Unusual conditions of an experiment's standing record, and the number of its sizes."""
    if record is None or not record.sizes:
        return conditions(record)
    warm = [item for item in unusual(record) if not item.startswith("size ")]
    return "".join(f", {item}" for item in (f"{len(record.sizes)} sizes", *warm))


def time_of(arm: Arm | None) -> str:
    """The arm's time in ms: measured, else as it was published, else nothing.

    Of a program that was judged by another figure, that one with its unit.
    """
    if arm and arm.measured and arm.measured.judged:
        result = arm.measured.printed[arm.measured.judged]
        return value(result.value, result.unit)
    if arm and arm.measured and arm.measured.time_us is not None:
        return time_ms(arm.measured.time_us / 1000)
    return published_time(arm.published) if arm and arm.published else NONE


def tflops_of(arm: Arm | None) -> str:
    """The arm's rate, measured or as it was published."""
    if arm and arm.measured and arm.measured.time_us is not None:
        return tflops(arm.measured.flops, arm.measured.time_us)
    return published_tflops(arm.published) if arm and arm.published else NONE


def registers_of(arm: Arm | None) -> str:
    """Registers per thread: of the build that was measured, or as they were published."""
    if arm and arm.published:
        result = arm.published
        return NONE if result.registers is None else str(result.registers)
    return value(metrics.read("launch__registers_per_thread", arm)) if arm else NONE


def published_time(result: PublishedResult) -> str:
    """Milliseconds as they were published: a range as a range, a rounded figure with its tilde."""
    text = NONE if result.time_ms is None else f"{result.time_ms:.3f}"
    if result.time_ms_to is not None:
        text += f" to {result.time_ms_to:.3f}"
    return _tilde(text, result)


def published_change(was: PublishedResult | None, now: PublishedResult | None) -> str:
    """The change of time between two published figures, rounded as they are; else empty."""
    if not (was and now and was.time_ms and now.time_ms):
        return ""
    if was.time_ms_to is not None or now.time_ms_to is not None:
        return ""
    tilde = "~" if was.approximate or now.approximate else ""
    return f"{tilde}{100 * (now.time_ms / was.time_ms - 1):+.1f}%"


def published_tflops(result: PublishedResult) -> str:
    if result.tflops is None:
        return _tilde(NONE, result)
    return _tilde(f"{result.tflops:{'.3g' if result.tflops < 10 else '.0f'}}", result)


def published_line(result: PublishedResult) -> str:
    """All that was published about a variant, in a line."""
    parts = []
    if result.time_ms is not None:
        parts.append(f"{published_time(result)} ms")
    if result.tflops is not None:
        parts.append(f"{published_tflops(result)} TFLOPS")
    if result.registers is not None:
        parts.append(f"{result.registers} registers")
    return ", ".join(parts) or "no figures"


def _tilde(text: str, result: PublishedResult) -> str:
    return f"~{text}" if result.approximate and text != NONE else text


def held(record: Record, defaults: Mapping[str, Any]) -> str:
    """Spells the conditions of a sweep's times besides its axes that are not the default, as in ";
    head_dim=128, size long128"."""
    axes = {
        axis: own
        for axis, own in held_axes(record).items()
        if axis in defaults
        and spell(own) != spell(defaults[axis])
        and f"{axis}=" not in record.title
    }
    words = (spell_point(axes) if axes else "") + conditions(record)
    return f"; {words.removeprefix(', ')}" if words else ""


def held_axes(record: Record) -> dict[str, AxisValue]:
    """The axes of a sweep that all of its arms have one value of, with it."""
    swept = swept_axes(record)
    return {axis: own for axis, own in record.baseline.axes.items() if axis not in swept}
