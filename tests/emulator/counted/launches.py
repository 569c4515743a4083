"""The launches by groups, each with the code that ptxas makes of its program."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from conformance import counting
from conformance.case import Case
from conformance.cases import AREAS
from harness import assemble, compile_cu

from warpsim.front.sass import cubin as cubins
from warpsim.launch import of_entries

from . import own
from .program import TARGET, Program, checkout, compile_program
from .public import PUBLIC
from .sgemm import SGEMM

COUNTED = tuple(area for area in counting.AREAS if area != "sparse")
"""ncu's counts of sparse programs are in conformance/golden/counters.csv only."""


class Code(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A program as PTX, and what ptxas makes of it."""

    name: str
    ptx: str
    cubin: bytes
    listing: str
    """What cuobjdump prints of the cubin."""

    def digest(self, entry: str) -> str:
        """Of an entry's instructions: they alone decide what is counted."""
        return hashlib.sha256(cubins.read(self.cubin, entry).code).hexdigest()[:16]


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A launch, whose entry is a symbol of the cubin."""

    code: Code
    case: Case


def of_program(program: Program) -> list[Made]:
    """A public program's; none without a checkout of its repository."""
    root = checkout(program)
    if root is None:
        return []
    with tempfile.TemporaryDirectory() as scratch:
        ptx = compile_program(program, root, Path(scratch))
    return _made(_assembled(program.name, ptx), program.runs())


def of_area(name: str) -> list[Made]:
    """Those of an area of the conformance suite."""
    area = AREAS[name]
    ptx = compile_cu(area.source, target=TARGET) if area.source else area.origin()
    return _made(_assembled(name, ptx), area.cases())


def of_variant(name: str) -> list[Made]:
    """That of one of this repository's variants, as the project builds it."""
    (variant,) = own.variants([name])
    files = variant.files
    code = Code(
        name=name,
        ptx=files.ptx.read_text(),
        cubin=files.cubin.read_bytes(),
        listing=files.listing.read_text("utf-8", "replace"),
    )
    return _made(code, [variant.case])


def _assembled(name: str, ptx: str) -> Code:
    cubin, listing = assemble(ptx, TARGET)
    return Code(name=name, ptx=ptx, cubin=cubin, listing=listing)


def _made(code: Code, cases: Iterable[Case]) -> list[Made]:
    symbols = cubins.entries(code.cubin)
    return [
        Made(
            code=code,
            case=msgspec.structs.replace(case, launch=of_entries(case.launch, symbols)),
        )
        for case in cases
    ]


GROUPS: Mapping[str, tuple[Callable[..., list[Made]], tuple[object, ...]]] = {
    "sgemm": (of_program, (SGEMM,)),
    "public": (of_program, PUBLIC),
    "own": (of_variant, own.SIMPLE),
    "conformance": (of_area, COUNTED),
    "hopper": (of_variant, own.HOPPER),
}
"""What makes the launches of a group, and of what."""


def group(name: str) -> Iterator[Made]:
    make, whole = GROUPS[name]
    for part in whole:
        yield from make(part)
