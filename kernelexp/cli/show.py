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
    from kernelexp.dossier import standing
    from kernelexp.logs import profiles, records
    from kernelexp.model.names import is_sweep
    from kernelexp.report.log import listing
    from kernelexp.report.runs import page, sweep, swept
    from kernelexp.report.variants import profiles as profiled_report

    loaded = common.load(project, sources=False)
    if name not in loaded.experiments and _names_a_run(name):
        path = records.find(loaded.root, name)
        record = records.read_file(path)
        place = path.relative_to(loaded.root) if path.is_relative_to(loaded.root) else path
        if is_sweep(record.experiment):
            output(
                "sweep",
                swept.to_values(record),
                sweep.render(record, None, str(place), verbose),
                json,
            )
        else:
            output("record", record, page.render(record, (), str(place), verbose), json)
        return
    tree = standing.Tree(loaded.root)
    standings = standing.of_experiment(loaded, name, tree)
    profiled = standing.of_profiles(loaded, name, tree)
    found, unreadable = records.read(loaded.root, name)
    common.warn(loaded.root, (*unreadable, *profiles.unreadable(loaded.root)))
    values = listing.experiment_values(name, standings, found, profiled)
    shown = (
        *listing.experiment(name, standings, found, every, verbose),
        *profiled_report.mentioned(profiled),
    )
    output("show", values, shown, json)


def _names_a_run(name: str) -> bool:
    """Runs are named after the moment at which they ran: 20261121T000044Z-485c4d1d; a sweep's name
    stands for its latest."""
    from kernelexp.model.names import is_sweep

    return name[:4].isdigit() or name.endswith(".json") or is_sweep(name)
