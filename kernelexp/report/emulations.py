"""Variants that were emulated, side by side: the page of `kernelexp emulate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelexp.emulations import Emulation
from kernelexp.evidence.scaling import Scaled
from kernelexp.report import arms as shared
from kernelexp.report import emulation, figures
from kernelexp.report.document import Block, Span, paragraph, table


def render(emulations: Sequence[Emulation]) -> Iterator[Block]:
    """The variants side by side, then each one's full problem, then what stands against them."""
    names = [f"variant {number}" for number in range(1, len(emulations) + 1)]
    for name, each in zip(names, emulations, strict=True):
        yield paragraph(Span(f"{name}: {each.label}", "strong"))
    arms = [each.arm for each in emulations]
    yield from emulation.results(names, arms)
    yield from shared.all_figures(names, arms, ("emulated",))
    yield from emulation.dearest(names, arms)
    for name, each in zip(names, emulations, strict=True):
        if each.scaled:
            yield from _scaled(name, each.scaled)
    for name, each in zip(names, emulations, strict=True):
        if refused := each.arm.refused:
            yield paragraph(f"{name}: {refused.status} ({refused.reason}). {refused.sentence}")


def _scaled(name: str, counters: Sequence[Scaled]) -> Iterator[Block]:
    """Counters of the full problem, from what a tile and what a CTA adds."""
    yield table(
        (f"{name}, full problem", "per tile", "per CTA", "per launch"),
        (
            (each.counter, *map(figures.value, (each.per_tile, each.per_cta, each.full)))
            for each in counters
        ),
        numbers=(1, 2, 3),
    )
    yield paragraph(
        "Extrapolated from two sizes: per tile x tiles + per CTA x CTAs, which is right if a tile "
        "is the same work at every size. Counters that do not fit that in whole numbers are left "
        "out. From PTX: what ptxas adds per launch, as for tcgen05.alloc, is not in them.",
        style="dim",
    )
