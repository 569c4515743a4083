"""kernelexp show: the project, an experiment with its records, one run, or a profile's tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.completion import experiment_names
from kernelexp.cli.console import output, print_schema
from kernelexp.cli.modes import given, refuse_all_but, refuse_other_modes
from kernelexp.cli.options import HERE, argument, option, require_number
from kernelexp.model.errors import UsageError

WITH_RECORDS = "With an experiment or a run"
WITH_JUDGE = "With --judge"
WITH_PROFILE = "With a profile or --sections"


@app.command()
def show(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        argument(
            "[EXPERIMENT|KERNEL|RUN|PROFILE]",
            "An experiment's id; a kernel; sweep-KERNEL; a run's name, its beginning, or its "
            "file; a profile's run, or a CSV page or .ncu-rep report of ncu (FILE:2 for its "
            "launch 2).",
            completion=experiment_names,
        ),
    ] = None,
    judge: Annotated[
        bool, option("--judge", "Judge a run again from its samples; needs no GPU.")
    ] = False,
    sections: Annotated[
        str,
        option(
            "--sections NAMES",
            "Show these tables of a profile, or of the profile of an experiment's run "
            "(F3:baseline or F3:2 for an arm): all, or tensor, pipes, conflicts, multicast, "
            "tmem, icache, stalls, global, source, gap, or files of your own, separated by "
            "commas.",
        ),
    ] = "",
    schema: Annotated[
        str,
        option(
            "--schema WHAT",
            "Print a JSON Schema: of a file, project (experiments.yaml), experiment (a file with "
            "one experiment or step) or section, or of a command's --json: run, log, ...",
        ),
    ] = "",
    every: Annotated[
        bool, option("--all", "Show every record of the experiment, not the last 10.", WITH_RECORDS)
    ] = False,
    verbose: Annotated[
        bool, option("--verbose -v", "Show every figure of every variant.", WITH_RECORDS)
    ] = False,
    margin: Annotated[
        float | None,
        option(
            "--margin PERCENT",
            "Margin to judge by, instead of the recorded one.",
            WITH_JUDGE,
            min=0.01,
            max=100.0,
            callback=require_number,
        ),
    ] = None,
    time_ms: Annotated[
        float | None,
        option("--time-ms MS", "The measured time, if the profile's run has none.", WITH_PROFILE),
    ] = None,
    peer_ms: Annotated[
        float | None, option("--peer-ms MS", "The peer's time, for the gap.", WITH_PROFILE)
    ] = None,
    peer: Annotated[
        str, option("--peer NAME", "Name of the peer, such as cuBLAS.", WITH_PROFILE)
    ] = "",
    flops: Annotated[
        float | None,
        option(
            "--flops NUMBER", "Useful FLOPs of the launch, if they are not known.", WITH_PROFILE
        ),
    ] = None,
    minimum_bytes: Annotated[
        float | None,
        option(
            "--bytes NUMBER", "Bytes that the launch must move to or from memory.", WITH_PROFILE
        ),
    ] = None,
    dtype: Annotated[
        str,
        option("--dtype TYPE", "The operands' type, for the peak: fp8, bf16, tf32.", WITH_PROFILE),
    ] = "",
    names: Annotated[
        bool, option("--names", "List ncu's names of the figures.", WITH_PROFILE)
    ] = False,
    markdown: Annotated[bool, option("--markdown", "Print markdown.", WITH_PROFILE)] = False,
    json: options.Json = False,
    project: options.Project = HERE,
) -> None:
    """Show an experiment and its records, one run, or the tables of a profile.

    Without a name, list kernels and verdicts; of a kernel, its axes and experiments.

    For example:
        kernelexp show F3
        kernelexp show T1 --judge --margin 0.5
        kernelexp show report.ncu-rep --peer cuBLAS --peer-ms 0.365
        kernelexp show T3:2 --sections stalls,gap
        kernelexp show --schema project > experiments.schema.json
    """
    from kernelexp.dossier import subjects

    if schema:
        refuse_all_but(ctx, "--schema", "schema")
        if name is not None:
            raise UsageError("--schema stands alone: leave out the name.")
        print_schema(_schema(schema))
    elif name is None:
        _refuse_all(ctx)
        _list(project, json)
    elif judge:
        refuse_other_modes(ctx, WITH_JUDGE)
        _judge(name, margin, json, project)
    elif sections or subjects.is_profile(_root(name, project), name):
        from kernelexp.cli import sections as tables
        from kernelexp.project.sections.given import Run

        refuse_other_modes(ctx, WITH_PROFILE)
        run = Run(
            time_ms=time_ms,
            peer=peer,
            peer_ms=peer_ms,
            flops=flops,
            minimum_bytes=minimum_bytes,
            dtype=dtype,
        )
        which = "" if sections == "all" else sections
        tables.show(name, which, run, project, names=names, markdown=markdown, json=json)
    else:
        refuse_other_modes(ctx, WITH_RECORDS)
        _experiment_or_run(name, every, verbose, json, project)


def _schema(name: str) -> Mapping[str, Any]:
    """The schema of a file or of a command's JSON; UsageError for a name that has none."""
    from kernelexp.project import shape

    if name == "project" or name == "experiment":
        return shape.schema(name)
    if name == "section":
        from kernelexp.project.sections.shape import Section

        return shape.schema_of(Section)
    from kernelexp.model.errors import suggest
    from kernelexp.model.text import quote
    from kernelexp.report import outputs

    known = ("project", "experiment", "section", *outputs.types())
    if name not in known:
        raise UsageError(f"--schema {quote(name)}: there is no such schema{suggest(name, known)}.")
    return outputs.schema(name)


