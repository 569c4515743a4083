"""kernelexp build: what the compiler makes of variants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from kernelexp.model.variant import Variant
    from kernelexp.project import Project


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
    ninja: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Build nothing: write build.ninja and compile_commands.json to FOLDER, of these "
            "variants or of all that experiments name.",
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
        kernelexp build --ninja build && ninja -f build/build.ninja
    """
    from kernelexp.dossier import prepare
    from kernelexp.report.variants import builds
    from kernelexp.services.run import runner

    loaded = common.load(project, sources=not repeat)
    if ninja is not None:
        if repeat or json:
            raise UsageError("--ninja goes with variants alone.")
        _write_ninja(loaded, ninja, parse_variants(loaded, variants or [], set_), limit, nvcc)
        return
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


def _write_ninja(
    project: Project, folder: Path, variants: list[Variant], limit: LimitOption, nvcc: NvccOption
) -> None:
    """build.ninja of the variants, or of all that are named, but for those that are IMPOSSIBLE."""
    from kernelexp.dossier import prepare
    from kernelexp.evidence.build import make_plans, ninjafile
    from kernelexp.services.check import gates

    wanted = variants or list(gates.named_variants(project).values())
    with common.session(project, nvcc, limit) as session:
        possible = prepare.possible(project, wanted, session.limits)
        plans = make_plans(project.root, possible, session.tools)
    named = {project.label(plan.variant): plan for plan in plans}
    try:
        ninjafile.write(folder, named)
    except OSError as error:
        raise UsageError(f"--ninja {folder}: {error.strerror}.") from None
    print_message(
        f"{folder / ninjafile.NAME}: {len(named)} variants; in {project.root}: "
        f"ninja -f {folder / ninjafile.NAME}"
    )
