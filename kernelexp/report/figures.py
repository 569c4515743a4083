"""How a figure is written: one way for each quantity."""

from __future__ import annotations

from kernelexp.model import PublishedResult

NONE = "—"  # the figure was not published, or nothing measured it


def time_ms(value: float | None) -> str:
    """Milliseconds with the three digits that the log carries."""
    return NONE if value is None else f"{value:.3f}"


def tflops(flops: int, time_us: float) -> str:
    """The rate of useful work; nothing where the problem does not tell its work."""
    return f"{flops / time_us / 1e6:.0f}" if flops and time_us else NONE


def count(value: int) -> str:
    return f"{value:,}"


def change(baseline: int, candidate: int) -> str:
    """The difference of two counts, with its sign; nothing where there is none."""
    return f"{candidate - baseline:+,}" if candidate != baseline else ""


def published_time(result: PublishedResult) -> str:
    """Milliseconds as they were published: a range as a range, a rounded figure with its tilde."""
    text = time_ms(result.time_ms)
    if result.time_ms_to is not None:
        text += f" to {time_ms(result.time_ms_to)}"
    return _tilde(text, result)


def published_tflops(result: PublishedResult) -> str:
    return _tilde(NONE if result.tflops is None else f"{result.tflops:.0f}", result)


def published_registers(result: PublishedResult) -> str:
    return NONE if result.registers is None else str(result.registers)


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
