"""How a figure is written: one way for each quantity."""

from __future__ import annotations

from kernelexp import metrics
from kernelexp.arm import Arm, PublishedResult
from kernelexp.measurement import Effect

NONE = "—"  # the figure was not published, or nothing measured it


def time_ms(value: float | None) -> str:
    """Milliseconds, three digits after the point as the log carries them; four below 0.1 ms."""
    if value is None:
        return NONE
    return f"{value:.3f}" if value >= 0.1 else f"{value:.4f}"


def tflops(flops: int, time_us: float) -> str:
    """The rate of useful work; nothing where the problem does not state its work."""
    return f"{flops / time_us / 1e6:.0f}" if flops and time_us else NONE


def value(each: metrics.Value | None, unit: str = "") -> str:
    """Any figure: counts with separators, other numbers with three digits."""
    if each is None:
        return NONE
    text = (
        each if isinstance(each, str) else f"{each:,}" if isinstance(each, int) else f"{each:.4g}"
    )
    return f"{text} {unit}" if unit else text


def change(baseline: metrics.Value | None, candidate: metrics.Value | None) -> str:
    """The difference of two counts, with its sign; nothing where there is none."""
    if not isinstance(baseline, int | float) or not isinstance(candidate, int | float):
        return ""
    return f"{candidate - baseline:+,}" if candidate != baseline else ""


def difference(each: metrics.Difference) -> str:
    """One figure of two arms: "registers per thread 24 → 26"."""
    unit = each.metric.unit if each.metric.unit == "B" else ""
    return f"{each.metric.label.strip()} {value(each.before)} → {value(each.after, unit)}"


def relative(each: metrics.Difference) -> str:
    """The relative change of a figure: "+12.5%"; nothing where it was zero, or is no number."""
    if each.change is None or each.metric.unit == "%":
        return ""
    return f"{100 * each.change:+.1f}%"


def percent(ratio: float) -> str:
    """A time ratio as a change: 0.9876 is -1.24%; beyond ten times it only says so."""
    return f"{100 * (ratio - 1):+.2f}%" if ratio < 11 else "over +1000%"


def interval(effect: Effect) -> str:
    """The ends of an effect's interval: "-1.31% to -1.17%".

    One process gives no interval (its low end is 0).
    """
    if effect.low <= 0:
        return "no interval"
    return f"{percent(effect.low)} to {percent(effect.high)}"


def effect(each: Effect) -> str:
    """The change of time with its interval: "-1.24% (-1.31% to -1.17%)"."""
    return f"{percent(each.ratio)} ({interval(each)})"


def time_of(arm: Arm | None) -> str:
    """The arm's time: measured, else as it was published, else nothing."""
    if arm and arm.measured:
        return time_ms(arm.measured.time_us / 1000)
    return published_time(arm.published) if arm and arm.published else NONE


def tflops_of(arm: Arm | None) -> str:
    """The arm's rate, measured or as it was published."""
    if arm and arm.measured:
        return tflops(arm.measured.flops, arm.measured.time_us)
    return published_tflops(arm.published) if arm and arm.published else NONE


def registers_of(arm: Arm | None) -> str:
    """Registers per thread: of the build that was measured, or as they were published."""
    if arm and arm.published:
        result = arm.published
        return NONE if result.registers is None else str(result.registers)
    return str(arm.build.resources.registers) if arm and arm.build else NONE


def published_time(result: PublishedResult) -> str:
    """Milliseconds as they were published: a range as a range, a rounded figure with its tilde."""
    text = NONE if result.time_ms is None else f"{result.time_ms:.3f}"
    if result.time_ms_to is not None:
        text += f" to {result.time_ms_to:.3f}"
    return _tilde(text, result)


def published_tflops(result: PublishedResult) -> str:
    return _tilde(NONE if result.tflops is None else f"{result.tflops:.0f}", result)


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
