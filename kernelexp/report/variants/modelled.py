"""Modelled times of variants: a table, where the cycles go, and what the model is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kernelexp.judge import modelled_pairs
from kernelexp.model.modelled import ModelledTime, PathStep
from kernelexp.report.document.document import Block, Cell, Heading, paragraph, table
from kernelexp.services.inspection import place
from kernelexp.services.modelling import ModelledVariant

UNITS_SHOWN = 3
REASONS_SHOWN = 4
STEPS_SHOWN = 6
LEAST = 0.01
"""Of the critical path, from which a role is named."""


def render(variants: Sequence[ModelledVariant], top: int) -> Iterator[Block]:
    """Cycles at the highest clock first: a time is at a stated one, and nobody measured it."""
    yield Heading("Modelled times")
    yield table(
        ("variant", "cycles", "against the first", "busiest units"),
        [_row(item) for item in variants],
        numbers=(1,),
    )
    for modelled in variants:
        if modelled.modelled.refused:
            yield paragraph(f"{modelled.variant}: {modelled.modelled.refused}", style="warn")
    yield paragraph(_worth(variants), style="dim")
    for modelled in variants:
        if modelled.modelled.lines:
            yield from _of(modelled, top)


def shorten(modelled: ModelledVariant, top: int) -> ModelledVariant:
    """Keeps the `top` lines that take most, all where it is 0."""
    time = msgspec.structs.replace(modelled.modelled, lines=modelled.modelled.lines[: top or None])
    return msgspec.structs.replace(modelled, modelled=time)


def _row(modelled: ModelledVariant) -> tuple[Cell, ...]:
    time = modelled.modelled
    if time.refused:
        return modelled.variant, "-", "-", "-"
    change = modelled.change
    return (
        modelled.variant,
        f"{time.cycles:,.0f}",
        change.sentence if change else "",
        _largest(time.units, UNITS_SHOWN),
    )


def _worth(variants: Sequence[ModelledVariant]) -> str:
    known = [modelled.modelled for modelled in variants if not modelled.modelled.refused]
    sizes = list(dict.fromkeys(" and ".join(time.followed) for time in known if time.followed))
    smaller = f" Extrapolated from size {'; '.join(sizes)}." if sizes else ""
    worth = " ".join(
        dict.fromkeys(
            modelled_pairs.spelled_worth(item.chip) for item in known or [variants[0].modelled]
        )
    )
    chips = ", ".join(dict.fromkeys(time.chip for time in known)) or "no chip"
    return (
        f"Modelled for {chips} at size {variants[0].modelled.size}; not measured. {worth}{smaller}"
    )


def _of(modelled: ModelledVariant, top: int) -> Iterator[Block]:
    time = modelled.modelled
    yield Heading(modelled.variant, level=2)
    yield paragraph(
        f"{time.cycles:,.0f} cycles, {time.microseconds:.1f} us at {time.clock_mhz:,.0f} MHz. "
        f"{power(time)}Warps: {_largest(time.reasons, REASONS_SHOWN)}."
    )
    yield from _path(time)
    header: tuple[str, ...] = ("line", "cycles", "path", "most for")
    rows: list[tuple[str, ...]] = [
        (
            place(line.source),
            f"{line.part:.1%}",
            f"{line.of_path:.1%}" if line.of_path else "hidden",
            line.reason,
        )
        for line in time.lines[: top or None]
    ]
    if modelled.sampled:
        header = (*header, "ncu's samples")
        rows = [(*row, _of_ncu(modelled, row[0])) for row in rows]
    yield table(header, rows, numbers=(1, 2), unwrapped=(3, 4)[: len(header) - 3])
    yield paragraph(
        "cycles: of all warps. path: of the critical path. What others hide is not on it: fewer "
        "cycles there would not shorten the launch.",
        style="dim",
    )


def _path(time: ModelledTime) -> Iterator[Block]:
    """Yields what the end of the launch waited for, role by role."""
    steps = time.path[:STEPS_SHOWN]
    if not steps:
        return
    through = ", ".join(f"{name} {part:.0%}" for name, part in time.roles.items() if part >= LEAST)
    yield paragraph(f"Critical path, from the launch's start to its end, through {through}:")
    yield table(
        ("role", "at", "waits for", "of the path"),
        [(step.role, place(step.source), _waits(step), f"{step.part:.0%}") for step in steps],
        numbers=(3,),
    )


def _waits(step: PathStep) -> str:
    if not step.waits_for:
        return step.reason
    whose = f" of {step.waits_on}" if step.waits_on else ""
    if step.waits_at == step.source:
        return f"{step.waits_for}{whose}"
    return f"{step.waits_for} at {place(step.waits_at)}{whose}"


def power(time: ModelledTime) -> str:
    """Says what the power limit does to the clock; empty where it does nothing."""
    if time.clock_mhz >= time.highest_mhz:
        return ""
    return (
        f"At the power limit: tensor cores that are busy for {time.tensor_duty:.0%} of the time "
        f"leave {time.clock_mhz:,.0f} of {time.highest_mhz:,.0f} MHz. "
    )


def _of_ncu(modelled: ModelledVariant, place: str) -> str:
    """Returns a profile's share and stall reason of a line."""
    own = (line for line in modelled.sampled if f"{line.file}:{line.line}" == place)
    return next((f"{line.part:.1%} {line.reason}" for line in own), "")


def _largest(parts: dict[str, float], count: int) -> str:
    most = sorted(parts.items(), key=lambda item: -item[1])[:count]
    return ", ".join(f"{name} {part:.0%}" for name, part in most)
