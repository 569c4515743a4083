"""Branches, calls, and where the lanes of a warp part and come together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from warpsim.front.sass import word
from warpsim.front.sass.decoder import SassDecoder, copyto
from warpsim.front.sass.isa.memory import nothing
from warpsim.front.sass.operands import Reader
from warpsim.front.sass.registry import BranchPoint, Reconvergence, covers
from warpsim.front.sass.syntax import AROUND, ZERO, LiteralOperand, Operand, RegisterOperand
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.core.warps import pack
from warpsim.machine.schedule.program import Exit
from warpsim.machine.sync import convergence
from warpsim.machine.sync.convergence import Converge
from warpsim.machine.wave.machine import Op, WarpSet

FULL = 0xFFFF_FFFF
_READ_LANES = frozenset({"VOTE", "VOTEU", "SHFL", "MATCH", "REDUX", "ELECT", "R2UR", "S2UR"})


@covers("NOP", "NANOSLEEP", "NANOSLEEP.SYNCS", "ENDCOLLECTIVE", "ACQBULK", "PREEXIT")
def idle(d: SassDecoder) -> Op:
    """Time is not modelled; the launch before has ended."""
    return Formed(nothing, CompiledForm("nothing", ()))


@covers("YIELD")
def give_way(d: SassDecoder) -> Op:
    """Lanes that wait where these would join them may go on, if otherwise nobody can."""
    return lambda R, m, warps: convergence.give_way(warps, m)


@covers(AROUND)
def around(d: SassDecoder) -> BranchPoint:
    """The branch of the lanes for which the guard of the next instruction does not hold."""
    slot, negated = d.guard()
    return BranchPoint((d.site.number + 2,), slot, not negated)


@covers("BPT.TRAP")
def trap(d: SassDecoder) -> Op:
    """Ends the launch with a finding."""
    site = d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        warps.machine.report("trap", "the kernel executed trap.", site, int(warps.warps[0]))
        raise Fatal

    return op


@covers("EXIT")
def leave(d: SassDecoder) -> BranchPoint | Exit:
    """Ends the lanes for which the guard and the predicate hold."""
    if not d.operands and d.instruction.guard is None:
        return Exit()
    return _where(d, (-1,), d.operands)


@covers("BRA", "BRA.U")
def bra(d: SassDecoder) -> BranchPoint:
    """To an address, of the lanes for which the guard and the predicate hold."""
    *predicates, target = d.operands
    return _where(d, (d.number_at(target),), predicates)


def _where(d: SassDecoder, targets: tuple[int, ...], predicates: Sequence[Operand]) -> BranchPoint:
    """A branch of the lanes for which all predicates and the guard hold."""
    conditions = [d.predicate_slot(predicate) for predicate in predicates]
    if d.instruction.guard is not None:
        conditions.append(d.guard())
    if not conditions:
        return BranchPoint(targets)
    if len(conditions) == 1:
        return BranchPoint(targets, *conditions[0])
    return BranchPoint(targets, d.scratch("branch", 1), before=_all(d, conditions))


def _all(d: SassDecoder, conditions: Sequence[tuple[int, bool]]) -> Op:
    """Sets the predicate of a branch to whether all conditions hold."""
    result = d.scratch("branch", 1)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        holds = np.logical_and.reduce([R[slot] != negated for slot, negated in conditions])
        copyto(R[result], holds, where=m)

    return op


@covers("BRA.U.ANY")
def bra_any(d: SassDecoder) -> BranchPoint:
    """To an address, of all active lanes if the guard holds for any."""
    (target,) = d.take(d.operands, 1)
    if d.instruction.guard is None:
        return BranchPoint((d.number_at(target),))
    (slot, negated), result = d.guard(), d.scratch("branch", 1)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        holds = ((R[slot] != negated) & warps.active(m)).any(axis=1)[:, None]
        copyto(R[result], holds, where=m)

    return BranchPoint((d.number_at(target),), result, before=op)


@covers("BRA.{:DIV|CONV}")
def bra_div(d: SassDecoder) -> BranchPoint:
    """To an address, of all active lanes, if those for which the guard holds are not all that a
    mask names but for those that have exited; with `.CONV` if they are. So ptxas asks at once
    whether all lanes of a mask are here, and whether they have the same mask."""
    mask, target = d.take(d.operands, 2)
    guard = None if d.instruction.guard is None else d.guard()
    members, result = d.integer(mask), d.scratch("branch", 1)
    divided = "DIV" in d.modifiers

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        lanes = warps.active(m) if guard is None else warps.active(m) & (R[guard[0]] != guard[1])
        here = np.array(pack(lanes), np.uint32)[:, None]
        exited = [warps.machine.exited[place] for place in warps.warps.tolist()]
        missing = members(R) & ~here & ~np.array(exited, np.uint32)[:, None]
        copyto(R[result], (missing != 0) == divided, where=m)

    return BranchPoint((d.number_at(target),), result, before=op)


@covers("BSSY{:|.RECONVERGENT|.RELIABLE}")
def bssy(d: SassDecoder) -> Op:
    """The active lanes are those that will come together at the barrier's BSYNC."""
    barrier, target = d.take(d.operands, 2)
    number = _barrier(d, barrier)
    d.number_at(target)
    return lambda R, m, warps: convergence.enter(warps, m, number)


@covers("BSYNC{:|.RECONVERGENT|.RELIABLE}")
def bsync(d: SassDecoder) -> Converge:
    """Waits for the lanes of the barrier that have neither exited nor left it."""
    (barrier,) = d.take(d.operands, 1)
    return Converge(d.site, _barrier(d, barrier))


