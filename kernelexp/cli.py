"""The commands: parse, call one service, print."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from kernelexp import __version__, errors
from kernelexp.arguments import changed, chosen, parse_seconds, parse_sets, parse_variant
from kernelexp.completion import complete, experiment_names
from kernelexp.console import output, print_json, print_rich, progress_bars
from kernelexp.errors import KernelexpError
from kernelexp.options import (
    HERE,
    DeviceOption,
    JsonOption,
    MarginOption,
    NvccOption,
    ProjectOption,
    SetOption,
    VariantsArgument,
)

if TYPE_CHECKING:
    from kernelexp.project import Project
    from kernelexp.runner import Ran
    from kernelexp.toolchain import Toolchain


class L2State(StrEnum):
    """What a timed launch finds in the L2 cache."""

    cold = "cold"
    hot = "hot"


class _Commands(TyperGroup):
    """The one place where a user's mistake becomes a sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KernelexpError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(errors.INTERRUPTED) from None


_EXITS = "\n\n".join(f"{code}  {meaning}" for code, meaning in errors.EXIT_CODES.items())

app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # rich would double the time of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog=f"Exit codes:\n\n{_EXITS}",
)


def main() -> None:
    """The program."""
    app(prog_name="kernelexp")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"kernelexp {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Experiments on GPU kernel variants, that anyone can run again.

    A hypothesis, two variants built by the real compiler, evidence, a verdict, a line in the log.
    Experiments and kernels stand in experiments.yaml.
    """


# ---- commands ------------------------------------------------------------------------------------


@app.command()
def run(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            autocompletion=complete(experiment_names),
            help="Ids from experiments.yaml, of experiments or of steps of the history.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All experiments and the whole history.")
    ] = False,
    set_: SetOption = None,
    emulate: Annotated[
        bool, typer.Option("--emulate/--no-emulate", help="Execute the PTX on the CPU.")
    ] = True,
    gpu: Annotated[
        bool, typer.Option("--gpu/--no-gpu", help="Time what this machine's GPU can run.")
    ] = True,
    device: DeviceOption = None,
    budget: Annotated[
        str,
        typer.Option(
            "--budget", metavar="TIME", help="Most time to measure, beside starting up: 30s, 2m."
        ),
    ] = "30s",
    processes: Annotated[
        int,
        typer.Option("--processes", metavar="N", min=2, help="Processes before the first look."),
    ] = 4,
    margin: MarginOption = 1.0,
    size: Annotated[
        str, typer.Option("--size", metavar="NAME", help="Which of the problem's sizes to time.")
    ] = "full",
    l2: Annotated[
        L2State, typer.Option("--l2", help="Flush L2 before each launch, or leave it warm.")
    ] = L2State.cold,
    peers: Annotated[
        bool,
        typer.Option("--peers/--no-peers", help="Time others' kernels too."),
    ] = True,
    shared_gpu: Annotated[
        bool, typer.Option("--shared-gpu", help="Go on where another process uses the GPU.")
    ] = False,
    sanitize: Annotated[
        bool, typer.Option("--sanitize", help="Let compute-sanitizer look at what fails.")
    ] = False,
    json: JsonOption = False,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Write a record, and render the log.")
    ] = True,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Run experiments: build, emulate, time where there is a GPU, say the verdict, record it.

    For example: kernelexp run F3 F6; kernelexp run F3 --set stages=4 --no-record
    """
    from kernelexp import runner
    from kernelexp.commands import log as service
    from kernelexp.evidence.measured import Measuring
    from kernelexp.measurement import Options

    loaded = _load(project)
    names = chosen(loaded, experiments or [], every)
    overrides = {name: parse_sets(loaded, name, set_) for name in names} if set_ else {}
    tools = _tools(loaded, nvcc)
    options = Options(
        processes=processes,
        budget_s=parse_seconds(budget),
        l2=l2.value,
        peers=peers,
        shared_gpu=shared_gpu,
        sanitize=sanitize,
    )
    measuring = Measuring(options=options, device=device, margin=margin / 100, size=size)
    with progress_bars() as bars:
        ran = runner.run(
            loaded,
            names,
            tools,
            overrides=overrides,
            emulate=emulate,
            measuring=measuring if gpu else None,
            keep=record,
            on_build=bars.build,
            on_emulate=bars.emulate,
            on_measure=bars.measure,
        )
    if record:
        logs, unreadable = service.read(loaded)
        _warn(loaded, unreadable)
        service.write(loaded, logs)
    _print_ran(loaded, ran, json)
    raise typer.Exit(runner.exit_code([each.record for each in ran]))


