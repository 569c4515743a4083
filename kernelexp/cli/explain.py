"""kernelexp explain: why an experiment came out as it did, or what a variant could gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelexp.cli import common, options
from kernelexp.cli.app import app
from kernelexp.cli.common import parse_variants
from kernelexp.cli.completion import assignments, variant_names
from kernelexp.cli.console import output
from kernelexp.cli.modes import refuse_other_modes
from kernelexp.cli.options import HERE, argument, option
from kernelexp.model.errors import nearest

if TYPE_CHECKING:
    from kernelexp.project import Project

WITH_EXPERIMENT = "With an experiment"
WITH_VARIANT = "With a variant"


@app.command()
def explain(
    ctx: typer.Context,
    name: Annotated[
        str,
        argument(
            "EXPERIMENT|VARIANT",
            "Id of an experiment or of a step of the history, H2:2 for its second candidate; or "
            "KERNEL, KERNEL@ARCH or KERNEL@ARCH:axis=value,...",
            completion=variant_names,
        ),
    ],
    candidate: Annotated[
        int, option("--candidate N", "Which of several candidates.", WITH_EXPERIMENT, min=1)
    ] = 1,
    set_: Annotated[
        list[str] | None,
        option(
            "--set AXIS=VALUE",
            "Override an axis. Repeatable.",
            WITH_VARIANT,
            completion=assignments,
        ),
    ] = None,
    modelled: Annotated[
        bool,
        option(
            "--modelled",
            "Also say what the model of time makes of the two; no GPU is needed.",
            WITH_EXPERIMENT,
        ),
    ] = False,
    emulate: options.Emulate = True,
    verbose: Annotated[
        bool, option("--verbose -v", "Show how the share of each limit was computed too.")
    ] = False,
    json: options.Json = False,
    markdown: options.Markdown = False,
    limit: options.Limit = None,
    nvcc: options.Nvcc = None,
    project: options.Project = HERE,
) -> None:
    """Explain an experiment, or rank what could be gained in a variant.

    For an experiment, show whether its expectations were met, what differs between its variants,
    and how near they come to the limits of the chip. For a variant, rank bank conflicts, occupancy,
    tail waves and the like, each with an estimate and how it was computed; if it was profiled,
    ncu's own rules are included, except those known to be false.

    Variants are built and emulated as they are now; times and profiles are those on record. A
    cause is never more than likely: what would decide it is named, with the command that supplies
    it.

    For example:
        kernelexp explain T3 --candidate 2
        kernelexp explain transpose@sm_90a:layout=plain
    """
    loaded = common.load(project)
    name, candidate = _numbered(loaded, loaded.id_of(name), candidate)
    is_experiment = _is_experiment(loaded, name)
    refuse_other_modes(ctx, WITH_EXPERIMENT if is_experiment else WITH_VARIANT)
    if is_experiment:
        from kernelexp.project import require_candidate

        require_candidate(name, loaded.experiment(name), candidate)
    from kernelexp.services import explaining

    with common.session(loaded, nvcc, limit, emulate=emulate) as session:
        if is_experiment:
            from kernelexp.report.variants import explanation as page

            explanation = explaining.candidate(loaded, name, candidate, session, modelled=modelled)
            document = page.render(explanation, verbose)
            output("explain", explanation.explained, document, json, markdown)
        else:
            from kernelexp.report.variants import opportunities

            (variant,) = parse_variants(loaded, [name], set_)
            dossier, offered = explaining.variant(loaded, variant, session)
            document = opportunities.render(dossier, offered, verbose)
            output("opportunities", offered, document, json, markdown)


def _numbered(loaded: Project, name: str, candidate: int) -> tuple[str, int]:
    """H2:2 is candidate 2 of H2, as other commands have it."""
    experiment, _, number = name.rpartition(":")
    if experiment not in loaded.experiments or not number.isdecimal():
        return name, candidate
    return experiment, int(number)


def _is_experiment(loaded: Project, name: str) -> bool:
    """A name that is neither an experiment's nor like a kernel's is taken for an experiment's."""
    if name in loaded.experiments:
        return True
    kernel, at, _ = name.partition("@")
    return not (at or ":" in kernel or nearest(kernel, list(loaded.kernels)))