def _refuse_all(ctx: typer.Context) -> None:
    """UsageError for an option that needs a name."""
    others = [option for option in given(ctx) if option not in ("json", "project")]
    if others:
        raise UsageError("name an experiment, a run or a profile; see kernelexp show --help.")


def _root(name: str, project: Path) -> Path | None:
    """Returns the root to look up runs in; a file needs no project."""
    from kernelexp.dossier import subjects

    return None if subjects.is_file(name) else common.load(project, sources=False).root


def _list(project: Path, json: bool, wanted: str = "") -> None:
    """Kernels with their axes, and experiments with their verdicts; or those of one kernel."""
    from kernelexp.logs import decisions
    from kernelexp.report import summary
    from kernelexp.report.log import listing
    from kernelexp.services import kernel_logs
    from kernelexp.services import listing as service

    loaded = common.load(project, sources=False)
    logs = kernel_logs.assemble(loaded)
    common.warn(loaded.root, (unreadable for one in logs for unreadable in one.unreadable))
    known = {name: item for one in logs for name, item in one.standings.items()}
    standings = {name: known[name] for name in loaded.experiments}
    decided, _ = decisions.read_all(loaded.root)
    values = service.contents(loaded, standings, decided) if json else None
    is_long = len(standings) > summary.LISTED and not wanted
    document = (
        summary.render(loaded, logs)
        if is_long
        else listing.render(loaded, standings, decided, wanted)
    )
    output("list", values, document, json)


def _judge(name: str, margin: float | None, json: bool, project: Path) -> None:
    """The verdict that a run's samples give today."""
    from kernelexp.judge.verdict import exit_code
    from kernelexp.report.runs import page
    from kernelexp.services.run import again

    path = common.record_file(project, name)
    judged = again.judge(path, None if margin is None else margin / 100)
    output("verdict", judged, page.judged_again(judged), json)
    raise typer.Exit(exit_code({verdict.status for verdict in judged.verdicts}))


def _experiment_or_run(name: str, every: bool, verbose: bool, json: bool, project: Path) -> None:
    from kernelexp.dossier import standing
    from kernelexp.dossier.tree import Tree
    from kernelexp.logs import profiles, records
    from kernelexp.report.log import listing
    from kernelexp.report.variants import profiles as profiled_report
    from kernelexp.services import listing as service

    loaded = common.load(project, sources=False)
    name = loaded.id_of(name)
    kernel, _, arch = name.partition("@")
    if name not in loaded.experiments and kernel in loaded.kernels:
        if arch:
            loaded.variant(kernel, arch)  # refuses an architecture that it has not
        _list(project, json, name)
        return
    if name not in loaded.experiments and _names_a_run(name):
        _run(loaded.root, records.find(loaded.root, name), verbose, json)
        return
    tree = Tree(loaded.root)
    standings = standing.of_experiment(loaded, name, tree)
    profiled = standing.of_profiles(loaded, name, tree)
    latest = None if every or json else listing.RECORDS_SHOWN
    known, unreadable = records.read(loaded.root, name, latest)
    unread = records.count(loaded.root, name) - len(known) - len(unreadable)
    skipped = (*standings.unreadable, *unreadable, *profiles.unreadable(loaded.root))
    common.warn(loaded.root, skipped)
    values = service.experiment(name, standings, known, profiled)
    blocks = (
        *listing.experiment(name, standings, known, tree, unread, every, verbose),
        *profiled_report.mentioned(profiled),
    )
    output("show", values, blocks, json)


def _run(root: Path, path: Path, verbose: bool, json: bool) -> None:
    """The page of one run, or of a sweep."""
    from kernelexp.judge import sweeps
    from kernelexp.logs import records
    from kernelexp.model.experiment import is_sweep
    from kernelexp.report.runs import page, sweep

    record = records.read_file(path)
    place = str(path.relative_to(root) if path.is_relative_to(root) else path)
    if is_sweep(record.experiment):
        document = sweep.render(record, None, place, verbose)
        output("sweep", sweeps.examine(record), document, json)
    else:
        output("record", record, page.render(record, (), place, verbose), json)


def _names_a_run(name: str) -> bool:
    """Runs are named after the moment at which they ran: 20261121T000044Z-485c4d1d; a sweep's name
    stands for its latest."""
    from kernelexp.model.experiment import is_sweep

    return name[:4].isdigit() or name.endswith(".json") or is_sweep(name)