@app.command()
def build(
    variants: VariantsArgument,
    json: JsonOption = False,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Build variants and print what the compiler made of them, without a record.

    For example: kernelexp build patch_embed_gemm@sm_100a:stages=6,store=direct_v8
    """
    from kernelexp import examine, runner
    from kernelexp.report import builds

    loaded = _load(project)
    wanted = [variant for text in variants for variant in parse_variant(loaded, text)]
    tools = _tools(loaded, nvcc)
    with progress_bars() as bars:
        judged = examine.judge(loaded, wanted, tools, bars.build)
    rows = {loaded.label(each.variant): each for each in judged.values()}
    output(rows, builds.render({label: (x.arm, x.refused) for label, x in rows.items()}), json)
    raise typer.Exit(runner.judged_exit_code(judged.values()))


@app.command()
def emulate(
    variants: VariantsArgument,
    set_: SetOption = None,
    size: Annotated[
        str, typer.Option("--size", help="Which of the problem's sizes to execute.")
    ] = "emulated",
    full: Annotated[
        bool, typer.Option("--full", help="Counters of the full problem too, from two sizes.")
    ] = False,
    json: JsonOption = False,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Execute variants on the CPU: is the result right, does it finish, what would ncu count.

    For example: kernelexp emulate patch_embed_gemm@sm_100a --set store=direct_v8 --full
    """
    from kernelexp.commands import emulate as service

    loaded = _load(project)
    wanted = [
        changed(loaded, variant, set_ or [])
        for text in variants
        for variant in parse_variant(loaded, text)
    ]
    with progress_bars() as bars:
        found = service.emulate(
            loaded, wanted, _tools(loaded, nvcc), size, full, bars.build, bars.emulate
        )
    output(found, service.render(found), json)
    raise typer.Exit(service.exit_code(found))


@app.command("list")
def list_(json: JsonOption = False, project: ProjectOption = HERE) -> None:
    """List kernels with their axes, and experiments."""
    from kernelexp.report import listing

    loaded = _load(project)
    output(listing.to_values(loaded), listing.render(loaded), json)


@app.command()
def show(
    experiment: Annotated[str, typer.Argument(autocompletion=complete(experiment_names))],
    json: JsonOption = False,
    project: ProjectOption = HERE,
) -> None:
    """Show all about one experiment, with every record of it."""
    from kernelexp import records
    from kernelexp.report import listing

    loaded = _load(project)
    written = loaded.experiment(experiment)
    found, unreadable = records.read(loaded.root, experiment)
    _warn(loaded, unreadable)
    values = {"id": experiment, "experiment": written, "records": found}
    output(values, listing.render_experiment(experiment, written, found), json)


@app.command()
def log(
    write: Annotated[
        bool, typer.Option("--write", help="Render logs/EXPERIMENTS.md instead of printing.")
    ] = False,
    json: JsonOption = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    project: ProjectOption = HERE,
) -> None:
    """Print the log: the history of committed steps, and the experiments with their verdicts.

    A table on a terminal, markdown in a pipe.
    """
    from kernelexp.commands import log as service
    from kernelexp.report import export, markdown

    loaded = _load(project)
    logs, unreadable = service.read(loaded)
    _warn(loaded, unreadable)
    if write:
        typer.echo(f"wrote {service.write(loaded, logs).relative_to(loaded.root)}")
    elif json:
        print_json(export.to_values(logs))
    elif csv:
        typer.echo(export.to_csv(logs), nl=False)
    elif sys.stdout.isatty():
        from kernelexp.report import tables

        print_rich(tables.render(logs))
    else:
        typer.echo(markdown.render_tables(logs), nl=False)


@app.command()
def verdict(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="A measured record's file.")],
    margin: Annotated[
        float | None, typer.Option("--margin", metavar="PERCENT", help="Another margin.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Decide again from the samples of a record, with another margin too; no GPU is needed.

    For example: kernelexp verdict logs/runs/T1/20261120T231950Z-3d3bb674.measured.json --margin 0.5
    """
    from kernelexp.commands import verdict as service

    found = service.rejudge(record, None if margin is None else margin / 100)
    output(found, service.render(found), json)
    raise typer.Exit(service.exit_code(found))


@app.command()
def check(
    update: Annotated[
        bool, typer.Option("--update", help="Write what is now as the baseline to commit.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML too.")
    ] = None,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Execute each variant too: result and protocol.")
    ] = False,
    json: JsonOption = False,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Hold the build of every variant against the committed baseline, both ways.

    Registers, spills, stack, shared memory and SASS size of each variant that an experiment or the
    history names. Better fails too, so that a gain is locked in where a reviewer sees it.
    """
    from kernelexp.commands import check as gates

    loaded = _load(project)
    tools = _tools(loaded, nvcc)
    with progress_bars() as bars:
        judged = gates.examine_all(loaded, tools, emulate, bars.build, bars.emulate)
    if update:
        path = gates.write_baseline(loaded.root, tools.version, judged)
        typer.echo(f"wrote {path.relative_to(loaded.root)}: {len(judged)} variants")
        return
    findings = gates.compare(gates.read_baseline(loaded.root), tools.version, judged)
    gates.publish(findings, junit, typer.echo)
    output(findings, gates.render(findings), json)
    raise typer.Exit(gates.exit_code(findings))


@app.command()
def calibrate(
    device: DeviceOption = None,
    margin: MarginOption = 1.0,
    json: JsonOption = False,
    nvcc: NvccOption = None,
) -> None:
    """Time a kernel against itself on this machine: how often would a run be wrong?"""
    from kernelexp.commands import calibrate as service

    with progress_bars() as bars:
        found = service.against_itself(device, margin / 100, nvcc, bars.measure)
    output(found, service.render(found), json)


@app.command()
def selftest(
    inject: Annotated[
        str, typer.Option("--inject", metavar="PERCENTS", help="Slowdowns to inject.")
    ] = "0.5,1,2,5",
    device: DeviceOption = None,
    margin: MarginOption = 1.0,
    json: JsonOption = False,
    nvcc: NvccOption = None,
) -> None:
    """Time a kernel against itself with known extra work: how much of it would a run see?"""
    from kernelexp.commands import calibrate as service

    with progress_bars() as bars:
        found = service.injected(inject, device, margin / 100, nvcc, bars.measure)
    output(found, service.render(found), json)


@app.command()
def doctor(
    json: JsonOption = False, nvcc: NvccOption = None, project: ProjectOption = HERE
) -> None:
    """Say what this machine has, in which version, and what that allows."""
    from kernelexp.commands import doctor as checks

    facts = checks.examine(nvcc, project)
    output(facts, checks.render(facts), json)
    raise typer.Exit(checks.exit_code(facts))


@app.command()
def schema() -> None:
    """Print the JSON Schema of experiments.yaml, for editors.

    With the YAML language server: # yaml-language-server: $schema=schema.json
    """
    from kernelexp import project

    print_json(project.schema())


# ---- what the commands share ---------------------------------------------------------------------


def _load(start: Path) -> Project:
    from kernelexp import project

    return project.load(start)


def _tools(project: Project, nvcc: str | None) -> Toolchain:
    from kernelexp import build, toolchain

    return toolchain.find(nvcc, project.root / build.CACHE)


def _print_ran(project: Project, ran: list[Ran], json: bool) -> None:
    from kernelexp.report import page

    for each in ran:
        _warn(project, each.unreadable)
    pages = (
        renderable
        for each in ran
        for renderable in page.render(
            each.record,
            each.earlier,
            each.path.relative_to(project.root) if each.path else None,
        )
    )
    values = [
        {"path": str(each.path) if each.path else None, "record": each.record} for each in ran
    ]
    output(values, pages, json)


def _warn(project: Project, unreadable: Iterable[Any]) -> None:
    for each in unreadable:
        name = each.path.relative_to(project.root)
        typer.echo(f"warning: skipped {name}: it {each.why}.", err=True)
