"""kernelexp inspect: what the compiler made of a variant, instruction by instruction."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import parse_variants, refuse_two_forms
from kernelexp.cli.console import output
from kernelexp.cli.modes import refuse_other_modes
from kernelexp.cli.options import HERE, ISA_HELP, option
from kernelexp.model.errors import UsageError

TOP = 10


WITHOUT_OTHERS = "Without --build, --lines, --source, --memory or --modelled"
WITHOUT_BUILD = "Without --build"
WITH_BUILD = "With --build"
WITH_LINES = "With --lines or --source"
WITH_MODELLED = "With --modelled"
WITH_SIZE = "With --lines, --source, --memory or --modelled"


@app.command()
def inspect(
    ctx: typer.Context,
    variants: options.Variants = None,
    set_: options.Set = None,
    as_build: Annotated[
        bool,
        option("--build", "Only build: registers, spills, memory and SASS size of each variant."),
    ] = False,
    as_lines: Annotated[
        bool, option("--lines", "Show what each source line and each warp role costs.")
    ] = False,
    as_source: Annotated[
        bool, option("--source", "Like --lines, with the SASS below each line of source.")
    ] = False,
    as_memory: Annotated[
        bool,
        option(
            "--memory",
            "Draw which lanes of a warp touch which banks or sectors, where that costs more than "
            "it needs.",
        ),
    ] = False,
    as_modelled: Annotated[
        bool,
        option("--modelled", "Model each variant's time, and where its cycles go, without a GPU."),
    ] = False,
    expect: Annotated[
        list[str] | None,
        option(
            "--expect CONDITION",
            "A gate on the number of instructions, as in 'LDG.128 >= 1', 'STL == 0' or 'BAR.SYNC "
            "in loops <= 2'; exit code 1 if one is missed. Repeatable.",
            WITHOUT_OTHERS,
        ),
    ] = None,
    emulate: Annotated[
        bool,
        option(
            "--emulate",
            "Execute each variant on the CPU too, and count the barriers.",
            WITHOUT_OTHERS,
        ),
    ] = False,
    top: Annotated[
        int, option("--top N", "How many source lines to show; 0 for all.", WITHOUT_BUILD, min=0)
    ] = TOP,
    by: Annotated[
        str | None,
        option(
            "--by METRIC",
            "What to rank by: stalls, instructions, wavefronts, conflicts, sectors, tma_sectors, "
            "barriers, sass, or any counter by its own name.",
            WITH_LINES,
        ),
    ] = None,
    page: Annotated[
        str,
        option(
            "--page FILE",
            "Write the source beside the SASS and PTX of each variant, as a web page.",
            WITH_LINES,
        ),
    ] = "",
    trace: Annotated[
        str,
        option(
            "--trace FILE",
            "Write a time line of the first CTA's warps, as a trace for Perfetto.",
            WITH_MODELLED,
        ),
    ] = "",
    role: Annotated[
        str | None,
        option("--role NAME", "Only lines that this role runs, alone or not.", WITH_LINES),
    ] = None,
    size: Annotated[
        str | None,
        option(
            "--size NAME",
            "Which size of problem.py: emulated where lines are counted, full where a time is "
            "modelled.",
            WITH_SIZE,
        ),
    ] = None,
    isa: Annotated[str, option("--isa ISA", ISA_HELP, WITH_LINES)] = "both",
    repeat: Annotated[
        str | None,
        option("--record RUN", "Build the variants of a run from its own sources.", WITH_BUILD),
    ] = None,
    ninja: Annotated[
        Path | None,
        option(
            "--ninja FOLDER",
            "Build nothing: write build.ninja and compile_commands.json to FOLDER, for these "
            "variants or all that experiments name.",
            WITH_BUILD,
        ),
    ] = None,
    verbose: Annotated[
        bool, option("--verbose -v", "Show every figure of every variant.", WITH_BUILD)
    ] = False,
    json: options.Json = False,
    markdown: options.Markdown = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Show what the compiler made of a variant: accesses, barriers, loops, tensor instructions.

    Of several variants, or an experiment, only differences from the first are shown.

    With --lines, show what each source line costs: counters come from an execution on the CPU, of
    SASS where it is covered, and stalls from the variant's latest profile. With --build, only print
    a table of builds, and exit with 3 if a variant does not build or is IMPOSSIBLE.

    With --modelled, a time that nobody measured: the CTAs of one SM are executed, and replayed
    against the units of an H200. Compared with the first variant, it is a ratio with an interval,
    or "too close for the model".

    For example:
        kernelexp inspect flash_attention@sm_89:phase=3,block_m=32
        kernelexp inspect F3 --expect 'BAR.SYNC in loops <= 2'
        kernelexp inspect F3 --build
        kernelexp inspect transpose@sm_90a:layout=plain --lines --by conflicts
        kernelexp inspect transpose@sm_90a:layout=plain --source --top 2
        kernelexp inspect transpose@sm_90a:layout=plain --memory
        kernelexp inspect T1 --lines --page T1.html
        kernelexp inspect T1 --modelled
    """
    refuse_two_forms(json, markdown)
    modes = {
        "--build": as_build,
        "--source" if as_source else "--lines": as_lines or as_source,
        "--memory": as_memory,
        "--modelled": as_modelled,
    }
    if len(named := [name for name, given in modes.items() if given]) > 1:
        raise UsageError(f"{' and '.join(named)} do not go together: choose one.")
    if as_build:
        from kernelexp.cli import inspections

        refuse_other_modes(ctx, WITH_BUILD)
        if ninja is not None:
            if repeat or json or markdown:
                raise UsageError("--ninja goes with variants alone.")
            inspections.write_ninja(ninja, variants, set_, project, nvcc, limit)
            return
        show = functools.partial(output, json=json, markdown=markdown)
        raise typer.Exit(
            inspections.show_builds(variants, set_, repeat, project, nvcc, limit, verbose, show)
        )
    own = {
        as_lines or as_source: (WITH_LINES, WITH_SIZE),
        as_memory: (WITH_SIZE,),
        as_modelled: (WITH_MODELLED, WITH_SIZE),
    }.get(True)
    refuse_other_modes(ctx, WITHOUT_BUILD, *(own or (WITHOUT_OTHERS,)))
    if not variants:
        raise UsageError("name the variants to look at (kernelexp show lists kernels and axes).")
    from kernelexp.cli import inspections

    loaded = common.load(project)
    wanted = parse_variants(loaded, variants, set_)
    inspection = inspections.VariantInspection(
        loaded,
        wanted,
        session=functools.partial(common.session, loaded, nvcc, limit, emulate=emulate),
        output=functools.partial(output, json=json, markdown=markdown),
    )
    if as_memory:
        code = inspection.memory(top, size or "emulated")
    elif as_lines or as_source:
        code = inspection.lines(by, top, role, as_source, size or "emulated", isa, page, markdown)
    elif as_modelled:
        code = inspection.modelled(top, size or "full", trace)
    else:
        code = inspection.instructions(expect or [], top, emulate)
    raise typer.Exit(code)
