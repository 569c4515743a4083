"""What adopting a kernel asks a person at a terminal, where the options leave it open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
import typer

from kernelexp.cli.console import print_message
from kernelexp.cli.parameters import parse_number, parse_whole
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.services.adopt.adopted import Compiled
    from kernelexp.services.adopt.draft import Answers
    from kernelexp.services.adopt.entry import KernelParameter

T = TypeVar("T")


def complete(compiled: Compiled, answers: Answers) -> Answers:
    """The answers, completed by a person at the terminal; an empty one leaves a blank."""
    from kernelexp.services.adopt import adopted, draft
    from kernelexp.services.adopt.expressions import parse_expressions

    values, grid, smem_bytes = dict(answers.values), answers.grid, answers.smem_bytes
    threads = draft.block(compiled.entry, answers)
    if threads is None:
        threads = _prompt("threads of a CTA, as in 256 or 16,16", adopted.parse_block)
    for parameter in compiled.entry.values:
        if parameter.scalar and parameter.name not in values:
            value = _prompt(f"value of {parameter.type} {parameter.name}", parse_number)
            values.update({parameter.name: value} if value is not None else {})
    answers = _ask_arrays(compiled.entry.values, answers)
    if compiled.entry.dynamic_smem and not smem_bytes:
        smem_bytes = _prompt("bytes of dynamic shared memory", parse_whole) or 0
    if not grid:
        grid = _prompt("CTAs of the grid, as in N/64,M/64", parse_expressions) or ()
    return msgspec.structs.replace(
        answers, block=threads, values=values, grid=grid, smem_bytes=smem_bytes
    )


def _ask_arrays(parameters: Sequence[KernelParameter], answers: Answers) -> Answers:
    from kernelexp.services.adopt.expressions import parse_expressions, parse_reference

    shapes, references = dict(answers.shapes), dict(answers.references)
    workspaces, zeros = list(answers.workspaces), list(answers.zeros)
    for parameter in parameters:
        if parameter.is_array and parameter.name not in shapes:
            shape = _prompt(f"shape of {parameter.name}, as in M,K", parse_expressions)
            shapes.update({parameter.name: shape} if shape else {})
        if parameter.read and parameter.written and parameter.name not in (*workspaces, *zeros):
            if typer.confirm(f"is {parameter.name} zero before each launch?", default=False):
                is_result = typer.confirm(f"is {parameter.name} a result?", default=True)
                (zeros if is_result else workspaces).append(parameter.name)
        if (
            parameter.is_array
            and parameter.written
            and parameter.name not in (*references, *workspaces)
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
