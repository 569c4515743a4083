"""kernelexp evaluate: a solution of somebody's problem, in the format that it is in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli import options
from kernelexp.cli.app import app
from kernelexp.cli.common import parse_seconds
from kernelexp.cli.console import output
from kernelexp.cli.options import argument, option


@app.command()
def evaluate(
    problem: Annotated[
        Path,
        argument(
            "PROBLEM",
            "A file of KernelBench; a folder of GPU MODE or LeetGPU; a Definition of FlashInfer "
            "Trace with workloads.jsonl beside it.",
        ),
    ],
    solution: Annotated[Path, argument("SOLUTION", "What is to be judged.")],
    largest: Annotated[
        int,
        option(
            "--largest N",
            "Sizes above N become N, for the emulator; 0 keeps the problem's own.",
            min=0,
        ),
    ] = 64,
    schedules: Annotated[
        int, option("--schedules N", "Further orders of warps to try, 2 by default.", min=0)
    ] = 2,
    limit: Annotated[str, option("--limit TIME", "Of each process, 10m by default.")] = "10m",
    gpu: Annotated[bool, option("--gpu/--no-gpu", "Time it if this machine has a GPU.")] = True,
    modelled: Annotated[
        bool, option("--modelled", "Model the time of a call before it is timed, or in place.")
    ] = False,
    prune: Annotated[
        float,
        option(
            "--prune-modelled US",
            "Don't time what the model puts surely above US microseconds.",
            min=0,
        ),
    ] = 0.0,
    again: Annotated[bool, option("--again", "Judge code again whose verdict is known.")] = False,
    trace: Annotated[
        Path | None, option("--trace FILE", "Write a Trace of FlashInfer for each size.")
    ] = None,
    verbose: options.Verbose = False,
    json: options.Json = False,
    nvcc: options.Nvcc = None,
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
    from kernelexp.services.tasks import cascade
    from kernelexp.services.tasks.formats import flashinfer
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
        flashinfer.write_traces(trace, problem, solution, assessed)
    output("assessment", assessed, assessments.render(assessed, verbose), json)
    raise typer.Exit(cascade.exit_code(assessed))
