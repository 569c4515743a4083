"""PTX files and cubins to programs by the names of their entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from warpsim.errors import UsageError
from warpsim.front.ptx.decode import decode
from warpsim.front.ptx.faults import MALFORMED, PtxSyntaxError
from warpsim.front.ptx.parser import parse
from warpsim.front.sass import cubin
from warpsim.front.sass import decode as sass
from warpsim.front.sass.faults import CubinError, SassSyntaxError
from warpsim.launch import Launch
from warpsim.lineinfo import Source
from warpsim.machine.core.site import UnsupportedInstruction
from warpsim.machine.schedule.program import DecodedProgram

REFUSALS = (UnsupportedInstruction, PtxSyntaxError, CubinError, SassSyntaxError)
"""What code that cannot be executed raises when it is loaded."""


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """Programs by the names of their entries."""

    entries: Mapping[str, DecodedProgram]
    what: str = "PTX"
    """What they were read from."""


class _Decoded(Mapping[str, DecodedProgram]):
    """Entries, each of which is decoded when it is first asked for."""

    def __init__(self, names: Sequence[str], decode: Callable[[str], DecodedProgram]) -> None:
        self._names = tuple(names)
        self._decode = decode
        self._programs: dict[str, DecodedProgram] = {}

    def __getitem__(self, name: str) -> DecodedProgram:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._programs:
            self._programs[name] = self._decode(name)
        return self._programs[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load(ptx: str) -> Module:
    """Parses a PTX file, and decodes its entry if it has but one; others when they are launched.

    PtxSyntaxError for what can't be read, UnsupportedInstruction for what is not covered.
    """
    syntax = parse(ptx)
    names = [function.name for function in syntax.functions.values() if function.entry]

    def one(name: str) -> DecodedProgram:
        try:
            return decode(syntax, name)
        except MALFORMED as error:
            why = f"{type(error).__name__}: {error}"
            raise PtxSyntaxError(f"entry {name} can't be decoded ({why}).") from error

    return Module(entries=_decoded(names, one))


def load_cubin(
    content: bytes, listing: str, sources: Callable[[str], Mapping[int, Source]] | None = None
) -> Module:
    """Reads a cubin and the listing that `cuobjdump -sass` makes of it; decodes as load() does.

    sources: the lines that the code of an entry comes from, by address.
    CubinError and SassSyntaxError for what can't be read, UnsupportedInstruction for what is not
    covered.
    """

    def one(name: str) -> DecodedProgram:
        return sass.decode(content, listing, name, sources(name) if sources else None)

    return Module(entries=_decoded(cubin.entries(content), one), what="cubin")


def _decoded(names: Sequence[str], decode_one: Callable[[str], DecodedProgram]) -> _Decoded:
    """The entries; if there is but one, it is decoded at once."""
    decoded = _Decoded(names, decode_one)
    if len(decoded) == 1:
        dict(decoded)
    return decoded


def entry_of(module: Module, launch: Launch) -> DecodedProgram:
    """The program of the launch's entry, which must allow the launch."""
    entry = launch.entry
    if entry not in module.entries:
        known = ", ".join(module.entries) or "none"
        raise UsageError(f"the {module.what} has no entry {entry!r}; its entries are {known}.")
    if any(g % c for g, c in zip(launch.grid, launch.cluster, strict=True)):
        raise UsageError(f"grid {launch.grid} is not a multiple of cluster {launch.cluster}.")
    program, threads = module.entries[entry], math.prod(launch.block)
    image = program.image
    if image.cluster is not None and image.cluster != launch.cluster:
        raise UsageError(
            f"{entry} was compiled for clusters of {image.cluster}, not {launch.cluster}."
        )
    if image.max_threads is not None and threads > image.max_threads:
        raise UsageError(
            f"{entry} was compiled for {image.max_threads} threads per CTA at most, not {threads}."
        )
    if image.block is not None and image.block != launch.block:
        raise UsageError(f"{entry} was compiled for CTAs of {image.block}, not {launch.block}.")
    return program
