"""A modelled time line as shapes: a row per warp, a block per span of time of one kind."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kernelexp.evidence.emulate.emulated import source_digest
from kernelexp.judge.statistics import modelled as judge
from kernelexp.model.timeline import BlockKind, Timeline, TimelineBlock
from kernelexp.report.document import figures
from kernelexp.report.site import svg
from kernelexp.report.site.svg import Tick
from kernelexp.services.modelling import KeptModelled

KINDS: dict[BlockKind, str] = {
    "copy": "copies, loads and stores",
    "mma": "MMAs, and waits for them",
    "barrier": "barriers, and waits at them",
    "wait": "other waits",
    "other": "other instructions",
}
WIDTH, ROW, LEFT = 1200.0, 24.0, 70.0
_UNITS = 3


class WarpRow(msgspec.Struct, frozen=True, kw_only=True):
    """A warp with its blocks in pixels, and the part of the time of each kind."""

    name: str
    top: float
    blocks: tuple[tuple[BlockKind, float, float, str], ...]
    """Kind, left, width, and what a pointer over it shows."""
    parts: dict[BlockKind, float]
    places: tuple[str, ...]
    """The lines that most of the time goes to."""


class DrawnTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """A CTA's warps over cycles."""

    rows: tuple[WarpRow, ...]
    ticks: tuple[Tick, ...]
    height: float
    cycles: str
    cut: bool


class ModelledRow(msgspec.Struct, frozen=True, kw_only=True):
    """A variant of a record as the model has it: no figure of it was measured."""

    name: str
    cycles: str
    change: str
    units: str
    page: str
    """The name of its time line's page; empty for none."""


def draw(timeline: Timeline) -> DrawnTimeline:
    """The blocks of each warp in WIDTH pixels."""
    scale = (WIDTH - LEFT) / timeline.cycles if timeline.cycles else 0.0
    return DrawnTimeline(
        rows=tuple(_row(number, own, scale) for number, own in enumerate(timeline.warps)),
        ticks=tuple(
            Tick(round(LEFT + at * scale, 1), figures.value(at))
            for at in svg.steps(0, timeline.cycles or 1.0)
        ),
        height=ROW * (len(timeline.warps) + 1),
        cycles=figures.value(round(timeline.cycles)),
        cut=timeline.cut,
    )


def _row(number: int, blocks: tuple[TimelineBlock, ...], scale: float) -> WarpRow:
    parts: dict[BlockKind, float] = {}
    places: dict[str, float] = {}
    for block in blocks:
        parts[block.kind] = parts.get(block.kind, 0.0) + block.cycles
        places[block.place] = places.get(block.place, 0.0) + block.cycles
    total = sum(parts.values()) or 1.0
    return WarpRow(
        name=f"warp {number}",
        top=ROW * number,
        blocks=tuple(
            (block.kind, round(LEFT + block.start * scale, 1), _width(block, scale), _title(block))
            for block in blocks
        ),
        parts={kind: parts.get(kind, 0.0) / total for kind in KINDS},
        places=tuple(sorted(places, key=lambda place: -places[place])[:_UNITS]),
    )


def _width(block: TimelineBlock, scale: float) -> float:
    return max(0.5, round(block.cycles * scale, 1))


def _title(block: TimelineBlock) -> str:
    at = f"cycles {block.start:,.0f} to {block.start + block.cycles:,.0f}"
    return f"{at}: {KINDS[block.kind]}, {block.text}, {block.place or 'no line'}"


def page_of(kept: KeptModelled) -> str:
    """The name of a time line's page: that of the sources, and the size that was modelled."""
    return f"{source_digest(kept.arm)}-{kept.run.time.size}" if kept.run.timeline else ""


def rows(kept: list[KeptModelled]) -> Iterator[ModelledRow]:
    """Those of a record, each against the first."""
    for number, own in enumerate(kept):
        time = own.run.time
        units = sorted(time.units.items(), key=lambda item: -item[1])[:_UNITS]
        yield ModelledRow(
            name=own.name,
            cycles=f"{time.cycles:,.0f}",
            change=judge.change(kept[0].run.time, time).sentence if number else "",
            units=", ".join(f"{name} {part:.0%}" for name, part in units),
            page=page_of(own),
        )
