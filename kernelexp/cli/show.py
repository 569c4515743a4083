"""kernelexp show: an experiment with its records, or the page of one record."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.completion import complete, experiment_names
from kernelexp.cli.console import output
from kernelexp.cli.options import HERE, JsonOption, ProjectOption, VerboseOption


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT|RUN",
            autocompletion=complete(experiment_names),
            help="An experiment's id; sweep-KERNEL; a run's name, its beginning, or its file.",
        ),
    ],
    every: Annotated[
        bool, typer.Option("--all", help="Show every record of the experiment, not the last 10.")
    ] = False,
    verbose: VerboseOption = False,
    json: JsonOption = False,
    project: ProjectOption = HERE,
) -> None:
    """Show an experiment and its records, or one run."""
    from kernelexp import records
    from kernelexp.judge import standing
    from kernelexp.names import is_sweep
    from kernelexp.report import listing, page, sweep

    loaded = common.load(project, sources=False)
    if name not in loaded.experiments and _names_a_run(name):
        path = records.find(loaded.root, name)
        record = records.read_file(path)
        shown = path.relative_to(loaded.root) if path.is_relative_to(loaded.root) else path
        if is_sweep(record.experiment):
            output(sweep.to_values(record), sweep.render(record, None, str(shown), verbose), json)
        else:
            output(record, page.render(record, (), str(shown), verbose), json)
        return
    standings = standing.of_experiment(loaded, name, standing.Tree(loaded.root))
    found, unreadable = records.read(loaded.root, name)
    common.warn(loaded.root, unreadable)
    values = {
        "id": name,
        "experiment": standings.experiment,
        "standing": listing.standing_values(standings),
        "records": found,
    }
    output(values, listing.experiment(name, standings, found, every, verbose), json)


def _names_a_run(name: str) -> bool:
    """Runs are named after the moment at which they ran: 20261121T000044Z-485c4d1d; a sweep's name
    stands for its latest."""
    from kernelexp.names import is_sweep

    return name[:4].isdigit() or name.endswith(".json") or is_sweep(name)
