"""The code of a variant, cut by source line and by the roles that run it, with what each costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kernelexp.evidence.code.sass_lines import SassInstruction, opcode_of
from kernelexp.evidence.emulate.job import LineCost
from kernelexp.evidence.emulate.roles import Role
from kernelexp.model.arm import ProfiledInstruction
from kernelexp.services.lines import costs
from kernelexp.services.lines.costs import SAMPLES, Costs
from warpsim.lineinfo import Source


class PieceInstruction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A SASS instruction of a piece."""

    offset: int
    text: str
    pipe: str
    executed: int | None = None
    """Warp instructions of the emulated SASS; None where that was not executed."""
    profiled: dict[str, float] = {}
    """Its row of a profile's source page."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Code of one line that the same roles run."""

    file: str
    """Path from the project's root; empty for code of no line."""
    line: int
    roles: tuple[str, ...]
    """Empty where no emulation ran it."""
    costs: Costs
    instructions: tuple[PieceInstruction, ...] = ()


class RolesOfCode:
    """The roles that run a piece of code, by its line and what that was inlined at.

    Code that no emulation ran has the roles of its caller.
    """

    def __init__(self, lines: Iterable[LineCost], roles: Sequence[Role]) -> None:
        self.roles = roles
        self.warps: dict[Source, int] = {}
        for line in lines:
            for frame in line.source.frames():
                self.warps[frame] = self.warps.get(frame, 0) | line.warps

    def of_warps(self, warps: int) -> tuple[str, ...]:
        return tuple(role.name for role in self.roles if role.warps & warps)

    def of_source(self, source: Source | None) -> tuple[str, ...]:
        frames = source.frames() if source else []
        ran = next((self.warps[frame] for frame in frames if frame in self.warps), 0)
        return self.of_warps(ran)


def cut(
    lines: Sequence[LineCost],
    roles: Sequence[Role],
    sass: Sequence[SassInstruction],
    profiled: Sequence[ProfiledInstruction],
    executed: Mapping[int, int] | None = None,
) -> tuple[Piece, ...]:
    """The pieces of all that evidence tells of, by file and line.

    executed: how often each instruction of SASS was, by offset; None where none is known.
    A profile of this very build goes by offset; another one by the lines that it names itself.
    """
    whose = RolesOfCode(lines, roles)
    same = is_of(profiled, sass)
    rows = {instruction.offset: instruction for instruction in profiled} if same else {}
    pieces = [_emulated(line, whose) for line in lines]
    pieces += [
        _built(instruction, rows.get(instruction.offset), whose, executed)
        for instruction in sass
        if not instruction.is_padding
    ]
    if not same:
        pieces += [_named(instruction) for instruction in profiled if instruction.file]
    groups: dict[tuple[str, int, tuple[str, ...]], list[Piece]] = {}
    for piece in pieces:
        groups.setdefault((piece.file, piece.line, piece.roles), []).append(piece)
    return tuple(merge(group) for _, group in sorted(groups.items()))


def is_of(profiled: Sequence[ProfiledInstruction], sass: Sequence[SassInstruction]) -> bool:
    """Whether a profile is of this code: each of its instructions is at its offset."""
    opcodes = {instruction.offset: instruction.opcode for instruction in sass}
    return bool(profiled) and all(
        opcodes.get(instruction.offset) == opcode_of(instruction.sass) for instruction in profiled
    )


def merge(pieces: Sequence[Piece]) -> Piece:
    """Pieces of one line as one, run by the roles of all."""
    instructions = [instruction for piece in pieces for instruction in piece.instructions]
    return Piece(
        file=pieces[0].file,
        line=pieces[0].line,
        roles=tuple(dict.fromkeys(role for piece in pieces for role in piece.roles)),
        costs=costs.add(piece.costs for piece in pieces),
        instructions=tuple(
            sorted(instructions, key=lambda piece_instruction: piece_instruction.offset)
        ),
    )


def by_line(pieces: Iterable[Piece], role: str = "") -> list[Piece]:
    """A piece for each line: what all roles do there, or what one of them does, alone or not."""
    lines: dict[tuple[str, int], list[Piece]] = {}
    for piece in pieces:
        if not role or role in piece.roles:
            lines.setdefault((piece.file, piece.line), []).append(piece)
    return [merge(group) for group in lines.values()]


def by_role(pieces: Iterable[Piece]) -> dict[tuple[str, ...], Costs]:
    """The costs of each set of roles: those of one role alone, and those that several share."""
    groups: dict[tuple[str, ...], list[Costs]] = {}
    for piece in pieces:
        groups.setdefault(piece.roles, []).append(piece.costs)
    return {roles: costs.add(group) for roles, group in groups.items()}


def _place(source: Source | None) -> tuple[str, int]:
    own = source.own() if source else None
    return (own.file, own.line) if own else ("", 0)


def _emulated(line: LineCost, whose: RolesOfCode) -> Piece:
    file, number = _place(line.source)
    roles = whose.of_warps(line.warps)
    return Piece(file=file, line=number, roles=roles, costs=Costs(emulated=line.counters))


def _built(
    sass_instruction: SassInstruction,
    row: ProfiledInstruction | None,
    whose: RolesOfCode,
    executed: Mapping[int, int] | None,
) -> Piece:
    file, number = _place(sass_instruction.source)
    figures = _sampled(row.figures) if row else {}
    one = PieceInstruction(
        offset=sass_instruction.offset,
        text=sass_instruction.text,
        pipe=sass_instruction.pipe,
        executed=None if executed is None else executed.get(sass_instruction.offset, 0),
        profiled=figures,
    )
    return Piece(
        file=file,
        line=number,
        roles=whose.of_source(sass_instruction.source),
        costs=Costs(sass=1, profiled=figures),
        instructions=(one,),
    )


def _named(instruction: ProfiledInstruction) -> Piece:
    return Piece(
        file=instruction.file,
        line=instruction.line,
        roles=(),
        costs=Costs(profiled=_sampled(instruction.figures)),
    )


def _sampled(figures: Mapping[str, float]) -> dict[str, float]:
    """Puts samples under the name that all versions of ncu share."""
    result = dict(figures)
    if SAMPLES not in result and "# Samples" in result:
        result[SAMPLES] = result["# Samples"]
    return result
