"""kernelexp evaluate: a solution of somebody's problem, in the format that it is in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_seconds
from kernelexp.cli.console import output
from kernelexp.cli.options import JsonOption, NvccOption, VerboseOption


@app.command()
def evaluate(
    problem: Annotated[
        Path,
        typer.Argument(
            metavar="PROBLEM",
            help="A file of KernelBench; a folder of GPU MODE or LeetGPU; a Definition of "
            "FlashInfer Trace with workloads.jsonl beside it.",
        ),
    ],
    solution: Annotated[Path, typer.Argument(metavar="SOLUTION", help="What is to be judged.")],
    largest: Annotated[
        int,
        typer.Option(
            "--largest",
            metavar="N",
            min=0,
            help="Sizes above N become N, for the emulator; 0 keeps the problem's own.",
        ),
    ] = 64,
    schedules: Annotated[
        int,
        typer.Option(
            "--schedules", metavar="N", min=0, help="Further orders of warps to try, 2 by default."
        ),
    ] = 2,
    limit: Annotated[
        str, typer.Option("--limit", metavar="TIME", help="Of each process, 10m by default.")
    ] = "10m",
    gpu: Annotated[
        bool, typer.Option("--gpu/--no-gpu", help="Time it if this machine has a GPU.")
    ] = True,
    modelled: Annotated[
        bool,
        typer.Option(
            "--modelled", help="Model the time of a call before it is timed, or in place."
        ),
    ] = False,
    prune: Annotated[
        float,
        typer.Option(
            "--prune-modelled",
            metavar="US",
            min=0,
            help="Don't time what the model puts surely above US microseconds.",
        ),
    ] = 0.0,
    again: Annotated[
        bool, typer.Option("--again", help="Judge code again whose verdict is known.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="Write a Trace of FlashInfer for each size."),
    ] = None,
    verbose: VerboseOption = False,
    json: JsonOption = False,
    nvcc: NvccOption = None,
) -> None:
    """Judge a solution of KernelBench, GPU MODE, FlashInfer Trace or LeetGPU as it is.

    The solution runs in a process without the reference, the clock and the verdict. Stages, the
    cheapest first, end at the first that fails: rules, build, code that is known, emulation, other
    schedules, and where there is a GPU the time beside the reference's, by another process's clock.

    For example:
        kernelexp evaluate level1/23_Softmax.py mine.py
        kernelexp evaluate problems/vectoradd_py submission.py --json
    """
    from kernelexp.report import assessments
    from kernelexp.services.tasks import cascade, tracing
    from kernelexp.system import device, toolchain

    wanted = cascade.Assignment(
        largest=largest,
        schedules=schedules,
        limit_s=parse_seconds(limit, "--limit"),
        gpu=device.find_if_any() if gpu else None,
        reuse=not again,
        modelled=modelled,
        prune_us=prune,
    )
    root = Path.cwd()
    tools = toolchain.find(nvcc, root / ".kernelexp")
    assessed = cascade.assess(problem, solution, tools, root, wanted)
    if trace:
        tracing.write(trace, problem, solution, assessed)
    output("assessment", assessed, assessments.render(assessed, verbose), json)
    raise typer.Exit(cascade.exit_code(assessed))
