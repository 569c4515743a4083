"""A table of what the compiler makes of variants: `inspect --build`."""

from __future__ import annotations

from pathlib import Path

import typer

from kernelexp.cli import common
from kernelexp.cli.arguments import parse_variants
from kernelexp.cli.console import output, print_message
from kernelexp.model import errors
from kernelexp.model.errors import UsageError


def show(
    variants: list[str] | None,
    sets: list[str] | None,
    run: str | None,
    start: Path,
    nvcc: str | None,
    limit: list[str] | None,
    *,
    verbose: bool,
    json: bool,
    markdown: bool,
) -> None:
    """Builds these variants, or those of a recorded run from its own sources; ends with 3 if one
    does not build."""
    from kernelexp.dossier import prepare
    from kernelexp.report.variants import builds
    from kernelexp.services.run import runner

    loaded = common.load(start, sources=not run)
    if bool(variants) == bool(run):
        raise UsageError("name the variants to build, or a run with --record.")
    home = loaded
    if run:
        loaded, experiment = runner.restore(loaded, run)
        variants = [experiment]
    wanted = parse_variants(loaded, variants or [], sets)
    with common.session(home, nvcc, limit) as session:
        prepared = prepare.built(loaded, wanted, session)
    arms = {loaded.label(variant): arm for variant, arm in prepared.named(wanted)}
    for error in prepared.errors():
        print_message(f"error: {error}")
    output("build", arms, builds.render(arms, verbose), json, markdown)
    refused = any(arm.refused for arm in arms.values())
    raise typer.Exit(prepared.exit_code() or (errors.BUILD if refused else errors.OK))
