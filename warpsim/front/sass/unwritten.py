"""What each SASS instruction hands on of values that nobody wrote: see machine/wave/undefined.py;
and registers that no instruction writes.

Laxer than for PTX, as ptxas may load and compute what no result depends on: instructions that are
not known here drop what they read, among them those on the warp's own registers, but for sums and
the like of all lanes. What a predicate absorbs, a selection leaves and a mask takes away drops out
too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from warpsim.front.sass.decoder import SassDecoder
from warpsim.front.sass.operands import RegisterUses
from warpsim.front.sass.scoreboards import Hazard
from warpsim.front.sass.syntax import (
    ZERO,
    LiteralOperand,
    MachineInstruction,
    MemoryOperand,
    Operand,
    RegisterOperand,
)
from warpsim.machine.core.registers import Literal, RegisterPart
from warpsim.machine.core.warps import ALL
from warpsim.machine.wave.undefined import SlotUses

LOADS = frozenset("LD LDG LDS LDL LDSM".split())
_STORES = frozenset("ST STG STS STL".split())
_ATOMICS = frozenset("ATOM ATOMG ATOMS RED REDG".split())
_UPDATES = frozenset("ADD MIN MAX INC DEC".split())
_COMPUTES = frozenset(
    "IADD3 IADD IMAD LEA IABS IMNMX VIMNMX VIADD VIADDMNMX POPC FLO BREV ISETP I2F I2FP F2I F2F "
    "F2FP FADD FMUL FFMA FMNMX FSETP MUFU DADD DMUL DFMA DSETP HADD2 HMUL2 HFMA2 HSETP2 "
    "HMNMX2".split()
)
_LOGIC = {0xC0: "and", 0xFC: "or", 0x3C: "xor"}
"""Of the first two operands of LOP3."""


_POLICY = (
    " ptxas before 13.4.59 loses the registers of a cp.async with a cache policy, where it splits "
    "the address in shared memory (triton-lang/triton#11848): assemble with a later one, or leave "
    "L2::cache_hint out."
)


def never_written(
    code: Sequence[MachineInstruction], uses: Mapping[int, RegisterUses]
) -> tuple[Hazard, ...]:
    """Addresses in the warp's registers that no instruction writes, wherever it stands: the first
    use of each. Other sources may matter to no result."""
    written = {name for use in uses.values() for name in use.writes}
    found: dict[str, Hazard] = {}
    for ins in code:
        for operand in ins.operands:
            offset = operand.uniform if isinstance(operand, MemoryOperand) else None
            name = "" if offset is None else f"{offset.file}{offset.index}"
            if offset is None or offset.index == ZERO or name in written or name in found:
                continue
            sentence = f"{ins.base} addresses with {name}, which no instruction writes."
            sentence += _POLICY * (ins.base == "LDGSTS")
            found[name] = Hazard(ins.number, "unwritten-register", sentence)
    return tuple(found.values())


def slot_uses(decoder: SassDecoder) -> list[SlotUses]:
    """Of all instructions, once they have been decoded."""
    return [_Uses(decoder, ins).of() for ins in decoder.code]


class _Uses:
    """One instruction."""

    def __init__(self, decoder: SassDecoder, ins: MachineInstruction) -> None:
        self._decoder = decoder
        self._ins = ins
        uses = decoder.uses[ins.number]
        operands = {f"{x.file}{x.index}" for x in ins.operands if isinstance(x, RegisterOperand)}
        guard = "" if ins.guard is None else f"{ins.guard.file}{ins.guard.index}"
        self._reads = [
            name for name in uses.reads if name[0] in "RP" and (name != guard or name in operands)
        ]
        self._of_warp = [name for name in uses.reads if name.startswith("UR")]
        self._writes = tuple(self._slot(name) for name in uses.writes)

    def of(self) -> SlotUses:
        ins, addresses = self._ins, list(self._addresses())
        guard = self._guard()
        decides = tuple(self._slot(name) for name in addresses if name in self._reads)
        plain = SlotUses(
            reads=(),
            decides=decides if ins.base in (LOADS | _STORES | _ATOMICS) else (),
            writes=self._writes,
            copies=False,
            guard=guard,
        )
        if guard is not None:
            plain = plain._replace(decides=(guard[0], *plain.decides))
        every = tuple(self._slot(name) for name in self._reads)
        of_warp = tuple(self._slot(name) for name in self._of_warp)
        if ins.base in LOADS or ins.opcode in ("MOV", "IMAD.MOV", "IMAD.MOV.U32"):
            return plain._replace(copies=True, reads=() if ins.base in LOADS else every)
        stored = tuple(self._slot(name) for name in self._reads if name not in addresses)
        if ins.base in _STORES:
            return plain._replace(copies=True, reads=stored)
        if ins.base in _ATOMICS and not _UPDATES.isdisjoint(ins.modifiers):
            return plain._replace(updates=True, reads=stored)
        if ins.base in ("SEL", "FSEL"):
            return self._selects(plain)
        if ins.opcode == "PRMT":
            _, a, selector, b = ins.operands
            return plain._replace(stem="prmt", reads=self._sources(a, b, selector))
        if ins.opcode in ("SHF.R.U32.HI", "SHF.L.U32"):
            _, low, count, high = ins.operands
            shifted, rest, stem = (high, low, "shr") if "HI" in ins.opcode else (low, high, "shl")
            if rest == RegisterOperand(file="R", index=ZERO):
                return plain._replace(stem=stem, reads=self._sources(shifted, count))
        if ins.opcode == "LOP3.LUT":
            return self._logic(plain)
        if ins.base in _COMPUTES:
            return plain._replace(reads=(*every, *of_warp), absorbed=self._absorbed())
        return self._among_lanes(plain, every)

    def _among_lanes(self, plain: SlotUses, every: tuple[int, ...]) -> SlotUses:
        """Of what lanes of a warp do together, with the registers `every` of each."""
        ins, decoder = self._ins, self._decoder
        if ins.base == "SHFL":
            ok, target, *sources = ins.operands
            writes = tuple(self._source(to) for to in (target, ok) if not _is_nowhere(to))
            plain = plain._replace(copies=True, reads=self._sources(*sources), writes=writes)
            return plain._replace(lanes=decoder.lanes[ins.number])
        if ins.number in decoder.products:
            a, b, c = decoder.products[ins.number]
            return plain._replace(reads=(*a, *b, *c), multiplies=(len(a), len(b), len(c)))
        if ins.base == "REDUX":
            return plain._replace(reads=every, members=decoder.slot(Literal(ALL, 32)))
        return plain

    def _slot(self, name: str) -> int:
        bits = 1 if "P" in name else 32
        return self._decoder.slot(RegisterPart(name, bits, bits))

    def _guard(self) -> tuple[int, bool] | None:
        guard = self._ins.guard
        if guard is None or guard.file != "P" or guard.index == ZERO:
            return None
        return self._slot(f"P{guard.index}"), guard.negated

    def _addresses(self) -> Iterator[str]:
        for operand in self._ins.operands:
            if isinstance(operand, MemoryOperand) and operand.base is not None:
                yield f"R{operand.base.index}"
                if operand.base.part == "64":
                    yield f"R{operand.base.index + 1}"

    def _sources(self, *operands: Operand) -> tuple[int, ...]:
        """Slots of operands; of those that are no registers of lanes, a number's."""
        return tuple(self._source(operand) for operand in operands)

    def _source(self, operand: Operand) -> int:
        if isinstance(operand, RegisterOperand) and operand.index != ZERO:
            if operand.file in ("R", "P"):
                return self._slot(f"{operand.file}{operand.index}")
        value = operand.value if isinstance(operand, LiteralOperand) else 0
        return self._decoder.slot(Literal(value, 32))

    def _selects(self, plain: SlotUses) -> SlotUses:
        _, a, b, picks = self._ins.operands
        if not isinstance(picks, RegisterOperand) or picks.file != "P" or picks.index == ZERO:
            return plain
        first, second = (b, a) if picks.negated else (a, b)
        return plain._replace(selects=True, reads=self._sources(first, second, picks))

    def _logic(self, plain: SlotUses) -> SlotUses:
        numbers = [x.value for x in self._ins.operands if isinstance(x, LiteralOperand)]
        stem = _LOGIC.get(numbers[-1]) if numbers else None
        values = [x for x in self._ins.operands if not _is_predicate(x)]
        if stem is None or len(values) != 5 or values[3] != RegisterOperand(file="R", index=ZERO):
            return plain
        return plain._replace(stem=stem, reads=self._sources(*values[1:3]))

    def _absorbed(self) -> tuple[int, bool] | None:
        """The predicate that a comparison is combined with, and when nothing else matters."""
        last = self._ins.operands[-1]
        combined = {"AND", "OR"} & set(self._ins.modifiers)
        if not combined or not isinstance(last, RegisterOperand) or last.file != "P":
            return None
        if last.index == ZERO:
            return None
        return self._slot(f"P{last.index}"), ("OR" in combined) != last.negated


def _is_nowhere(operand: Operand) -> bool:
    return isinstance(operand, RegisterOperand) and operand.index == ZERO


def _is_predicate(operand: Operand) -> bool:
    return isinstance(operand, RegisterOperand) and operand.file in ("P", "UP")
