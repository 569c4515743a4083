"""kernelexp recount: the emulated counters of recorded runs, taken again."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import chosen
from kernelexp.cli.completion import complete, experiment_names
from kernelexp.cli.console import output
from kernelexp.cli.options import HERE, JsonOption, LimitOption, NvccOption, ProjectOption


@app.command()
def recount(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            autocompletion=complete(experiment_names),
            help="Experiments, all of whose runs are recounted, or names of runs.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Recount every recorded run.")] = False,
    json: JsonOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Emulate recorded runs again, and keep the new counters next to their records.

    The PTX and SASS of each run's own sources are executed. Times, verdicts and the records
    themselves stay as they are. A variant that today's compiler translates differently is left out.

    For example:
        kernelexp recount T1 T2
    """
    from kernelexp.report.variants import recounting as report
    from kernelexp.services import recounting

    loaded = common.load(project, sources=False)
    wanted = recounting.find(loaded, chosen(loaded, names or [], every))
    with common.session(loaded, nvcc, limit) as session:
        found = recounting.recount(loaded, wanted, session)
    common.refresh_log(loaded)
    output("recount", found, report.render(found), json)
    raise typer.Exit(recounting.exit_code(found))
