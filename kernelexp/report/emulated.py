"""Emulated evidence for people: the result, counters side by side, the dearest lines, findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kernelexp.evidence.scaling import Scaled
from kernelexp.model import EmulatedEvidence
from kernelexp.report import figures

# The same accesses under a second name, and PTX-level totals that only say how long it ran.
_LEFT_OUT = ("l1tex__t_", "ptx__thread_inst_executed")
_LINES_SHOWN = 3
_FINDINGS_SHOWN = 5
_COSTS = {
    "memory_l1_wavefronts_shared": "shared wavefronts",
    "memory_l2_theoretical_sectors_global": "global sectors",
}


def render(
    names: Sequence[str], found: Sequence[EmulatedEvidence | None]
) -> Iterator[RenderableType]:
    """Variants that were emulated, side by side; differences are against the first."""
    if not any(found):
        return
    for name, evidence in zip(names, found, strict=True):
        if evidence and evidence.unsupported:
            yield Text(f"{name}: not emulated. {evidence.unsupported}")
    if any(evidence and evidence.counters for evidence in found):
        yield _table(names, found)
    for name, evidence in zip(names, found, strict=True):
        if evidence:
            yield from _details(name, evidence)


def _table(names: Sequence[str], found: Sequence[EmulatedEvidence | None]) -> Table:
    size = next(evidence.size for evidence in found if evidence)
    title = f"emulated, one launch of size {size!r}"
    table = Table(title, *names, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    table.add_row("result against float64", *(_result(evidence) for evidence in found))
    counters = list(dict.fromkeys(name for each in found if each for name in each.counters))
    for counter in counters:
        if counter.startswith(_LEFT_OUT):
            continue
        values = [each.counters.get(counter, 0) if each else None for each in found]
        table.add_row(counter, *(_cell(values[0], value) for value in values))
    return table


def _cell(baseline: int | None, value: int | None) -> Text:
    if value is None:
        return Text(figures.NONE)
    text = Text(figures.count(value))
    if baseline is not None and value != baseline:
        text.append(f" ({figures.change(baseline, value)})", style="yellow")
    return text


def _result(evidence: EmulatedEvidence | None) -> Text:
    if evidence is None or not evidence.arrays:
        return Text(figures.NONE)
    if any(array.wrong for array in evidence.arrays):
        return Text("wrong", style="bold red")
    if evidence.findings or evidence.differing or evidence.hang:
        return Text("unsafe", style="bold red")
    return Text("right", style="green")


def _details(name: str, evidence: EmulatedEvidence) -> Iterator[Text]:
    for array in evidence.arrays:
        yield Text(
            f"{name}: {array.wrong:,} of {array.elements:,} elements of {array.name} wrong, the "
            f"worst at {array.worst:.2f} of the tolerance, relative error {array.frobenius:.1e} "
            f"(Frobenius), {len(evidence.schedules)} schedules"
        )
    for finding in evidence.findings[:_FINDINGS_SHOWN]:
        yield Text(
            f"{name}: {finding.name}: {finding.sentence} ({finding.where}; {finding.count}x)"
        )
    for waiter in evidence.hang[:_FINDINGS_SHOWN]:
        yield Text(f"{name}: {waiter}")
    for cost, words in _COSTS.items():
        lines = [line for line in evidence.lines if line.counters.get(cost)]
        lines.sort(key=lambda line: -line.counters[cost])
        if lines:
            dearest = ", ".join(
                f"{line.file.rpartition('/')[2]}:{line.line} {line.counters[cost]:,}"
                for line in lines[:_LINES_SHOWN]
            )
            yield Text(f"{name}, most {words}: {dearest}")


def render_scaled(name: str, scaled: Sequence[Scaled]) -> Iterator[RenderableType]:
    """Counters of the full problem, from what a tile and what a CTA adds."""
    table = Table(
        f"{name}, full problem", "a tile", "a CTA", "a launch", box=box.SIMPLE_HEAD, pad_edge=False
    )
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.justify = "right"
        column.no_wrap = True
    for each in scaled:
        figures_ = (each.per_tile, each.per_cta, each.full)
        table.add_row(each.counter, *map(figures.count, figures_))
    yield table
    yield Text(
        "Exact: a tile x tiles + a CTA x CTAs; counters that depend on the schedule (polling) are "
        "left out. PTX-level: what ptxas adds per launch, as for tcgen05.alloc, is not in it.",
        style="dim",
    )
