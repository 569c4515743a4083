"""Points on a kernel's axes: whether their axes and values exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kernelexp.model.axes import AxisValue, Point, spell
from kernelexp.model.errors import join, suggest
from kernelexp.model.experiment import Axis
from kernelexp.model.text import quote


def check_point(point: Point, axes: Mapping[str, Axis]) -> Iterator[tuple[str, str]]:
    """Axis and complaint, for each axis or value of `point` that does not exist."""
    for name, value in point.items():
        if name not in axes:
            none = ": the kernel has none; kernelexp adopt --axis makes one of a source's number"
            yield name, f"unknown axis {quote(name)}{suggest(name, axes) if axes else none}."
        elif not contains(axes[name].values, value):
            yield name, _refuse(name, axes[name].values, value)


def _refuse(axis: str, allowed: Sequence[AxisValue], value: AxisValue) -> str:
    """The sentence on a value that an axis does not have."""
    meant = next((axis_value for axis_value in allowed if spell(axis_value) == spell(value)), None)
    if meant is not None:
        wanted, given = kind_of_value(meant), kind_of_value(value)
        return (
            f"axis {quote(axis)} takes {wanted} {spell(meant)}, but this is {given}: "
            f"write {'it in quotes' if isinstance(meant, str) else 'it without quotes'}."
        )
    words = [spell(axis_value) for axis_value in allowed]
    # Numbers are not misspelt: 512 is nothing like 128.
    spelled = spell(value)
    hint = f"; known: {join(words)}" if spelled.isdigit() else suggest(spelled, words)
    return f"axis {quote(axis)} has no value {quote(spelled)}{hint}."


def kind_of_value(value: AxisValue) -> str:
    if isinstance(value, str):
        return "the text"
    return "the value" if isinstance(value, bool) else "the number"


def contains(values: Iterable[AxisValue], value: AxisValue) -> bool:
    return any(same(axis_value, value) for axis_value in values)


def same(a: AxisValue, b: AxisValue) -> bool:
    return type(a) is type(b) and a == b  # true is not 1


def join_values(values: Iterable[AxisValue]) -> str:
    return join(spell(value) for value in values)
