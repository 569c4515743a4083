"""Spelling of the figures of sections, with their units."""

from __future__ import annotations

_BASE = {"byte": "B", "bytes": "B", "nsecond": "ns", "second": "s", "hz": "Hz", "inst": ""}
_COUNTED = {"", "inst", "cycle", "cycles", "warp", "sector", "sectors", "block", "thread"}
_SCALES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SCALED = {"B", "B/s", "FLOP/s", "FLOP", "Hz"}


def base(unit: str) -> str:
    """A unit of ncu's as sections write it; counts have none."""
    unit = _BASE.get(unit, unit)
    return "" if unit in _COUNTED else unit


def spell(value: float | None, unit: str = "") -> str:
    """50.12%, 267.34 MB, 0.579 ms, 337,440: with the digits that its unit deserves."""
    if value is None:
        return "not known"
    if unit == "%":
        return f"{value:,.2f}%"
    if unit == "ns":
        value, unit = value / 1e6, "ms"
    if unit == "ms":
        return f"{value:,.3f} ms" if abs(value) >= 0.1 or not value else f"{value:.4f} ms"
    if unit in _SCALED:
        scale, letter = next((item for item in _SCALES if abs(value) >= item[0]), (1.0, ""))
        return f"{value / scale:,.5g} {letter}{unit}"
    number = f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.2f}"
    return f"{number} {unit}" if unit else number
