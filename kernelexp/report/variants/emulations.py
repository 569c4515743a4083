"""Variants that were emulated, side by side: the page of `kernelexp emulate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.dossier.emulations import Emulation
from kernelexp.dossier.full_counts import Full
from kernelexp.facts.counters import PIPE, describe
from kernelexp.model.arm import Arm
from kernelexp.model.axes import as_argument
from kernelexp.report.document import arms as shared
from kernelexp.report.document import figures, matrix
from kernelexp.report.document.document import Block, Span, paragraph, status, table
from kernelexp.report.runs import edited
from kernelexp.report.variants import emulation, pipe_mix
from warpsim.launch import plain_name

# Up to so many variants stand side by side in 80 columns.
_SIDE_BY_SIDE = 3


def render(emulations: Sequence[Emulation], verbose: bool = False) -> Iterator[Block]:
    """The variants' counters, then each one's full problem.

    Unless `verbose`, of one variant a few sentences, of a few what one looks at first, of many what
    differs.
    """
    alone = len(emulations) == 1
    names = [f"variant {number}" for number in range(1, len(emulations) + 1)]
    if alone:
        names = [emulations[0].label.partition("@")[0]]
    for name, item in zip(names, emulations, strict=True):
        yield paragraph(Span(item.label if alone else f"{name}: {item.label}", "strong"))
    for name, item in zip(names, emulations, strict=True):
        if refused := item.arm.refused:
            told = emulation.tells_why(item.arm)
            words = f" ({refused.reason})." + ("" if told else f" {refused.sentence}")
            yield paragraph(f"{name}: ", status(refused.status), words)
    arms = [entry.arm for entry in emulations]
    yield from emulation.results(names, arms, [as_argument(entry.label) for entry in emulations])
    is_short = alone and not verbose and emulation.tells_why(arms[0])
    if is_short:
        yield paragraph("--verbose shows what it counted.", style="dim")
    else:
        yield from _figures(names, arms, verbose)
        yield from emulation.launches(names, arms, verbose)
    if (alone and not is_short) or verbose:
        yield from emulation.dearest(names, arms, "" if verbose else " (--verbose: all)")
    for name, item in zip(names, emulations, strict=True):
        if item.scaled:
            yield from _scaled(name, item.scaled, verbose)
        elif item.not_scaled:
            yield paragraph(f"{name}: no counters of the full problem: {item.not_scaled}.")
    yield from shared.compiler_errors(dict(zip(names, arms, strict=True)))
    if not (verbose or alone) and any(arm.executed for arm in arms):
        yield paragraph("--verbose shows every counter.", style="dim")


def _figures(names: Sequence[str], arms: Sequence[Arm], verbose: bool) -> Iterator[Block]:
    alone = len(arms) == 1
    counted = not any(map(emulation.was_cut_off, arms))
    if verbose:
        yield from shared.all_figures(names, arms, ("emulated",), (PIPE,) if alone else ())
        if alone:
            yield from pipe_mix.render(arms[0], None)
        yield from emulation.opcodes(names, arms)
    elif alone:
        yield from edited.of_one(arms[0], counted)
    elif len(arms) <= _SIDE_BY_SIDE:
        yield from edited.of_variants(names, arms, counted)
    else:
        yield from matrix.render(dict(zip(names, arms, strict=True)))


def _scaled(name: str, launches: Sequence[Full], verbose: bool) -> Iterator[Block]:
    """Counters of the full problem, from what a tile and what a CTA adds: of SASS where it was
    executed, under the names that one reads; all of both, under ncu's, with `verbose`."""
    if not verbose and any(launch.isa == "sass" for launch in launches):
        launches = [launch for launch in launches if launch.isa == "sass"]
    for number, launch in enumerate(launches, 1):
        of = f" on {launch.isa.upper()}"
        of += f", launch {number}, {plain_name(launch.entry)}" if launch.entry else ""
        yield table(
            (f"{name}, full problem{of}", "per tile", "per CTA", "per launch"),
            dict.fromkeys(
                (
                    counter.counter if verbose else describe(counter.counter).label,
                    *map(figures.value, (counter.per_tile, counter.per_cta, counter.full)),
                )
                for counter in launch.counters
            ),
            numbers=(1, 2, 3),
        )
    for count in dict.fromkeys(launch.loads for launch in launches if launch.loads):
        yield paragraph(
            f"Of global loads, a tile is one of the {count:,} that load what those after them "
            "keep: see loads() in counts.py.",
            style="dim",
        )
    for tiles, ctas in dict.fromkeys((launch.tiles, launch.ctas) for launch in launches):
        yield paragraph(
            f"Extrapolated from two sizes: per tile x {tiles:,} tiles + per CTA x {ctas:,} "
            "CTAs, which is right if a tile is the same work at every size. Counters that do not "
            "fit that in whole numbers are left out."
            + (_OF_PTX if any(launch.isa == "ptx" for launch in launches) else ""),
            style="dim",
        )


_OF_PTX = " Counts of PTX do not have what ptxas adds per launch, as for tcgen05.alloc."
