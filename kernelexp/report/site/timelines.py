"""A modelled time line as shapes: a row per warp, a block per span of time of one kind."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kernelexp.evidence.emulate.emulated import source_digest
from kernelexp.judge import modelled_pairs
from kernelexp.model.timeline import BlockKind, Timeline, TimelineBlock, role_of, row_name
from kernelexp.report.document import figures
from kernelexp.report.site import svg
from kernelexp.report.site.svg import Tick
from kernelexp.services.modelling import KeptModelled

KINDS: dict[BlockKind, str] = {
    "copy": "copies, loads, stores",
    "memory": "waits for memory",
    "mma": "MMAs and waits for them",
    "barrier": "barriers and waits at them",
    "wait": "other waits",
    "other": "other instructions",
}
WIDTH, ROW = 960.0, 22.0
_LETTER = 7.0
"""Of the names of rows."""
_UNITS = 3
_ALIKE = 0.05
"""Of the time: shares nearer than that are one row."""


class WarpShares(msgspec.Struct, frozen=True, kw_only=True):
    """Neighbouring warps whose time goes to the same: the part of each kind, and the line that
    most of it goes to."""

    first: int
    last: int
    role: str
    """Empty where the source has no name for it."""
    parts: dict[BlockKind, float]
    place: str

    @property
    def name(self) -> str:
        one = self.first == self.last
        warps = f"warp {self.first}" if one else f"warps {self.first} to {self.last}"
        return f"{warps}, {self.role}" if self.role else warps


class DrawnTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """A CTA's warps over cycles; what is in pixels is so in WIDTH of them."""

    timeline: Timeline
    names: tuple[str, ...]
    """Of the warps' rows."""
    shares: tuple[WarpShares, ...]
    ticks: tuple[Tick, ...]
    left: float
    """Where time begins, right of the rows' names."""
    scale: float
    """Pixels per cycle."""
    height: float


class ModelledRow(msgspec.Struct, frozen=True, kw_only=True):
    """A variant of a record as the model has it: no figure of it was measured."""

    name: str
    cycles: str
    change: str
    units: str
    page: str
    """The name of its time line's page; empty for none."""


def draw(timeline: Timeline) -> DrawnTimeline:
    """The places of the blocks of each warp in WIDTH pixels."""
    names = tuple(row_name(number, timeline.roles) for number in range(len(timeline.warps)))
    left = _LETTER * (1 + max(map(len, names), default=0))
    scale = (WIDTH - left) / timeline.cycles if timeline.cycles else 0.0
    return DrawnTimeline(
        timeline=timeline,
        names=names,
        shares=tuple(_shares(timeline)),
        ticks=tuple(
            Tick(round(left + at * scale, 1), figures.value(at))
            for at in svg.steps(0, timeline.cycles or 1.0)
        ),
        left=left,
        scale=scale,
        height=ROW * (len(timeline.warps) + 1),
    )


def _shares(timeline: Timeline) -> Iterator[WarpShares]:
    """Yields the shares of the warps in their order; neighbours that are alike share a row."""
    alike: WarpShares | None = None
    for number, blocks in enumerate(timeline.warps):
        own = _shares_of(number, role_of(number, timeline.roles), blocks)
        if alike and _whose(alike) == _whose(own) and _far(alike, own) < _ALIKE:
            alike = msgspec.structs.replace(alike, last=number)
            continue
        if alike:
            yield alike
        alike = own
    if alike:
        yield alike


def _whose(shares: WarpShares) -> tuple[str, str]:
    return shares.role, shares.place


def _shares_of(number: int, role: str, blocks: tuple[TimelineBlock, ...]) -> WarpShares:
    total = sum(block.cycles for block in blocks) or 1.0
    places: dict[str, float] = {}
    for block in blocks:
        places[block.place] = places.get(block.place, 0.0) + block.cycles
    return WarpShares(
        first=number,
        last=number,
        role=role,
        parts={
            kind: sum(block.cycles for block in blocks if block.kind == kind) / total
            for kind in KINDS
        },
        place=max(places, key=lambda place: places[place], default=""),
    )


def _far(one: WarpShares, other: WarpShares) -> float:
    return max(abs(one.parts[kind] - other.parts[kind]) for kind in KINDS)


def page_of(kept: KeptModelled) -> str:
    """The name of a time line's page: that of the sources, and the size that was modelled."""
    return f"{source_digest(kept.arm)}-{kept.run.time.size}" if kept.run.timeline else ""


def rows(kept: list[KeptModelled]) -> Iterator[ModelledRow]:
    """Those of a record, each against the first."""
    for number, own in enumerate(kept):
        time = own.run.time
        apart = modelled_pairs.apart(kept[0].arm, own.arm)
        units = sorted(time.units.items(), key=lambda item: -item[1])[:_UNITS]
        yield ModelledRow(
            name=own.name,
            cycles=f"{time.cycles:,.0f}",
            change=modelled_pairs.change(kept[0].run.time, time, apart).sentence if number else "",
            units=", ".join(f"{name} {part:.0%}" for name, part in units),
            page=page_of(own),
        )
