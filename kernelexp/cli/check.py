"""kernelexp check: gates for CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_limits
from kernelexp.cli.console import output, progress_bars
from kernelexp.cli.options import (
    HERE,
    JsonOption,
    LimitOption,
    NvccOption,
    PedanticOption,
    ProjectOption,
)
from kernelexp.errors import UsageError


@app.command()
def check(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KERNEL]...", help="Kernels to check; all without one."),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write the current builds as the baseline to commit.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML too.")
    ] = None,
    emulate: Annotated[
        bool,
        typer.Option("--emulate", help="Execute each variant too: result and barrier protocol."),
    ] = False,
    pedantic: PedanticOption = False,
    json: JsonOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Compare all builds with the committed baseline, for CI.

    Registers, spills, stack, shared memory and SASS size of each variant that an experiment or the
    history names. A gain fails so that --update locks it in where a reviewer sees it.
    """
    if pedantic and not emulate:
        raise UsageError("--pedantic is about what --emulate finds: add --emulate.")
    if kernels and update:
        raise UsageError("--update writes the baseline of all kernels: name none.")
    from kernelexp import prepare
    from kernelexp.evidence.emulated import How
    from kernelexp.judge import gates
    from kernelexp.report import gates as report

    loaded = common.load(project)
    chosen = kernels or []
    for name in chosen:
        loaded.kernel(name)  # a sentence where there is none
    baseline = None if update else gates.read_baseline(loaded.root, chosen)
    if junit:
        common.require_folder(junit)
    tools = common.tools(loaded, nvcc)
    named, limits = gates.named_variants(loaded, chosen), parse_limits(limit)
    with progress_bars() as bars:
        prepared = prepare.built(loaded, list(named.values()), tools, limits, bars)
        if emulate:
            prepared = prepare.emulated(loaded, prepared, limits, bars, How(pedantic=pedantic))
    arms = {loaded.label(variant): arm for variant, arm in prepared.named(list(named.values()))}
    faults = {label: error for label, each in named.items() if (error := prepared.fault(each))}
    if baseline is None:
        if faults:
            raise next(iter(faults.values()))
        path = gates.write_baseline(loaded.root, tools.version, arms)
        typer.echo(f"wrote {path.relative_to(loaded.root)}: {len(arms)} variants")
        return
    findings = gates.compare(baseline, tools.version, arms, faults, emulate)
    if junit:
        junit.write_text(report.to_junit(findings), encoding="utf-8")
    if in_github_actions():
        for annotation in report.to_annotations(findings):
            typer.echo(annotation, err=json)
    output("check", findings, report.render(findings), json)
    raise typer.Exit(gates.exit_code(findings))


def in_github_actions() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"
