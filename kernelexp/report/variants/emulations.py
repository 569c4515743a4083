"""The page of `kernelexp emulate`: variants side by side, or runs that were emulated again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelexp.dossier.emulations import Emulation
from kernelexp.dossier.full_counts import Full
from kernelexp.facts.counters import PIPE, describe
from kernelexp.judge import verdict
from kernelexp.logs.documents import Recount, RecountedArm
from kernelexp.model.arm import Arm
from kernelexp.model.experiment import as_argument
from kernelexp.report.document import arms as shared
from kernelexp.report.document import figures
from kernelexp.report.document.document import Block, Span, grouped, paragraph, status, table
from kernelexp.report.variants import edited, emulation, pipe_mix
from kernelexp.services.recounting import Recounted
from warpsim.launch import plain_name

# Up to so many variants stand side by side in 80 columns.
_SIDE_BY_SIDE = 3


def render(emulations: Sequence[Emulation], verbose: bool = False) -> Iterator[Block]:
    """The variants' counters, then each one's full problem.

    Unless `verbose`, of one variant a few sentences, of a few what one looks at first, of many what
    differs.
    """
    alone = len(emulations) == 1
    named = {f"variant {number}": item for number, item in enumerate(emulations, 1)}
    if alone:
        named = {emulations[0].label.partition("@")[0]: emulations[0]}
    for name, item in named.items():
        yield paragraph(Span(item.label if alone else f"{name}: {item.label}", "strong"))
    for name, item in named.items():
        if refused := item.arm.refused:
            told = emulation.tells_why(item.arm)
            words = f" ({refused.reason})." + ("" if told else f" {refused.sentence}")
            yield paragraph(f"{name}: ", status(refused.status), words)
    arms = {name: item.arm for name, item in named.items()}
    yield from emulation.results(arms, [as_argument(entry.label) for entry in emulations])
    is_short = alone and not verbose and emulation.tells_why(emulations[0].arm)
    if is_short:
        yield paragraph("--verbose shows what it counted.", style="dim")
    else:
        yield from _figures(arms, verbose)
        yield from emulation.launches(arms, verbose)
    if (alone and not is_short) or verbose:
        yield from emulation.dearest(arms, "" if verbose else " (--verbose: all)")
    for name, item in named.items():
        if item.scaled:
            yield from _scaled(name, item.scaled, verbose)
        elif item.not_scaled:
            yield paragraph(f"{name}: no counters of the full problem: {item.not_scaled}.")
    yield from shared.compiler_errors(arms)
    if not (verbose or alone) and any(arm.executed for arm in arms.values()):
        yield paragraph("--verbose shows every counter.", style="dim")


def _figures(arms: Mapping[str, Arm], verbose: bool) -> Iterator[Block]:
    every = list(arms.values())
    alone = len(every) == 1
    counted = not any(map(emulation.was_cut_off, every))
    if verbose:
        yield from shared.all_figures(arms, ("emulated",), (PIPE,) if alone else ())
        if alone:
            yield from pipe_mix.render(every[0], None)
        yield from emulation.opcodes(arms)
    elif alone:
        yield from edited.of_one(every[0], counted)
    elif len(arms) <= _SIDE_BY_SIDE:
        yield from edited.of_variants(arms, counted)
    else:
        yield from shared.matrix(arms)


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


def recounted(results: Sequence[Recounted]) -> Iterator[Block]:
    """A line for each run that was emulated again, and what could not be."""
    if not results:
        yield paragraph("No run of these experiments is recorded here.")
    for one in results:
        name = f"{one.experiment} {one.run}"
        if one.recount is None:
            yield paragraph(f"{name}: not recounted. {one.why}", style="warn")
            continue
        done = f"recounted ({one.path})" if one.is_new else "this emulator's counts are there"
        yield paragraph(f"{name}: {done}. {_counted(one.recount)}")
        for arm, why in one.left_out.items():
            yield paragraph(f"{name}, {arm}: left out. {why}", style="warn")
        for arm, taken in one.recount.arms.items():
            both = Arm(emulated=taken.emulated, emulated_sass=taken.emulated_sass)
            if other := verdict.disagreement(both):
                yield paragraph(f"{name}, {arm}: {other.sentence}.", style="warn")


def _counted(recount: Recount) -> str:
    """Says on what the arms were counted, those with the same words together."""
    groups = grouped((_words(arm), name) for name, arm in recount.arms.items())
    return " ".join(f"{', '.join(names)}: {words}" for words, names in groups.items())


def _words(arm: RecountedArm) -> str:
    if why := arm.emulated.unsupported:
        return f"not executed: {why}"
    if arm.emulated_sass and not (why := arm.emulated_sass.unsupported):
        return "PTX and SASS."
    return f"PTX only: {why}"
