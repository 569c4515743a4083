"""A table of what the compiler makes of variants, or their steps for ninja: `inspect --build`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kernelexp.cli import common
from kernelexp.cli.arguments import parse_variants
from kernelexp.cli.console import print_message
from kernelexp.model import errors
from kernelexp.model.arm import faults, without_fault
from kernelexp.model.errors import UsageError


def show(
    variants: list[str] | None,
    sets: list[str] | None,
    run: str | None,
    start: Path,
    nvcc: str | None,
    limit: list[str] | None,
    verbose: bool,
    output: Callable[..., None],
) -> int:
    """Builds these variants, or those of a recorded run from its own sources; the exit code, 3 if
    one does not build."""
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
        built = prepare.built(loaded, wanted, session)
    arms = {loaded.label(arm): arm for arm in without_fault(built)}
    found = faults(built)
    for error in dict.fromkeys(map(str, found)):
        print_message(f"error: {error}")
    output("build", arms, builds.render(arms, verbose))
    refused = any(arm.refused for arm in arms.values())
    code = errors.BUILD if refused else errors.OK
    return found[0].exit_code if found else code


def write_ninja(
    folder: Path,
    texts: list[str] | None,
    sets: list[str] | None,
    start: Path,
    nvcc: str | None,
    limit: list[str] | None,
) -> None:
    """The steps of these variants, or of all that are named; those IMPOSSIBLE have none."""
    from kernelexp.dossier import prepare
    from kernelexp.evidence.build import make_plans, ninjafile
    from kernelexp.services.check import gates

    loaded = common.load(start)
    wanted = parse_variants(loaded, texts or [], sets)
    wanted = wanted or list(gates.named_variants(loaded).values())
    with common.session(loaded, nvcc, limit) as session:
        possible = prepare.possible(loaded, wanted, session.limits)
        plans = make_plans(loaded.root, possible, session.tools)
    file = folder / ninjafile.NAME
    try:
        ninjafile.write(folder, {loaded.label(plan.variant): plan for plan in plans})
    except OSError as error:
        raise UsageError(f"--ninja {folder}: {error.strerror}.") from None
    print_message(f"{file}: {len(plans)} variants; build them with: ninja -f {file}")
