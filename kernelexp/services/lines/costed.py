"""Costs by source line and by role as `inspect --lines --json` has them, ranked by a figure."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from kernelexp.evidence.emulate.roles import members
from kernelexp.facts import widths
from kernelexp.model.arm import AccessWidths, Isa, Verdict
from kernelexp.services.lines import service
from kernelexp.services.lines.costs import FIGURES, Costs
from kernelexp.services.lines.pieces import Piece, PieceInstruction
from kernelexp.services.lines.service import Lines


class CostedRole(msgspec.Struct, frozen=True, kw_only=True):
    """The costs of one role of the warps."""

    role: str
    warps: tuple[int, ...]
    figures: dict[str, float]
    emulated: dict[str, int]
    profiled: dict[str, float]


class CostedLine(msgspec.Struct, frozen=True, kw_only=True):
    """The costs of one source line."""

    file: str
    line: int
    text: str
    widths: tuple[AccessWidths, ...]
    """Its memory accesses whose widths differ between PTX and SASS."""
    roles: tuple[str, ...]
    figures: dict[str, float]
    """Those of the table, by name."""
    emulated: dict[str, int]
    profiled: dict[str, float]
    instructions: tuple[PieceInstruction, ...] | UnsetType = UNSET
    """With --source."""


class CostedVariant(msgspec.Struct, frozen=True, kw_only=True):
    """A variant's lines, ranked by one figure."""

    variant: str
    size: str
    isa: Isa
    """What was counted by line: SASS where that was executed, else PTX."""
    profile: str | None
    """The run that stalls are from."""
    profile_is_of_this_build: bool | None
    refused: Verdict | None
    by: str | UnsetType = UNSET
    """The figure; absent where there are no lines."""
    roles: tuple[CostedRole, ...] = ()
    lines: tuple[CostedLine, ...] = ()


def variant(lines: Lines, by: str | None, top: int, role: str | None, sass: bool) -> CostedVariant:
    """All figures of each line, of the kind that they are.

    by, role: as of ranking.rank(); top: how many lines, 0 for all; sass: with their instructions.
    """
    result = CostedVariant(
        variant=lines.label,
        size=lines.size,
        isa=lines.isa,
        profile=lines.profile.run if lines.profile else None,
        profile_is_of_this_build=lines.by_offset if lines.profile else None,
        refused=lines.arm.refused,
    )
    if not lines.pieces:
        return result
    figure, ranked = service.rank(lines, by, role)
    warps = {item.name: item.warps for item in lines.roles}
    return msgspec.structs.replace(
        result,
        by=figure.name,
        roles=tuple(
            CostedRole(
                role=name,
                warps=tuple(members(warps.get(name, 0))),
                figures=_figures(costs),
                emulated=costs.emulated,
                profiled=costs.profiled,
            )
            for name, _, costs in service.role_costs(lines)
        ),
        lines=tuple(_line(lines, piece, sass) for piece in ranked[: top or None]),
    )


def _line(lines: Lines, piece: Piece, sass: bool) -> CostedLine:
    return CostedLine(
        file=piece.file,
        line=piece.line,
        text=lines.text(piece),
        widths=tuple(widths.of_line(lines.arm.emulated, piece.file, piece.line)),
        roles=piece.roles,
        figures=_figures(piece.costs),
        emulated=piece.costs.emulated,
        profiled=piece.costs.profiled,
        instructions=piece.instructions if sass else UNSET,
    )


def _figures(costs: Costs) -> dict[str, float]:
    return {name: figure.read(costs) for name, figure in FIGURES.items()}
