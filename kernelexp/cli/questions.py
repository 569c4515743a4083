"""Questions about an adopted kernel, put at a terminal where the options leave them open."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
import typer

from kernelexp.cli.common import parse_number
from kernelexp.cli.console import print_message
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.services.adopt.adopted import Compiled
    from kernelexp.services.adopt.answers import Answers, LaunchShape
    from kernelexp.services.adopt.entry import KernelEntry, KernelParameter

T = TypeVar("T")


def complete(compiled: Compiled, answers: Answers, axes: Collection[str] = ()) -> Answers:
    """The answers, completed by a person at the terminal; an empty one leaves a blank. `axes` are
    names that a grid may have in it too."""
    from kernelexp.services.adopt import jobs
    from kernelexp.services.adopt.answers import is_size

    pairs = list(zip(compiled.entries, answers.launches, strict=True))
    shapes = [_ask_block(entry, shape, len(pairs) > 1) for entry, shape in pairs]
    parameters, numbers = jobs.values(compiled.entries), dict(answers.values)
    for parameter in parameters:
        if parameter.scalar and parameter.name not in numbers:
            number = _prompt(f"value of {parameter.type} {parameter.name}", parse_number)
            numbers.update({parameter.name: number} if number is not None else {})
    sizes = {kernel_parameter.name for kernel_parameter in parameters if is_size(kernel_parameter)}
    own = numbers.keys() - {kernel_parameter.name for kernel_parameter in parameters}
    answers = _ask_arrays(parameters, answers, functools.partial(_parse_extents, sizes | own))
    of_axes = functools.partial(_parse_extents, sizes | own | set(axes))
    shapes = [
        _ask_grid(entry, shape, len(pairs) > 1, of_axes)
        for (entry, _), shape in zip(pairs, shapes, strict=True)
    ]
    return msgspec.structs.replace(answers, values=numbers, launches=tuple(shapes))


def _parse_extents(names: Collection[str], text: str) -> tuple[str, ...]:
    """UsageError, which asks again, also for a name that is no size."""
    from kernelexp.services.adopt.expressions import of_size, parse_expressions

    parts = parse_expressions(text)
    for part in parts:
        of_size(part, "the extent", names)
    return parts


def _ask_block(entry: KernelEntry, shape: LaunchShape, named: bool) -> LaunchShape:
    from kernelexp.services.adopt import notation
    from kernelexp.services.adopt.draft import launch

    threads = launch.block(entry, shape)
    if threads is None:
        question = f"{_whose(entry, named)}threads of a CTA, as in 256 or 16,16"
        threads = _prompt(question, notation.parse_block)
    return msgspec.structs.replace(shape, block=threads)


def _ask_grid(
    entry: KernelEntry, shape: LaunchShape, named: bool, parse: Callable[[str], tuple[str, ...]]
) -> LaunchShape:
    from kernelexp.services.adopt import notation

    whose, grid, smem = _whose(entry, named), shape.grid, shape.smem
    if entry.dynamic_smem and not smem:
        smem = _prompt(f"{whose}bytes of dynamic shared memory", notation.parse_smem) or ""
    if not grid:
        grid = _prompt(f"{whose}CTAs of the grid, as in N/64,M/64", parse) or ()
    return msgspec.structs.replace(shape, grid=grid, smem=smem)


def _whose(entry: KernelEntry, named: bool) -> str:
    return f"{entry.name}: " if named else ""


def _ask_arrays(
    parameters: Sequence[KernelParameter],
    answers: Answers,
    parse: Callable[[str], tuple[str, ...]],
) -> Answers:
    from kernelexp.services.adopt.expressions import parse_reference

    shapes, references = dict(answers.shapes), dict(answers.references)
    workspaces, zeros = list(answers.workspaces), list(answers.zeros)
    for parameter in parameters:
        if parameter.is_array and parameter.name not in shapes:
            shape = _prompt(f"shape of {parameter.name}, as in M,K", parse)
            shapes.update({parameter.name: shape} if shape else {})
        if parameter.read and parameter.written and parameter.name not in (*workspaces, *zeros):
            if typer.confirm(f"is {parameter.name} zero before the first launch?", default=False):
                is_result = typer.confirm(f"is {parameter.name} a result?", default=True)
                (zeros if is_result else workspaces).append(parameter.name)
        if (
            parameter.is_array
            and parameter.written
            and parameter.name not in (*references, *workspaces, *answers.between)
        ):
            expected = _prompt(f"what {parameter.name} should be, as in A @ B", parse_reference)
            references.update({parameter.name: expected} if expected else {})
    return msgspec.structs.replace(
        answers,
        shapes=shapes,
        workspaces=tuple(workspaces),
        zeros=tuple(zeros),
        references=references,
    )


def _prompt(question: str, parse: Callable[[str], T]) -> T | None:
    """The answer, asked for until it can be parsed; None where it is empty."""
    while True:
        text = typer.prompt(f"{question} (empty: later)", default="", show_default=False).strip()
        try:
            return parse(text) if text else None
        except UsageError as error:
            print_message(f"error: {error}")
