"""kernelexp build: what the compiler makes of variants."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelexp.cli import common
from kernelexp.cli.app import app
from kernelexp.cli.arguments import parse_variants
from kernelexp.cli.console import output, print_message
from kernelexp.cli.options import (
    HERE,
    JsonOption,
    LimitOption,
    NvccOption,
    ProjectOption,
    SetOption,
    VariantsArgument,
    VerboseOption,
)
from kernelexp.model import errors
from kernelexp.model.errors import UsageError


@app.command()
def build(
    variants: VariantsArgument = None,
    repeat: Annotated[
        str | None,
        typer.Option(
            "--record",
            metavar="RUN",
            help="Build the variants of a run from its own sources.",
        ),
    ] = None,
    set_: SetOption = None,
    verbose: VerboseOption = False,
    json: JsonOption = False,
    limit: LimitOption = None,
    nvcc: NvccOption = None,
    project: ProjectOption = HERE,
) -> None:
    """Build variants and print registers, spills, memory and SASS.

    Exits with 3 if a variant does not build, or is IMPOSSIBLE.

    For example:
        kernelexp build patch_embed_gemm@sm_100a:stages=6,store=direct_v8
    """
    from kernelexp.dossier import prepare
    from kernelexp.report.variants import builds
    from kernelexp.services.run import runner

    loaded = common.load(project, sources=not repeat)
    if bool(variants) == bool(repeat):
        raise UsageError("name the variants to build, or a run with --record.")
    home = loaded
    if repeat:
        loaded, experiment = runner.restore(loaded, repeat)
        variants = [experiment]
    wanted = parse_variants(loaded, variants or [], set_)
    with common.session(home, nvcc, limit) as session:
        prepared = prepare.built(loaded, wanted, session)
    arms = {loaded.label(each): arm for each, arm in prepared.named(wanted)}
    for error in prepared.errors():
        print_message(f"error: {error}")
    output("build", arms, builds.render(arms, verbose), json)
    refused = any(arm.refused for arm in arms.values())
    raise typer.Exit(prepared.exit_code() or (errors.BUILD if refused else errors.OK))
