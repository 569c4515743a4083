"""A launch as CUDA writes it: scan<64><<<n / 512, 256>>>(x, y, sums, n), of which only the name is
needed."""

from __future__ import annotations

import math
import re

import msgspec

from kernelexp.model.errors import UsageError
from kernelexp.services.adopt import expressions
from kernelexp.services.adopt.answers import LaunchShape
from kernelexp.services.adopt.entry import ELEMENTS, bare, opening, python_name, split, three
from warpsim.dtypes import SIZES
from warpsim.launch import Dim3

THREADS_PER_CTA, THREADS_IN_Z = 1024, 64
"""Of all architectures."""
CTAS_PER_CLUSTER = 16
"""With cudaFuncAttributeNonPortableClusterSizeAllowed; without it, 8."""
_NULL = ("nullptr", "NULL")


class WantedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A launch that a person wants, as far as they have described it."""

    entry: str = ""
    """The kernel, with its template arguments; empty for the only one."""
    shape: LaunchShape = LaunchShape()
    arguments: tuple[str, ...] = ()
    """Names of arrays and scalars of the job, or numbers and expressions of its sizes; an empty one
    is the parameter's own name."""

    @property
    def plain(self) -> str:
        """The name without namespaces and template arguments."""
        return self.entry.partition("<")[0].strip().rpartition("::")[2]


def parse(text: str) -> WantedLaunch:
    """UsageError where it is none."""
    head, opened, rest = text.partition("<<<")
    if (signature := head.strip()).startswith("void "):  # as the compiler prints an instance
        closes = signature.endswith(")")
        head = signature[len("void ") : opening(signature) if closes else None]
    shape, arguments = LaunchShape(), ""
    if opened:
        inside, closed, rest = rest.partition(">>>")
        if not closed:
            raise UsageError(f"--entry {text!r}: the launch's <<< has no >>>.")
        shape = _shape(inside)
        arguments = rest.strip()
    elif head.rstrip().endswith(")"):
        place = opening(head.rstrip())
        head, arguments = head[:place], head[place:].strip()
    if arguments and not re.fullmatch(r"\(.*\);?", arguments, re.S):
        raise UsageError(f"--entry {text!r} should be as in 'scan<64><<<n/256, 256>>>(x, y, n)'.")
    return WantedLaunch(
        entry=head.strip(), shape=shape, arguments=_arguments(text, arguments.strip("; ")[1:-1])
    )


def block_shape(text: str, option: str = "--block") -> LaunchShape:
    """256 or 16,16, or expressions of sizes as in 32*rows; UsageError where it is none."""
    if not re.search(r"[A-Za-z_]", text):
        return LaunchShape(block=parse_block(text, option))
    extents = expressions.parse_expressions(text)
    if len(extents) > 3:
        raise UsageError(f"{option} {text!r} should be threads in x, y and z, as in 32*rows,4.")
    return LaunchShape(extents=(*extents, "1", "1")[:3])


def parse_block(text: str, option: str = "--block") -> Dim3:
    """256 or 16,16 as three extents; UsageError where it is none."""
    if not re.fullmatch(r"[1-9][0-9]*(,[1-9][0-9]*){0,2}", text.replace(" ", "")):
        raise UsageError(f"{option} {text!r} should be threads in x, y and z, as in 256 or 16,16.")
    x, y, z = three([*map(int, text.split(","))])
    if x * y * z > THREADS_PER_CTA or z > THREADS_IN_Z:
        raise UsageError(
            f"{option} {text}: {x * y * z:,} threads; a CTA has {THREADS_PER_CTA:,} at most, and "
            f"{THREADS_IN_Z} in z."
        )
    return x, y, z


def _shape(inside: str) -> LaunchShape:
    """Parses the shape in `n/256, dim3(16, 16), 1024, cluster(2)`, any part of which may be empty;
    a stream says nothing."""
    parts = [part.strip() for part in split(inside)]
    clusters = [part.removeprefix("cluster") for part in parts if part.startswith("cluster(")]
    parts = [part for part in parts if not part.startswith("cluster(")]
    grid, block, smem = [*map(_extents, parts), "", "", ""][:3]
    return msgspec.structs.replace(
        block_shape(block, "--entry: the block") if block else LaunchShape(),
        grid=expressions.parse_expressions(grid) if grid else (),
        smem=parse_smem(smem) if smem else "",
        cluster=parse_cluster(_extents(clusters[0])) if clusters else (),
    )


def parse_cluster(text: str) -> tuple[str, ...]:
    """2 or 2,1,1, also with constants, as three extents; UsageError where it is none."""
    extents = expressions.parse_expressions(text)
    numbers = [int(extent) for extent in extents if extent.isdigit()]
    if len(extents) > 3 or 0 in numbers or math.prod(numbers) > CTAS_PER_CLUSTER:
        raise UsageError(
            f"--cluster {text!r} should be CTAs in x, y and z, as in 2 or 2,1,1, "
            f"{CTAS_PER_CLUSTER} at most."
        )
    return (*extents, "1", "1")[:3]


def parse_smem(text: str) -> str:
    """Bytes: a number, or an expression of sizes, as in 2*k*sizeof(float)."""
    (only,) = expressions.parse_expressions(_SIZEOF.sub(_size, text))
    return "" if only == "0" else only


_SIZEOF = re.compile(r"sizeof\s*\(((?:[^()]|\([^()]*\))+)\)")
_PREFIX = "sizeof_"
_LETTERS = str.maketrans("<>,:()", "\u1438\u1433\ua4f9\ua4fd\u14a5\u14a3")
_BACK = {new: old for old, new in _LETTERS.items()}
"""Letters of other scripts for what a name in an expression can't have: Storage<64,BN>."""


def _size(match: re.Match[str]) -> str:
    kind = re.sub(r"\s*([<>,:()*])\s*", r"\1", match[1].strip())
    if kind.endswith("*"):
        return "8"
    dtype = ELEMENTS.get(bare(kind))
    word = kind.removeprefix("struct ").translate(_LETTERS)
    return str(SIZES[dtype]) if dtype else f"{_PREFIX}{word}"


def spelled(name: str) -> str:
    """Spells a name in an expression as the source has it: the size of a type of its own as
    sizeof(Storage<64>)."""
    kind = name.removeprefix(_PREFIX)
    return f"sizeof({kind.translate(_BACK)})" if kind != name else name


def _extents(text: str) -> str:
    """`dim3(16, 16)` and `(16, 16)` as 16, 16; an expression stays as it is."""
    stripped = text.strip().removeprefix("dim3").strip()
    whole = stripped.startswith("(") and opening(stripped) == 0
    return stripped[1:-1] if whole else stripped


def _arguments(text: str, inside: str) -> tuple[str, ...]:
    return tuple(_argument(text, part.strip()) for part in split(inside)) if inside else ()


def _argument(text: str, argument: str) -> str:
    if argument in ("", "_"):
        return ""
    if argument in _NULL:
        return "0"
    if argument.isidentifier():
        return python_name(argument)
    if re.fullmatch(r"-?[\d.]+(e-?\d+)?f?", argument):
        return argument.rstrip("f")
    (only,) = expressions.parse_expressions(argument)
    return only
