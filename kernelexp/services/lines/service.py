"""Variants to their costs by line and by role, ranked: built, emulated, joined with profiles; and
as `inspect --lines --json` has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from kernelexp.dossier import prepare
from kernelexp.dossier.session import Session
from kernelexp.evidence import build
from kernelexp.evidence.code import line_table, sass_lines
from kernelexp.evidence.code.sass_lines import SassInstruction
from kernelexp.evidence.emulate import emulated, roles
from kernelexp.evidence.emulate.emulated import EmulationOptions
from kernelexp.evidence.emulate.job import LineCost
from kernelexp.evidence.emulate.roles import Role, members
from kernelexp.facts import widths
from kernelexp.logs import profiles
from kernelexp.model.arm import AccessWidths, Arm, Isa, ProfiledInstruction, Verdict, faults
from kernelexp.model.errors import KernelexpError, UsageError, suggest
from kernelexp.model.experiment import Variant
from kernelexp.model.limits import Limits
from kernelexp.model.record import Profile
from kernelexp.project import Project
from kernelexp.project.problem import consult
from kernelexp.services.lines import costs, pieces
from kernelexp.services.lines.costs import FIGURES, CostFigure, Costs
from kernelexp.services.lines.pieces import Piece, PieceInstruction
from warpsim.lineinfo import Source


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """A variant's code with its costs."""

    label: str
    size: str
    """Of the emulation."""
    arm: Arm
    isa: Isa = "ptx"
    """What was counted by line: SASS where that was executed."""
    pieces: tuple[Piece, ...] = ()
    """Empty for a variant that is not built."""
    roles: tuple[Role, ...] = ()
    """One where all warps run the same code; none where nothing was emulated."""
    texts: dict[str, dict[int, str]] = {}
    """The lines of the sources, by path from the root and number."""
    profile: Profile | None = None
    """The one that stalls are from."""
    by_offset: bool = False
    """The profile is of this very code, so that each of its instructions has its line and role."""

    def text(self, piece: Piece) -> str:
        """The line of a piece, its spaces made one."""
        if not piece.file:
            return "code that no line table names"
        return " ".join(self.texts.get(piece.file, {}).get(piece.line, "").split())


def look(
    project: Project,
    variants: Sequence[Variant],
    session: Session,
    size: str,
    isas: tuple[Isa, ...] = emulated.BOTH,
) -> tuple[list[Lines], list[KernelexpError]]:
    """The variants with what is known of their lines, and the faults of those that have none.

    Counted on SASS where that is among `isas` and can be executed, else on PTX.
    """
    prepare.refuse_programs(variants, "cost by source line")
    for kernel in dict.fromkeys(variant.kernel for variant in variants):
        consulted = consult.consult(project.root, kernel, timeout_s=session.limits.problem_s)
        consult.require_size(kernel, consulted.sizes, size)
    arms = prepare.built(project, variants, session)
    arms = prepare.emulated(project, arms, session, how=EmulationOptions(size=size, isas=isas))
    result = [
        _look(project, variant, arm, size, session.limits)
        for variant, arm in zip(variants, arms, strict=True)
        if isinstance(arm, Arm)
    ]
    return result, faults(arms)


def _look(project: Project, variant: Variant, arm: Arm, size: str, limits: Limits) -> Lines:
    bare = Lines(label=project.label(variant), size=size, arm=arm)
    if arm.build is None:
        return bare
    root, artefacts = project.root, build.artefacts(project.root, arm.identity)
    isa: Isa = "sass" if arm.counted else "ptx"
    counts = emulated.instructions(root, arm, size, limits, bare.label) if arm.counted else ()
    lines = _of_entry(root, arm, isa, size, limits, bare.label)
    # ptxas mixes the lines of roles, and has few left of a short one.
    apart = _of_entry(root, arm, "ptx", size, limits, bare.label) if arm.emulated else lines
    sass = sass_lines.read(artefacts.cubin, artefacts.sass, arm.build.entry)
    profile, sampled = _sampled(root, variant)
    files = {frame.file for line in (*lines, *apart) for frame in line.source.frames()}
    texts = roles.read_texts(
        root, files | {f.file for i in sass if i.source for f in i.source.frames()}
    )
    functions = line_table.functions(artefacts.cubin, arm.build.entry)
    whose = roles.name(roles.find(apart), apart, functions, roles.comments(texts))
    return msgspec.structs.replace(
        bare,
        isa=isa,
        pieces=pieces.cut(
            lines,
            whose,
            sass,
            sampled,
            {count.offset: count.executed for count in counts if count.entry == arm.build.entry}
            if counts
            else None,
        ),
        roles=whose,
        texts=texts,
        profile=profile,
        by_offset=pieces.is_of(sampled, sass),
    )


def kept_isa(root: Path, arms: Sequence[Arm]) -> Isa:
    """Returns the ISA on which the lines of all can be counted without executing anything."""
    kept = (emulated.kept_lines(root, arm, emulated.SIZE, "sass") or arm.counted for arm in arms)
    return "sass" if all(kept) else "ptx"


def kept(
    root: Path,
    label: str,
    arm: Arm,
    isa: Isa,
    code: Sequence[SassInstruction],
    texts: dict[str, dict[int, str]],
    profile: Profile | None,
) -> Lines:
    """An arm of a record with its code, which is in the cache: nothing is built or executed.

    Where no emulation is kept, the lines that the record has have counts, its dearest.
    """
    entry = arm.build.entry if arm.build else ""
    recorded = arm.counted if isa == "sass" else arm.emulated
    size = recorded.size if recorded else emulated.SIZE
    lines = emulated.kept_lines(root, arm, size, isa) or tuple(
        LineCost(entry=entry, source=Source(line.file, line.line), warps=0, counters=line.counters)
        for line in (recorded.lines if recorded else ())
    )
    counts = emulated.kept_instructions(root, arm, size) if isa == "sass" else None
    executed = {count.offset: count.executed for count in counts or () if count.entry == entry}
    sampled = profile.arm.profiled.instructions if profile and profile.arm.profiled else ()
    own = [cost for cost in lines if cost.entry == entry]
    return Lines(
        label=label,
        size=size,
        arm=arm,
        isa=isa,
        pieces=pieces.cut(own, (), code, sampled, executed if counts else None),
        texts=texts,
        profile=profile if sampled else None,
        by_offset=pieces.is_of(sampled, code),
    )


def _of_entry(
    root: Path, arm: Arm, isa: Isa, size: str, limits: Limits, label: str
) -> list[LineCost]:
    """Returns the costs of every line of the entry; empty where nothing was executed."""
    if arm.build is None or not (arm.counted if isa == "sass" else arm.emulated):
        return []
    every = emulated.lines(root, arm, size, limits, label, isa)
    return [cost for cost in every if cost.entry == arm.build.entry]


def _sampled(
    root: Path, variant: Variant
) -> tuple[Profile | None, tuple[ProfiledInstruction, ...]]:
    """The latest profile of a variant that has a source page, and that page."""
    for profile in profiles.of_variant(root, variant.kernel, variant.arch, variant.axes):
        if profile.arm.profiled and profile.arm.profiled.instructions:
            return profile, profile.arm.profiled.instructions
    return None, ()


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


def costed(lines: Lines, by: str | None, top: int, role: str | None, sass: bool) -> CostedVariant:
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
    figure, ranked = rank(lines, by, role)
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
            for name, _, costs in role_costs(lines)
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
