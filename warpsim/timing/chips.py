"""Chips as the model of time takes them to be: parameters, each with its source."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from warpsim.timing.errors import NotModelled

Origin: TypeAlias = Literal["published", "measured", "inferred", "fitted"]
_FOLDER = Path(__file__).with_name("chips")
_HEAD = ("name", "arch", "sms", "clock_hz")


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a chip."""

    value: float
    unit: str
    origin: Origin
    source: str


class TimedChip(msgspec.Struct, frozen=True, kw_only=True):
    """A chip that time can be modelled for."""

    name: str
    arch: str
    sms: int
    clock_hz: float
    """The highest clock of its SMs."""
    parameters: Mapping[str, Parameter]

    def __getitem__(self, name: str) -> float:
        return self.parameters[name].value

    def optional(self, name: str) -> float:
        """A figure, or 0 where the chip has no such unit, or nobody knows."""
        parameter = self.parameters.get(name)
        return parameter.value if parameter else 0.0

    def in_cycles(self, name: str, clock_hz: float, sms: int) -> float:
        """A figure in cycles of an SM, in bytes per cycle of one of `sms` that share it; or 0."""
        parameter = self.parameters.get(name)
        if parameter is None:
            return 0.0
        if parameter.unit.startswith("ns"):
            return parameter.value * clock_hz / 1e9
        if parameter.unit.startswith("B/s"):
            return parameter.value / sms / clock_hz
        return parameter.value

    def altered(self, **values: float) -> TimedChip:
        """The chip with other values, for fits and for tests."""
        changed = {
            name: msgspec.structs.replace(self.parameters[name], value=value)
            for name, value in values.items()
        }
        return msgspec.structs.replace(self, parameters={**self.parameters, **changed})


def names() -> tuple[str, ...]:
    """The chips that there are parameters of."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def path(name: str) -> Path:
    """Where the parameters of a chip stand, if there are any."""
    return _FOLDER / f"{name.casefold()}.toml"


@functools.cache
def find(name: str) -> TimedChip:
    """The parameters of a chip, by its name in any case; NotModelled where there are none."""
    file = path(name)
    if not file.is_file():
        raise NotModelled(f"no time is modelled for {name}: known are {', '.join(names())}.")
    content = tomllib.loads(file.read_text("utf-8"))
    head = {key: content.pop(key) for key in _HEAD}
    return msgspec.convert({**head, "parameters": content}, TimedChip)
