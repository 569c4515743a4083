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
    found = pieces.by_line(lines.pieces, resolve_role(lines, role) if role else "")
    found = [each for each in found if figure.read(each.costs) > 0]
    return figure, sorted(found, key=lambda each: (-figure.read(each.costs), each.file, each.line))


def resolve_role(lines: Lines, role: str) -> str:
    """A role by its name or by its warps."""
    for each in lines.roles:
        if role in (each.name, each.where):
            return each.name
    known = [each.name for each in lines.roles]
    if not known:
        raise UsageError(
            f"--role {role}: the roles of {lines.label} are not known, because it was not emulated."
        )
    raise UsageError(f"--role {role}: {lines.label} has no such role{suggest(role, known)}.")


def role_costs(lines: Lines) -> list[tuple[str, str, Costs]]:
    """Name, warps and costs of each role, then of what several share, then of what has none."""
    found = pieces.by_role(lines.pieces)
    rows = [
        (role.name, role.where.partition(" ")[2], found.get((role.name,), Costs()))
        for role in lines.roles
    ]
    several = [each for roles, each in found.items() if len(roles) > 1]
    if several:
        rows.append((SHARED, "", costs.add(several)))
    if () in found:
        rows.append((NOT_RUN, "", found[()]))
    return rows
