"""Whether SASS waits for what it uses.

Instructions of variable latency count a scoreboard up, and down again when they have written their
results or read their sources; others name in their control word the scoreboards that must be zero
before they begin. ptxas never forgets one: what is found here was edited, or assembled by others.
Only what is under way on all paths to an instruction counts, and nothing that a guard may leave
out. Stall counts, which do the same for instructions of fixed latency, are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from warpsim.front.sass import word
from warpsim.front.sass.operands import RegisterUses
from warpsim.front.sass.syntax import OWN, MachineInstruction
from warpsim.machine.schedule.program import BasicBlock, leads_to

BOARDS = 6
_NEVER = BOARDS
"""A scoreboard of our own: of results that no scoreboard tells of."""
_LOADS = frozenset("LD LDG LDS LDL LDSM S2R S2UR MUFU SHFL ATOM ATOMG ATOMS REDUX LDTM".split())
"""Opcodes whose results are there at no time that is known."""
_IN_ORDER = frozenset("LD LDG LDS LDL LDSM SHFL ATOM ATOMG ATOMS".split())
"""Opcodes that write no register before those ahead of them have read theirs."""
_XU = frozenset("MUFU FCHK F2I I2F F2F FRND BREV FLO POPC".split())
"""Opcodes of one pipe, which do so for those of this pipe: ptxas lets F2F write what FLO reads."""


class PendingRegisters(NamedTuple):
    """Registers that instructions under way have yet to write, and to read, by scoreboard, as bits
    of a number."""

    written: tuple[int, ...] = (0,) * (BOARDS + 1)
    read: tuple[int, ...] = (0,) * BOARDS

    def cleared(self, boards: int) -> PendingRegisters:
        return PendingRegisters(
            tuple(0 if boards >> board & 1 else x for board, x in enumerate(self.written)),
            tuple(0 if boards >> board & 1 else x for board, x in enumerate(self.read)),
        )

    def joined(self, other: PendingRegisters) -> PendingRegisters:
        return PendingRegisters(
            tuple(a & b for a, b in zip(self.written, other.written, strict=True)),
            tuple(a & b for a, b in zip(self.read, other.read, strict=True)),
        )


class Hazard(NamedTuple):
    """A register that is used too early, or that nothing writes."""

    number: int
    """Of the instruction that uses it."""
    name: str
    """Of the finding."""
    sentence: str


class ControlWord(NamedTuple):
    """What an instruction's word says of scoreboards; 7: of none."""

    writes: int
    reads: int
    waits: int
    """As bits."""


def control(of: int) -> ControlWord:
    return ControlWord(word.field(of, 110, 3), word.field(of, 113, 3), word.field(of, 116, 6))


def of_stores(code: Sequence[MachineInstruction]) -> int:
    """Scoreboards, as bits, by which control words wait for bulk stores. cuBLAS's kernels do; what
    ptxas makes has a DEPBAR, whose count lets the last of them go on, and the same scoreboard."""
    held = {control(ins.word).reads for ins in code if ins.base == "UTMACMDFLUSH"}
    if any(ins.base == "DEPBAR" for ins in code):
        return 0
    return sum(1 << board for board in held if board < BOARDS)


