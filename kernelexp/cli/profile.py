"""kernelexp profile: hardware counters of variants from ncu, taken here or imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import parse_variants
from kernelexp.cli.completion import variant_names
from kernelexp.cli.console import output, print_message
from kernelexp.cli.modes import refuse_other_modes
from kernelexp.cli.options import HERE, option
from kernelexp.model.errors import KernelexpError, UsageError

if TYPE_CHECKING:
    from kernelexp.evidence.profile.ncu import Ncu
    from kernelexp.model.arm import BuildEvidence
    from kernelexp.model.experiment import Variant
    from kernelexp.project import Project
    from kernelexp.services.profiling import Profiling


WITH_IMPORT = "With --import"


@app.command()
def profile(
    ctx: typer.Context,
    variants: options.Variants = None,
    set_: options.Set = None,
    size: Annotated[str, option("--size NAME", "Which size of problem.py to launch.")] = "full",
    sections: Annotated[
        str | None,
        option(
            "--sections NAMES|all",
            "Comma-separated sections to collect instead of the usual ones: ncu's (ncu "
            "--list-sections lists them), those of kernelexp show, or files such as my.yaml.",
        ),
    ] = None,
    clock_control: Annotated[
        Literal["none", "base"],
        option("--clock-control", "none: clocks as they are; base: ncu locks the base clock."),
    ] = "none",
    cache_control: Annotated[
        Literal["all", "none"],
        option("--cache-control", "all: ncu flushes the caches before each pass."),
    ] = "all",
    import_: Annotated[
        list[Path] | None,
        option(
            "--import FILE...",
            "Import pages or reports of ncu instead: .ncu-rep, CSV of the pages raw, details and "
            "source of one launch, or ncu's plain text. Needs --variant.",
        ),
    ] = None,
    variant: Annotated[
        str | None,
        option(
            "--variant VARIANT|EXPERIMENT",
            "The variant that was launched, or an experiment.",
            WITH_IMPORT,
            completion=variant_names,
        ),
    ] = None,
    candidate: Annotated[
        int | None,
        option(
            "--candidate N",
            "Which candidate, if --variant is an experiment; 0 is the baseline.",
            WITH_IMPORT,
            min=0,
        ),
    ] = None,
    kernel: Annotated[
        str,
        option("--kernel REGEX", "The kernel to import, if the files have several.", WITH_IMPORT),
    ] = "",
    launch: Annotated[
        int | None,
        option("--launch N", "Which of its launches to import, counted from 1.", WITH_IMPORT),
    ] = None,
    ncu: Annotated[str | None, option("--ncu PATH", "The ncu to use.")] = None,
    device: options.Device = None,
    json: options.Json = False,
    markdown: options.Markdown = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Profile variants with ncu, or import what ncu printed elsewhere.

    Each variant is launched once, and its result is compared with the reference. Profiles are kept
    in logs/profiles and belong to the variant, by its axes.

    For example:
        kernelexp profile F3
        kernelexp profile --import raw.csv details.csv --variant F3
    """
    from kernelexp.evidence.profile import imports
    from kernelexp.evidence.profile import ncu as programs
    from kernelexp.evidence.profile.take import ProfileSettings
    from kernelexp.services import profiling

    loaded = common.load(project)
    if import_:
        files = [*import_, *map(Path, variants or [])]
        placed = _placed(loaded, variant, candidate, set_)
        imported = imports.read(files, kernel, launch, ncu)
        build = _build(loaded, placed, nvcc, limit)
        _print([profiling.keep(loaded, placed, imported, build)], json, markdown)
        return
    refuse_other_modes(ctx)
    if not variants:
        raise UsageError(
            "name the variants to profile (kernelexp show lists kernels and axes), or import a "
            "profile: --import FILE --variant NAME."
        )
    wanted = parse_variants(loaded, variants, set_)
    program = programs.find(ncu)
    counters, metrics = _counters(program, sections, device)
    settings = ProfileSettings(
        size=size,
        sections=counters,
        metrics=metrics,
        clock_control=clock_control,
        cache_control=cache_control,
        device=device,
    )
    with common.session(loaded, nvcc, limit) as session:
        done = profiling.profile(loaded, wanted, session, ncu=program, settings=settings)
    for fault in dict.fromkeys(one.fault for one in done if one.fault):
        print_message(f"error: {fault}")
    _print(done, json, markdown)
    raise typer.Exit(profiling.exit_code(done))


def _build(
    loaded: Project, placed: Variant, nvcc: str | None, limit: list[str] | None
) -> BuildEvidence | None:
    """The build that an imported launch is compared with: made now, or as recorded without nvcc."""
    from kernelexp.services import profiling

    try:
        with common.session(loaded, nvcc, limit) as session:
            return profiling.build_of(loaded, placed, session)
    except KernelexpError:
        return profiling.recorded_build(loaded, placed)


def _counters(
    ncu: Ncu, named: str | None, device: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """ncu's sections, and the metrics of kernelexp's own sections that this GPU has."""
    from kernelexp.evidence.profile import ncu as programs
    from kernelexp.evidence.profile import take
    from kernelexp.facts import chips
    from kernelexp.project import sections as own

    usual = named is None or named == "all"
    names = [] if usual else [name.strip() for name in (named or "").split(",")]
    chosen = [*own.NAMES, "gap"] if usual else [name for name in names if own.is_own(name)]
    wanted = own.find(chosen) if chosen else ()
    others = ",".join(name for name in names if not own.is_own(name))
    counters = programs.sections(ncu, named if usual else others) if usual or others else ()
    if own.wants_source(wanted) and programs.SOURCE not in counters:
        counters = (*counters, programs.SOURCE)
    family = chips.family_of_arch(take.find_gpu(device).arch)
    return counters, own.metrics_to_ask(wanted, family)


def _placed(
    loaded: Project, text: str | None, candidate: int | None, set_: list[str] | None
) -> Variant:
    """The one variant that an imported launch is of."""
    if text is None:
        raise UsageError("--import needs --variant, which says what the launch is of.")
    text = loaded.id_of(text)
    variants = parse_variants(loaded, [text], set_)
    if text not in loaded.experiments:
        if candidate is not None:
            raise UsageError(f"--candidate belongs to an experiment, and {text!r} is a variant.")
        return variants[0]
    if candidate is None and len(variants) > 2:
        raise UsageError(
            f"{text} has {len(variants) - 1} candidates: choose one with --candidate N."
        )
    number = 1 if candidate is None else candidate
    if number >= len(variants):
        raise UsageError(f"--candidate {number}: {text} has candidates 1 to {len(variants) - 1}.")
    return variants[number]


def _print(done: list[Profiling], json: bool, markdown: bool) -> None:
    from kernelexp.report.variants import profiles

    output("profile", done, profiles.render(done), json, markdown)
