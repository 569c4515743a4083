"""Answers about a compiled kernel that it does not give itself, as far as somebody has said
them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kernelexp.model.errors import UsageError, suggest
from kernelexp.services.adopt import expressions
from kernelexp.services.adopt.entry import KernelParameter
from warpsim.launch import Dim3, Element, Swizzle


class DraftAxis(msgspec.Struct, frozen=True, kw_only=True):
    """An axis that a kernel gets with its draft."""

    values: tuple[int, ...]
    default: int
    about: str


class MapLayout(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor map, as cuTensorMapEncodeTiled is told of it: over a whole array whose rows lie one
    behind the other, where nothing else is said."""

    element: Element
    box: tuple[str, ...]
    """Innermost first, in the notation of a grid."""
    swizzle: Swizzle
    extents: tuple[str, ...] = ()
    """Elements along each dimension, innermost first, in the notation of a grid."""
    strides: tuple[str, ...] = ()
    """Bytes from one index to the next, from the second dimension on, likewise."""


class LaunchShape(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of one launch."""

    block: Dim3 | None = None
    grid: tuple[str, ...] = ()
    """Expressions in the names of integers: parameters, and others that have a value. A quotient
    is rounded up."""
    smem: str = ""
    """Bytes of dynamic shared memory, in the same notation."""
    cluster: tuple[str, ...] = ()
    """CTAs in x, y and z, in the same notation; empty: as it was compiled, or one."""
    extents: tuple[str, ...] = ()
    """Of the block, in the same notation as the grid: where these depend on an axis or a size."""


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The answers about a job: one launch, or several that share their arrays."""

    launches: tuple[LaunchShape, ...] = (LaunchShape(),)
    """In the order of the entries."""
    shapes: dict[str, tuple[str, ...]] = {}
    """Of arrays, by name, in the notation of a grid."""
    workspaces: tuple[str, ...] = ()
    """Arrays that are the kernel's own: all zero before a launch, and no result."""
    between: tuple[str, ...] = ()
    """Arrays that a launch writes for a later one: no result either, and not zero."""
    zeros: tuple[str, ...] = ()
    """Outputs that are all zero before a launch."""
    values: dict[str, int | float] = {}
    """Of scalars, and of sizes that are no parameters, by name."""
    emulated: dict[str, int] = {}
    """Of those that are sizes, the values on the CPU where they differ."""
    references: dict[str, str] = {}
    """Of outputs, by name: torch expressions in the names of inputs (in float64) and scalars."""
    axes: dict[str, DraftAxis] = {}
    """By name, which may occur in the grid."""
    before: dict[str, str] = {}
    """Of arrays, by name: the file (kernelexp.model.stored) of what they hold before a launch."""
    after: dict[str, str] = {}
    """Of outputs, by name: the file of what they should hold after it."""
    maps: dict[str, MapLayout] = {}
    """Of tensor maps, by name."""
    raw: dict[str, bytes] = {}
    """Of structures whose members are not known, by name: their bytes."""

    @property
    def own(self) -> tuple[str, ...]:
        """Arrays that are neither given nor compared."""
        return (*self.workspaces, *self.between)


def completed(shape: LaunchShape, usual: LaunchShape) -> LaunchShape:
    """A launch's own shape, and the usual one where it does not say."""
    threads = shape if shape.block or shape.extents else usual
    return msgspec.structs.replace(
        usual,
        block=threads.block,
        extents=threads.extents,
        grid=shape.grid or usual.grid,
        smem=shape.smem or usual.smem,
        cluster=shape.cluster or usual.cluster,
    )


def is_size(parameter: KernelParameter) -> bool:
    """Whether it is an integer: a size of the problem, as far as anybody can tell."""
    return parameter.scalar is not None and parameter.scalar[0] in "us"


def outputs(values: Sequence[KernelParameter], answers: Answers) -> list[KernelParameter]:
    """The arrays that are written and are not the kernel's own."""
    written = (value for value in values if value.is_array and value.written)
    return [parameter for parameter in written if parameter.name not in answers.own]


def inputs(values: Sequence[KernelParameter], answers: Answers) -> list[KernelParameter]:
    """The arrays that are read: what is written as well is an output too."""
    own_start = (*answers.own, *answers.zeros)
    return [
        value
        for value in values
        if value.name in answers.before
        or (value.is_array and (value.read or not value.written) and value.name not in own_start)
    ]


def read_and_written(values: Sequence[KernelParameter], answers: Answers) -> Iterator[str]:
    """Names of arrays that are read and written, unless it is said what they start as."""
    named = expressions.names_in(answers.references.values())
    known = {*answers.own, *answers.zeros, *answers.before, *named}
    for value in values:
        if value.is_array and value.read and value.written and value.name not in known:
            yield value.name


def texts(answers: Answers) -> Iterator[str]:
    """The expressions in the names of sizes."""
    for launch in answers.launches:
        yield from filter(None, (*launch.grid, *launch.extents, *launch.cluster, launch.smem))
    for shape in answers.shapes.values():
        yield from shape
    for layout in answers.maps.values():
        yield from (*layout.box, *layout.extents, *layout.strides)


def own_sizes(
    values: Sequence[KernelParameter], passed: Sequence[str], answers: Answers
) -> list[str]:
    """Names with a value that are no parameters, but occur in a grid, in a shape or in what is
    passed: sizes that the kernel learns from its grid, or has as constants."""
    known = {value.name for value in values}
    used = expressions.names_in((*texts(answers), *passed))
    return [
        name
        for name, value in answers.values.items()
        if name in used - known and isinstance(value, int)
    ]


def check(
    signature: str, values: Sequence[KernelParameter], own: Sequence[str], answers: Answers
) -> None:
    """UsageError for what no parameter has, and for parameters that launch() can't pass."""
    pointers = [value.name for value in values if value.is_array]
    scalars = [value.name for value in values if not value.is_array]
    sizes = [*(value.name for value in values if is_size(value)), *own]
    results = [output.name for output in outputs(values, answers)]
    require_known(
        ("--shape", answers.shapes, pointers, "a pointer"),
        ("--workspace", answers.workspaces, pointers, "a pointer"),
        ("--zero", answers.zeros, results, "an output"),
        ("--value", answers.values, [*scalars, *own], "a scalar"),
        ("--emulated", answers.emulated, sizes, "an integer"),
        ("--reference", answers.references, results, "an output"),
    )
    _check_references(answers, [*(value.name for value in values), *own])
    for value in values:
        if value.is_structure and value.name in answers.values:
            raise UsageError(
                f"--value: {value.name} is a structure of {value.size} bytes ({value.type}): its "
                "bytes are for problem.py to say."
            )
    if not results:
        arrays = ", ".join(pointers) or "none"
        raise UsageError(
            f"{signature} writes no array, so nothing could be verified. If it does, say "
            f"which with --output NAME; its arrays: {arrays}."
        )


def require_known(*options: tuple[str, Iterable[str], Sequence[str], str]) -> None:
    """UsageError for a name that an option gives and the kernel has not: options with their names,
    those that are known, and what these are."""
    for option, names, known, what in options:
        for name in names:
            if name not in known:
                has = suggest(name, known) if known else "; it has none"
                raise UsageError(f"{option}: {name!r} is not {what} of the kernel{has}.")


def _check_references(answers: Answers, names: Sequence[str]) -> None:
    for expression in answers.references.values():
        for name in sorted(expressions.free_names(expression) - {*names, "torch"}):
            raise UsageError(
                f"--reference: {name!r} is not a parameter of the kernel{suggest(name, names)}; "
                f"functions of PyTorch begin with torch, as in torch.{name}."
            )