class Scoreboards:
    """Follows the code of an entry."""

    def __init__(
        self,
        code: Sequence[MachineInstruction],
        uses: Mapping[int, RegisterUses],
        blocks: Mapping[int, BasicBlock],
    ) -> None:
        self._code, self._blocks = code, blocks
        names = sorted({name for use in uses.values() for name in (*use.reads, *use.writes)})
        self._names = names
        bits = {name: 1 << index for index, name in enumerate(names)}
        none = RegisterUses()
        # Predicates and the warp's registers are read when an instruction is issued.
        self._reads = [sum(bits[x] for x in uses.get(n, none).reads) for n in range(len(code))]
        self._late = sum(bit for name, bit in bits.items() if name[0] == "R")
        self._writes = [sum(bits[x] for x in uses.get(n, none).writes) for n in range(len(code))]

    def hazards(self) -> tuple[Hazard, ...]:
        """One for each instruction that uses a register too early."""
        result: dict[int, Hazard] = {}
        for first, pending in self._at_blocks().items():
            block = self._blocks[first]
            for number in range(block.first, block.last):
                if hazard := self._used(number, pending):
                    result.setdefault(number, hazard)
                pending = self._after(number, pending)
        return tuple(result[number] for number in sorted(result))

    def _at_blocks(self) -> dict[int, PendingRegisters]:
        """What is under way where each block begins. Nothing is where code goes on after a call."""
        known: dict[int, PendingRegisters] = {}
        for first in self._blocks:
            if first in known:
                continue
            known[first] = PendingRegisters()
            waiting = [first]
            while waiting:
                at = waiting.pop()
                block, pending = self._blocks[at], known[at]
                for number in range(block.first, block.last):
                    pending = self._after(number, pending)
                for following in leads_to(block):
                    if following not in self._blocks:
                        continue
                    old = known.get(following)
                    new = pending if old is None else old.joined(pending)
                    if new != old:
                        known[following] = new
                        waiting.append(following)
        return known

    def _after(self, number: int, pending: PendingRegisters) -> PendingRegisters:
        ins = self._code[number]
        if ins.opcode in OWN:
            return pending
        of = control(ins.word)
        pending = pending.cleared(_waited(ins))
        if ins.guard is not None:  # Whoever it leaves out need not wait.
            return pending
        written, read = list(pending.written), list(pending.read)
        if of.writes < BOARDS or ins.base in _LOADS:
            written[min(of.writes, _NEVER)] |= self._writes[number]
        if of.reads < BOARDS:
            read[of.reads] |= self._reads[number] & self._late
        return PendingRegisters(tuple(written), tuple(read))

    def _used(self, number: int, pending: PendingRegisters) -> Hazard | None:
        """What an instruction uses before its time."""
        ins = self._code[number]
        if ins.opcode in OWN:
            return None
        now = pending.cleared(_waited(ins))
        reads, writes = self._reads[number], self._writes[number]
        for board, registers in enumerate(now.written):
            for early, what in ((registers & reads, "read"), (registers & writes, "written")):
                if early:
                    by = self._producer(number, board, early, "writes")
                    return self._hazard(number, early, what, by, "which has yet to write it", board)
        for board, registers in enumerate(now.read):
            if (early := registers & writes) and ins.base not in _IN_ORDER:
                by = self._producer(number, board, early, "reads")
                if by.base in _XU and ins.base in _XU:
                    continue
                return self._hazard(number, early, "written", by, "which has yet to read it", board)
        return None

    def _hazard(
        self, number: int, early: int, what: str, by: MachineInstruction, why: str, board: int
    ) -> Hazard:
        register = self._names[(early & -early).bit_length() - 1]
        tells = "no scoreboard tells when" if board == _NEVER else f"scoreboard {board} tells when"
        sentence = f"{register} is {what} here before {by.base} at {by.where()}, {why}: {tells}."
        return Hazard(number, "missing-scoreboard-wait", sentence)

    def _producer(self, number: int, board: int, early: int, how: str) -> MachineInstruction:
        """The nearest instruction before it that uses a register so."""
        known = self._writes if how == "writes" else self._reads
        return next(
            ins
            for ins in self._before(number)
            if ins.guard is None
            and known[ins.number] & early
            and min(getattr(control(ins.word), how), _NEVER) == board
        )

    def _before(self, number: int) -> Iterator[MachineInstruction]:
        """The code backwards from an instruction, and what comes behind it, of a loop, last."""
        yield from reversed(self._code[:number])
        yield from reversed(self._code[number:])


def _waited(ins: MachineInstruction) -> int:
    """The scoreboards that it waits for; of DEPBAR, as if for all that they count.

    Loads of a unit arrive in order: a wait for a later one is a wait for those before, which have
    no scoreboard then.
    """
    boards = control(ins.word).waits
    if ins.base == "DEPBAR":
        for one, several in re.findall(r"SB(\d)|\{([\d,]+)\}", ins.text):
            boards |= sum(1 << int(board) for board in {one, *several.split(",")} if board)
    return boards | bool(boards) << _NEVER
