"""The page of `kernelexp inspect`: one variant, or what differs between several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelexp.report.document.document import Block, Heading, paragraph, table
from kernelexp.report.variants import inspection as one
from kernelexp.services import inspected
from kernelexp.services.inspected import Judged
from kernelexp.services.inspection import BARRIERS, InspectedExecution, Inspection


def render(inspections: Sequence[Inspection], judged: Judged, top: int) -> Iterator[Block]:
    """One variant by itself, several by what differs."""
    if len(inspections) == 1:
        yield from one.render(inspections[0], top)
    elif inspections:
        yield from _differences(inspections)
    yield from one.conditions(judged)


def _differences(inspections: Sequence[Inspection]) -> Iterator[Block]:
    yield Heading("What differs")
    for number, inspection in enumerate(inspections, 1):
        refused = inspection.arm.refused
        yield paragraph(f"{number}: {inspection.label}{f' ({refused.status})' if refused else ''}")
    built = {str(number): item for number, item in enumerate(inspections, 1) if item.arm.build}
    variants = list(built.values())
    first = next(iter(built), "")
    for name, inspection in list(built.items())[1:]:
        if inspected.is_same(built[first], inspection):
            yield paragraph(f"{name} has identical SASS to {first}.")
    differing = [
        (title, [(name, *map(_spell, row)) for name, row in rows.items() if len({*row}) > 1])
        for title, rows in sections(variants).items()
    ]
    for title, cells in differing:
        if cells:
            yield table((title, *built), cells, numbers=range(1, len(built) + 1))
    if any(cells for title, cells in differing if "executed" in title):
        yield paragraph("Executed: in one launch at size 'emulated'.", style="dim")
    if len(built) > 1 and not any(cells for _, cells in differing):
        yield paragraph("No count differs.")


def sections(inspections: Sequence[Inspection]) -> dict[str, dict[str, list[float]]]:
    """The figures of each variant by section and name, in the variants' order."""
    counts = [inspection.counts() for inspection in inspections]
    emulated = [_executed(inspection.executed) for inspection in inspections if inspection.executed]
    return {
        "code": _aligned([inspected.size(inspection) for inspection in inspections]),
        "accesses": _aligned([_accesses(inspection) for inspection in inspections]),
        "instructions": _aligned([count.every for count in counts]),
        "instructions in loops": _aligned([count.in_loops for count in counts]),
        # Of all or of none: a variant that was not emulated has not 0.
        "instructions executed": _aligned(
            [inspection.executed_by_mnemonic() for inspection in inspections]
            if all(inspection.costs for inspection in inspections)
            else []
        ),
        "barriers executed per CTA": _aligned(
            emulated if len(emulated) == len(inspections) else []
        ),
    }


def _aligned(figures: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    names = sorted({name for figure in figures for name in figure}) if figures else []
    return {name: [figure.get(name, 0) for figure in figures] for name in names}


def _accesses(inspection: Inspection) -> dict[str, float]:
    return {
        f"{access.kind}, {access.bits} bits": count
        for access, count in inspected.access_counts(inspection.code).items()
    }


def _executed(executed: InspectedExecution) -> dict[str, float]:
    return {
        name: executed.times(kind) / executed.ctas
        for kind, name in BARRIERS.items()
        if executed.times(kind)
    }


def _spell(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".") if value else "-"
