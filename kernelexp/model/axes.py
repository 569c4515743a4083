"""Points on the axes of a kernel, and how they are spelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

AxisValue: TypeAlias = bool | int | str


Point: TypeAlias = dict[str, AxisValue]
"""A value for each axis (or for some of them, where the rest keeps its default)."""


def holds(point: Mapping[str, AxisValue], axes: Mapping[str, AxisValue]) -> bool:
    """Whether `axes` has every value of `point`, of the same type: 1 is not true."""
    return all(
        name in axes and type(axes[name]) is type(value) and axes[name] == value
        for name, value in point.items()
    )


def spell(value: AxisValue) -> str:
    """An axis value as the command line, the log and the compiler's define spell it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_argument(label: str) -> str:
    """Spells Project.label as commands take it: `gemm@sm_90a: stages=4, x=1` without spaces."""
    return label.removesuffix(": defaults").replace(": ", ":").replace(", ", ",")


def spell_point(point: Mapping[str, AxisValue]) -> str:
    return ", ".join(f"{axis}={spell(value)}" for axis, value in point.items()) or "defaults"
