"""A sweep's record with what it comes to, and the plan of a sweep, for programs."""

from __future__ import annotations

import msgspec

from kernelexp.facts import metrics
from kernelexp.judge import sweeps
from kernelexp.judge.statistics import racing
from kernelexp.judge.statistics.plateau import AxisFinding, Plateau
from kernelexp.model.arm import Verdict
from kernelexp.model.record import Record
from kernelexp.services.run.sweep import Grid, TimingEstimate


class SweptPlateau(msgspec.Struct, frozen=True, kw_only=True):
    """Variants that make no difference, and what they have in common."""

    widest: float
    shared: dict[str, metrics.Value]
    differing: tuple[str, ...]
    same_code: int
    hot_line: str


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep's record with what it comes to; rows are positions of its arms."""

    record: Record
    ranking: tuple[int, ...]
    front: tuple[int, ...]
    race: racing.RaceResult | None
    axes: tuple[AxisFinding, ...]
    plateau: SweptPlateau | None
    path: str | msgspec.UnsetType | None = msgspec.UNSET
    """The record's file, where the sweep has just run; None where none was written."""


class PlannedSweep(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep would compare; what a search would refuse is not known before."""

    sweep: Grid
    refused: dict[str, Verdict] | msgspec.UnsetType = msgspec.UNSET
    timing: TimingEstimate | msgspec.UnsetType | None = msgspec.UNSET
    """None where no run of this kernel was timed here."""


def to_values(record: Record) -> Swept:
    """The record with what it comes to, for programs."""
    examined = sweeps.examine(record)
    return Swept(
        record=record,
        ranking=tuple(int(sweeps.row_of(record, name)) for name in examined.ranking),
        front=tuple(int(sweeps.row_of(record, name)) for name in examined.front),
        race=examined.race,
        axes=examined.axes,
        plateau=_plain(examined.plateau) if examined.plateau else None,
    )


def _plain(flat: Plateau) -> SweptPlateau:
    return SweptPlateau(
        widest=flat.widest,
        shared={figure.metric.name: figure.value for figure in flat.shared},
        differing=flat.differing,
        same_code=flat.same_code,
        hot_line=flat.hot_line,
    )
