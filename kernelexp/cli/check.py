"""kernelexp check: gates for CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import refuse_two_forms
from kernelexp.cli.console import output, print_document, print_message, print_text
from kernelexp.cli.options import HERE, argument, option
from kernelexp.model.errors import UsageError

if TYPE_CHECKING:
    from kernelexp.services.check.checking import Checked


@app.command()
def check(
    kernels: Annotated[
        list[str] | None, argument("[KERNEL]...", "Kernels to check; all without one.")
    ] = None,
    update: Annotated[
        bool, option("--update", "Write the current builds as the baseline to commit.")
    ] = False,
    junit: options.Junit = None,
    emulate: Annotated[
        bool, option("--emulate", "Execute each variant too: result and barrier protocol.")
    ] = False,
    pedantic: options.Pedantic = False,
    since: Annotated[
        str, option("--since REV", "Check only variants whose inputs changed since then.")
    ] = "",
    measured: Annotated[
        bool,
        option("--measured", "Require gates on time to be decided: a missing GPU is an error."),
    ] = False,
    margin: options.Margin = 1.0,
    device: options.Device = None,
    markdown: options.Markdown = False,
    json: options.Json = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Compare all builds with the committed baseline, for CI.

    Registers, spills, stack, shared memory and SASS size of each variant that an experiment or the
    history names, and the gates of experiments.yaml. An
    improvement fails too, so that --update records it where a reviewer sees it.

    For example:
        kernelexp check --since origin/main --markdown
    """
    _refuse(kernels, update, emulate, pedantic, since, json, markdown)
    from kernelexp.model.measurement import Measuring
    from kernelexp.report.runs import gates as report
    from kernelexp.services.check import checking, gates

    loaded = common.load(project)
    for name in kernels or []:
        loaded.kernel(name)  # a sentence where there is none
    if not update or (loaded.root / gates.FILE).is_file():
        gates.read_baseline(loaded.root)  # the same, before a compiler is looked for
    if junit:
        common.require_folder(junit)
    for name in kernels or loaded.kernels:
        if emulate and loaded.kernel(name).program:
            print_message(f"note: {name} is a program: it is built, not emulated.")
    request = checking.CheckRequest(
        kernels=tuple(kernels or ()),
        pedantic=pedantic,
        since=since,
        measured=measured,
        measuring=Measuring(margin=margin / 100),
    )
    with common.session(loaded, nvcc, limit, emulate=emulate, device=device) as session:
        if update:
            path, count, changed = checking.update(loaded, request, session)
        else:
            checked = checking.check(loaded, request, session)
    if update:
        print_document(report.accepted(changed))
        typer.echo(f"wrote {path.relative_to(loaded.root)}: {count} variants")
        return
    _show(checked, junit, markdown, json)
    if emulate and (sentence := report.say_time(checked.spent)):
        print_message(sentence)
    raise typer.Exit(gates.exit_code(checked.findings))


def _show(checked: Checked, junit: Path | None, markdown: bool, json: bool) -> None:
    """Writes findings to a file for JUnit, to GitHub Actions if run there, and to stdout."""
    from kernelexp.report.document.document import as_markdown
    from kernelexp.report.runs import gates as report

    findings = checked.findings
    if junit:
        common.write_report(junit, report.to_junit(findings).encode())
    if in_github_actions():
        for annotation in report.to_annotations(findings):
            typer.echo(annotation, err=json or markdown)
    if markdown:
        text = as_markdown(report.table_of(checked))
        print_text(text)
        _append_summary(text)
    else:
        output("check", findings, report.render(checked), json)


def _refuse(
    kernels: list[str] | None,
    update: bool,
    emulate: bool,
    pedantic: bool,
    since: str,
    json: bool,
    markdown: bool,
) -> None:
    """UsageError for options that do not go together."""
    if pedantic and not emulate:
        raise UsageError("--pedantic is about what --emulate finds: add --emulate.")
    if kernels and update:
        raise UsageError("--update writes the baseline of all kernels: name none.")
    if since and update:
        raise UsageError("--update writes the baseline of all variants: leave out --since.")
    refuse_two_forms(json, markdown)


def _append_summary(text: str) -> None:
    """Shows the table on the page of a GitHub Actions run too."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)


def in_github_actions() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"
