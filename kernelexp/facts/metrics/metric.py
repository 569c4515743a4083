"""A figure's name, its unit, which way is better, and how to read it from an arm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from kernelexp.facts import counters
from kernelexp.facts.counters import Better
from kernelexp.model.arm import Arm

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