@covers("BREAK{:|.RELIABLE}")
def break_(d: SassDecoder) -> Op:
    """The active lanes leave a barrier."""
    *predicates, barrier = d.operands
    number = _barrier(d, barrier)
    conditions = [d.predicate(predicate) for predicate in predicates]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        leaving = m
        for condition in conditions:
            leaving = warps.active(leaving) & condition(R)
        convergence.leave(warps, leaving, number)

    return op


@covers("BMOV.32.CLEAR", "BMOV.32")
def bmov(d: SassDecoder) -> Op:
    """Keeps a barrier in a register, so that a function may use it, and gives it back."""
    to, source = d.take(d.operands, 2)
    if "CLEAR" in d.modifiers:
        if getattr(to, "index", ZERO) == ZERO:
            raise d.refuse("keeps a barrier nowhere, which is not covered")
        slot, number = d.to(to), _barrier(d, source)
        return lambda R, m, warps: copyto(R[slot], convergence.keep(warps, m, number), where=m)
    number, read = _barrier(d, to), d.bits(source)
    return lambda R, m, warps: convergence.give_back(warps, m, number, read(R))


def _barrier(d: SassDecoder, operand: Operand) -> int:
    if not isinstance(operand, RegisterOperand) or operand.file != "B":
        raise d.refuse("names no convergence barrier")
    return operand.index


@covers("WARPSYNC", "WARPSYNC.ALL")
def warpsync(d: SassDecoder) -> Reconvergence:
    """Waits for the lanes of a mask, here or at another instruction of the kind."""
    return _together(d, d.operands, anywhere=True)


@covers("WARPSYNC.COLLECTIVE", "WARPSYNC.COLLECTIVE.ALL")
def collective(d: SassDecoder) -> Reconvergence:
    """Waits for the lanes of a mask, which execute together, and apart from lanes with other masks,
    what follows up to ENDCOLLECTIVE. Lanes at different instructions of the kind are one for a
    barrier; for what reads other lanes they are not: then they hang."""
    *operands, target = d.operands
    d.number_at(target)
    return _together(d, operands, anywhere=not _reads_lanes(d), exclusive=True)


def _reads_lanes(d: SassDecoder) -> bool:
    """Whether an instruction from here to ENDCOLLECTIVE reads registers of other lanes."""
    following = itertools.islice(d.code, d.site.number, None)
    body = itertools.takewhile(lambda ins: ins.base != "ENDCOLLECTIVE", following)
    return any(ins.base in _READ_LANES for ins in body)


@covers("WARPSYNC.EXCLUSIVE")
def exclusive(d: SassDecoder) -> Reconvergence:
    """Waits for the lanes of a mask, which execute what follows up to the next branch apart from
    lanes with other masks."""
    (mask,) = d.take(d.operands, 1)
    return Reconvergence(d.words(d.unsigned(mask), 1)[0], anywhere=False, exclusive=True)


def _together(
    d: SassDecoder, operands: Sequence[Operand], *, anywhere: bool, exclusive: bool = False
) -> Reconvergence:
    if "ALL" in d.modifiers:
        d.take(operands, 0)
        return Reconvergence(-1, anywhere)
    (mask,) = d.take(operands, 1)
    if isinstance(mask, LiteralOperand) and mask.value == FULL:
        return Reconvergence(-1, anywhere)
    return Reconvergence(d.words(d.unsigned(mask), 1)[0], anywhere, exclusive)


@covers("CALL.REL.NOINC")
def call(d: SassDecoder) -> BranchPoint:
    """To an address, which may be in registers: that of the return is."""
    if len(d.operands) == 2:
        d.unguarded()
        return _indirect(d, d.pair(d.operands[0]), d.constant(d.operands[1]))
    (target,) = d.take(d.operands, 1)
    if d.instruction.guard is not None:
        return BranchPoint((d.number_at(target),), *d.guard())
    return BranchPoint((d.number_at(target),))


@covers("RET.REL.NODEC")
def ret(d: SassDecoder) -> BranchPoint:
    """To an address in registers, relative to the function."""
    source, base = d.take(d.operands, 2)
    d.unguarded()
    return _indirect(d, d.pair(source), d.constant(base))


@covers("BRX", "BRXU")
def brx(d: SassDecoder) -> BranchPoint:
    """To an address in registers, those of the warp for BRXU, relative to the next instruction."""
    source, base = d.take(d.operands, 2)
    d.unguarded()
    offset = d.constant(base) + d.instruction.address + word.BYTES
    return _indirect(d, d.pair(source), offset)


def _indirect(d: SassDecoder, source: Reader, offset: int) -> BranchPoint:
    index, numbers = d.scratch("target", 32), d.starts()
    known = np.full(1 + max(numbers), -1, np.int64)
    for address, number in numbers.items():
        known[address] = number
    plus, site = np.uint64(offset), d.site

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        at = source(R) + plus & np.uint64(0xFFFF_FFFF)
        inside = at < len(known)
        number = np.where(inside, known[np.where(inside, at, 0).astype(np.int64)], -1)
        lost = (number < 0) & warps.active(m)
        if lost.any():
            row, lane = (int(indices[0]) for indices in np.nonzero(lost))
            sentence = f"a branch to {int(at[row, lane]):#x}, where no code is known to begin."
            warps.machine.report("out-of-bounds", sentence, site, int(warps.warps[row]))
            raise Fatal
        copyto(R[index], number.astype(np.uint32), where=m)

    return BranchPoint(tuple(range(d.length())), index=index, before=op)
