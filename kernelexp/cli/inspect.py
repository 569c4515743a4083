"""kernelexp inspect: what the compiler made of a variant, instruction by instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_variants, refuse_two_forms
from kernelexp.cli.console import output, print_message
from kernelexp.cli.options import (
    HERE,
    JsonOption,
    LimitOption,
    MarkdownOption,
    NvccOption,
    ProjectOption,
    SetOption,
    VariantsArgument,
)
from kernelexp.model.errors import OK, REGRESSION, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelexp.judge.instructions import JudgedInstructions
    from kernelexp.services.inspection import Inspection

TOP = 10


@app.command()
def inspect(
    variants: VariantsArgument = None,
    set_: SetOption = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            "--expect",
            metavar="CONDITION",
            help="A gate on the number of instructions, as in 'LDG.128 >= 1', 'STL == 0' or "
            "'BAR.SYNC in loops <= 2'; exit code 1 if one is missed. Repeatable.",
        ),
    ] = None,
    emulate: Annotated[
        bool,
        typer.Option(
            "--emulate", help="Execute each variant on the CPU too, and count the barriers."
        ),
    ] = False,
    top: Annotated[
        int,
        typer.Option(
            "--top", metavar="N", min=0, help="How many repeated lines to show; 0 for all."
        ),
    ] = TOP,
    json: JsonOption = False,
    markdown: MarkdownOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Show what the compiler made of a variant: accesses, barriers, loops, tensor instructions.

    Of several variants, or an experiment, only differences from the first are shown.

    For example:
        kernelexp inspect flash_attention@sm_89:phase=3,block_m=32
        kernelexp inspect F3 --expect 'BAR.SYNC in loops <= 2'
    """
    import msgspec

    from kernelexp.dossier import emulations
    from kernelexp.report.variants.inspection_page import render, to_values
    from kernelexp.services import inspection

    loaded = common.load(project)
    if not variants:
        raise UsageError("name the variants to look at (kernelexp show lists kernels and axes).")
    refuse_two_forms(json, markdown)
    wanted = parse_variants(loaded, variants, set_)
    texts = expect or []
    _require_conditions(texts, several=len(wanted) > 1)
    with common.session(loaded, nvcc, limit, emulate=emulate) as session:
        found, faults = inspection.look(loaded, wanted, session)
    for fault in faults:
        print_message(f"error: {fault}")
    judged = _judge(found, texts)
    values = to_values(found, judged, top) if json else None
    output("inspect", values, render(found, judged, top), json, markdown)
    missed = any(each.result == "missed" for _, each in judged)
    arms = [each.arm for each in found]
    if not emulate:  # what an earlier emulation did not cover was not asked for
        arms = [msgspec.structs.replace(arm, emulated=None, emulated_sass=None) for arm in arms]
    code = emulations.exit_code(arms, faults)
    raise typer.Exit(code or (REGRESSION if missed else OK))


def _require_conditions(texts: Sequence[str], several: bool) -> None:
    """UsageError for a text that is no condition, before anything is built."""
    from kernelexp.judge.instructions import InstructionCounts, instruction_expectations

    nothing = InstructionCounts(every={}, in_loops={})
    try:
        instruction_expectations(nothing, texts, nothing if several else None)
    except ValueError as error:
        raise UsageError(f"--expect {error}") from None


def _judge(
    found: Sequence[Inspection], texts: Sequence[str]
) -> list[tuple[str, JudgedInstructions]]:
    """Numbers are judged of every variant, changes of all but the first, by their labels."""
    from kernelexp.facts import condition
    from kernelexp.judge.instructions import instruction_expectations

    built = [inspection for inspection in found if inspection.arm.build]
    judged = []
    for number, each in enumerate(built):
        before = built[0].counts() if number else None
        own = [text for text in texts if number or condition.parse(text).expectation.of == "value"]
        judged += [
            (each.label, one) for one in instruction_expectations(each.counts(), own, before)
        ]
    return judged
