"""The page of `kernelexp inspect`: one variant, or what differs between several; and as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kernelexp.judge.instructions import JudgedInstructions
from kernelexp.report.document.code_places import loop_line, place, polls
from kernelexp.report.document.document import Block, Heading, paragraph, table
from kernelexp.report.variants import inspection as one
from kernelexp.report.variants import pipe_mix
from kernelexp.report.variants.inspected import (
    ExecutedBarrier,
    FullBarriers,
    Inspected,
    InspectedAccess,
    InspectedBarrier,
    InspectedCondition,
    InspectedExecution,
    InspectedLoop,
    InspectedRepetition,
    InspectedVariant,
)
from kernelexp.services.inspection import BARRIERS, ExecutedBarriers, Inspection

Judged = Sequence[tuple[str, JudgedInstructions]]


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
        if is_same(built[first], inspection):
            yield paragraph(f"{name} has identical SASS to {first}.")
    differing = [(title, _differing(rows)) for title, rows in sections(variants).items()]
    for title, cells in differing:
        if cells:
            yield table((title, *built), cells, numbers=range(1, len(built) + 1))
    if any(cells for title, cells in differing if "executed" in title):
        yield paragraph("Executed: in one launch at size 'emulated'.", style="dim")
    if len(built) > 1 and not any(cells for _, cells in differing):
        yield paragraph("No count differs.")


def _differing(rows: Mapping[str, Sequence[float]]) -> list[tuple[str, ...]]:
    return [
        (name, *(_spell(value) for value in row)) for name, row in rows.items() if len(set(row)) > 1
    ]


def is_same(first: Inspection, other: Inspection) -> bool:
    """Whether both have the same instructions at the same offsets."""
    return [
        (sass_instruction.offset, sass_instruction.text) for sass_instruction in first.code
    ] == [(sass_instruction.offset, sass_instruction.text) for sass_instruction in other.code]


def sections(inspections: Sequence[Inspection]) -> dict[str, dict[str, list[float]]]:
    """The figures of each variant by section and name, in the variants' order."""
    counts = [inspection.counts() for inspection in inspections]
    emulated = [_executed(inspection.executed) for inspection in inspections if inspection.executed]
    return {
        "code": _aligned([_size(inspection) for inspection in inspections]),
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


def _size(inspection: Inspection) -> dict[str, float]:
    assert inspection.arm.build is not None
    used = inspection.arm.build.resources
    spilled = {} if used.spill_bytes is None else {"bytes spilled": used.spill_bytes}
    return {
        "instructions": len(inspection.code),
        "bytes of code": used.sass_bytes,
        "registers per thread": used.registers,
        **spilled,
        "bytes of stack": used.stack_bytes,
        "loops": len(inspection.flow.loops),
    }


def _accesses(inspection: Inspection) -> dict[str, float]:
    return {
        f"{access.kind}, {access.bits} bits": count
        for access, count in one.access_counts(inspection.code).items()
    }


def _executed(executed: ExecutedBarriers) -> dict[str, float]:
    return {
        name: executed.times(kind) / executed.ctas
        for kind, name in BARRIERS.items()
        if executed.times(kind)
    }


def _spell(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".") if value else "-"


# ---- values --------------------------------------------------------------------------------------


def to_values(inspections: Sequence[Inspection], judged: Judged, top: int) -> Inspected:
    """Inspections for programs: every instruction count, and each barrier and loop."""
    built = [inspection for inspection in inspections if inspection.arm.build]
    return Inspected(
        variants=tuple(_values(inspection, top) for inspection in inspections),
        same_sass_as_first=tuple(is_same(built[0], inspection) for inspection in built[1:]),
        expected=tuple(
            InspectedCondition(variant=label, **msgspec.structs.asdict(instructions))
            for label, instructions in judged
        ),
    )


def _values(inspection: Inspection, top: int) -> InspectedVariant:
    if inspection.arm.build is None:
        return InspectedVariant(variant=inspection.label, refused=inspection.arm.refused)
    return InspectedVariant(
        variant=inspection.label,
        refused=inspection.arm.refused,
        code=_size(inspection),
        accesses=_access_values(inspection),
        counts=inspection.counts(),
        barriers=tuple(
            InspectedBarrier(
                offset=i.offset,
                instruction=i.text,
                loop=inspection.loop(i),
                lines=tuple(str(frame) for frame in i.source.frames()) if i.source else (),
            )
            for i in inspection.code
            if i.opcode in one.BARRIER_OPCODES
        ),
        executed=_executed_values(inspection.executed),
        loops=_loop_values(inspection),
        repeated=tuple(
            InspectedRepetition(line=place(source), instruction=mnemonic, loop=loop, copies=count)
            for (source, mnemonic, loop), count in one.repeated(inspection)[: top or None]
        ),
        pipes=inspection.arm.build.pipes,
        executed_instructions=inspection.executed_by_mnemonic() if inspection.costs else None,
        executed_pipes=pipe_mix.emulated(inspection.arm) if inspection.arm.counted else None,
    )


def _access_values(inspection: Inspection) -> tuple[InspectedAccess, ...]:
    sass = one.access_counts(inspection.code)
    looped = one.access_counts([i for i in inspection.code if inspection.loop(i)])
    result = inspection.ptx_accesses
    return tuple(
        InspectedAccess(
            kind=access.kind,
            bits=access.bits,
            sass=sass[access],
            in_loops=looped[access],
            ptx=None if result is None else result.get(access, 0),
        )
        for access in sorted(set(sass) | set(result or {}))
    )


def _loop_values(inspection: Inspection) -> tuple[InspectedLoop, ...]:
    return tuple(
        InspectedLoop(
            loop=loop.number,
            parent=loop.parent,
            depth=loop.depth,
            line=place(loop_line(inspection, loop)),
            instructions=sum(i.offset in loop.offsets for i in inspection.code),
            polls=polls(inspection, loop),
        )
        for loop in inspection.flow.loops
    )


def _executed_values(executed: ExecutedBarriers | None) -> InspectedExecution | None:
    if executed is None:
        return None
    full = FullBarriers(ctas=executed.full_ctas, times=executed.full, how=executed.full_how)
    return InspectedExecution(
        size=executed.size,
        ctas=executed.ctas,
        tiles=executed.tiles,
        lines=tuple(
            ExecutedBarrier(
                kind=line.kind, line=place(line.source), warps=line.warps, times=line.times
            )
            for line in executed.lines
        ),
        full=full if executed.full else None,
    )
