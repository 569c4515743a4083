"""A kernel to mutate: what the compiler made of it, and a launch with its right result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
import numpy as np

import warpsim as emulator
from warpsim.front.ptx.decode import decode
from warpsim.front.ptx.parser import parse
from warpsim.front.ptx.syntax import Function
from warpsim.launch import Launch

Arrays = Mapping[str, np.ndarray]


class Case(NamedTuple):
    """A launch, and what says whether it wrote what it should."""

    launch: Launch
    arrays: Callable[[], dict[str, np.ndarray]]
    """Fresh arguments."""
    unwritten: tuple[str, ...]
    right: Callable[[Arrays], bool]


class Source(NamedTuple):
    """What a compiler made of a kernel."""

    ptx: str
    entry: str
    exports: Mapping[str, int] = {}
    changed: Mapping[str, str] | None = None
    """PTX of the mutants of its text, by key, if those are the ones to judge."""


class Loaded:
    """A kernel's PTX, parsed: what mutants are made of."""

    def __init__(self, source: Source) -> None:
        self.module = parse(source.ptx)
        self.function = self.module.functions[source.entry]

    def program(self, changed: Function) -> emulator.Module:
        """The module with a changed entry."""
        functions = {**self.module.functions, changed.name: changed}
        module = msgspec.structs.replace(self.module, functions=functions)
        return emulator.Module(entries={changed.name: decode(module, changed.name)})


OF_SOURCE = "source"
"""The kind of all mutants of CUDA text."""


class TextMutant(NamedTuple):
    """A mutant of a kernel's text, and what the compiler made of it."""

    key: str
    ptx: str
    kind: str = OF_SOURCE

    def program(self, loaded: Loaded) -> emulator.Module:
        entry = loaded.function.name
        return emulator.Module(entries={entry: decode(parse(self.ptx), entry)})
