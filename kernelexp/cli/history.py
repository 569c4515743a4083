"""kernelexp history: one variant at each commit of a range, or the commit that changed it."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import refuse_two_forms
from kernelexp.cli.console import output
from kernelexp.cli.modes import refuse_all_but, refuse_other_modes
from kernelexp.cli.options import HERE, option
from kernelexp.model import errors
from kernelexp.model.errors import UsageError

WITH_GOOD = "With --good and --bad"


@app.command()
def history(
    ctx: typer.Context,
    name: options.Arm,
    revisions: Annotated[
        str, option("--revisions A..B", "The commits after A up to B, along first parents.")
    ] = "",
    good: Annotated[str, option("--good REV", "Find the first bad commit after this one.")] = "",
    bad: Annotated[str, option("--bad REV", "A later revision that is bad.")] = "",
    by: Annotated[
        str,
        option(
            "--by WHAT",
            "What is bad: time, result (emulated), build, or a built or emulated figure, such as "
            "launch__registers_per_thread.",
            WITH_GOOD,
        ),
    ] = "time",
    emulate: options.Emulate = False,
    gpu: options.Gpu = True,
    margin: options.Margin = 1.0,
    device: options.Device = None,
    markdown: options.Markdown = False,
    json: options.Json = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Show a variant at each commit of a range, or find the commit that made it slower or wrong.

    Each revision is built in a worktree of its own with today's compiler. With --revisions, A is
    the baseline, and all that differs is timed together; commits with the same SASS and launch
    share a time. With --good and --bad, the good revision is timed together with each that is
    tried, in the same processes.

    For example:
        kernelexp history F3 --revisions HEAD~10..HEAD
        kernelexp history F3 --good v1.2 --bad HEAD --by result
    """
    from kernelexp.model.measurement import Measuring
    from kernelexp.project import parse_arm
    from kernelexp.report.log import revisions as report
    from kernelexp.services.revisions import bisecting, timeline

    refuse_two_forms(json, markdown)
    is_search = bool(good and bad)
    if is_search == bool(revisions) or bool(good) != bool(bad):
        raise UsageError("say which commits: --revisions A..B, or --good REV and --bad REV.")
    if is_search:
        options = ("good", "bad", "by", "margin", "device", "markdown", "json", "limit", "nvcc")
        refuse_all_but(ctx, "--good and --bad", *options, "project")
    else:
        refuse_other_modes(ctx)
    loaded = common.load(project)
    variant, _, _ = parse_arm(loaded, name)
    measuring = Measuring(margin=margin / 100)
    with common.session(loaded, nvcc, limit, emulate=emulate, device=device) as session:
        if is_search:
            request = bisecting.BisectRequest(good=good, bad=bad, by=by, measuring=measuring)
            outcome = bisecting.bisect(loaded, variant, request, session)
            output("bisect", outcome, report.bisected(outcome), json, markdown)
            raise typer.Exit(errors.OK if len(outcome.first_bad) == 1 else errors.INCONCLUSIVE)
        timing = measuring if gpu else None
        traced = timeline.trace(loaded, variant, revisions, session, timing)
        output("history", traced, report.timeline(traced), json, markdown)
