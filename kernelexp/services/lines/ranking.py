"""The lines of a variant ranked by a figure, and the costs of its roles side by side."""

from __future__ import annotations

from kernelexp.model.errors import UsageError, suggest
from kernelexp.services.lines import costs, pieces
from kernelexp.services.lines.costs import CostFigure, Costs
from kernelexp.services.lines.pieces import Piece
from kernelexp.services.lines.service import Lines

SHARED = "shared"
NOT_RUN = "role not known"


def rank(lines: Lines, by: str | None, role: str | None) -> tuple[CostFigure, list[Piece]]:
    """The figure, and the lines that have any of it, most first."""
    total = costs.add(piece.costs for piece in lines.pieces)
    figure = costs.figure(by, total) if by else costs.preferred(total)
    result = pieces.by_line(lines.pieces, resolve_role(lines, role) if role else "")
    result = [piece for piece in result if figure.read(piece.costs) > 0]
    return figure, sorted(
        result, key=lambda piece: (-figure.read(piece.costs), piece.file, piece.line)
    )


def resolve_role(lines: Lines, role: str) -> str:
    """A role by its name or by its warps."""
    for item in lines.roles:
        if role in (item.name, item.where):
            return item.name
    known = [entry.name for entry in lines.roles]
    if not known:
        raise UsageError(
            f"--role {role}: the roles of {lines.label} are not known, because it was not emulated."
        )
    raise UsageError(f"--role {role}: {lines.label} has no such role{suggest(role, known)}.")


def role_costs(lines: Lines) -> list[tuple[str, str, Costs]]:
    """Name, warps and costs of each role, then of what several share, then of what has none."""
    result = pieces.by_role(lines.pieces)
    rows = [
        (role.name, role.where.partition(" ")[2], result.get((role.name,), Costs()))
        for role in lines.roles
    ]
    several = [item for roles, item in result.items() if len(roles) > 1]
    if several:
        rows.append((SHARED, "", costs.add(several)))
    if () in result:
        rows.append((NOT_RUN, "", result[()]))
    return rows
