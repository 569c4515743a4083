"""What the builder of an instruction may ask for: its operands as slots, and what it notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from warpsim.front.ptx.classes import classify
from warpsim.front.ptx.faults import refuse
from warpsim.front.ptx.syntax import (
    LISTING,
    Address,
    Function,
    Immediate,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    SpecialName,
    Symbol,
    Vector,
)
from warpsim.front.ptx.types import literal, width_of
from warpsim.machine.core import registers
from warpsim.machine.core.arrays import DTYPES, Array, Mask
from warpsim.machine.core.bitmarks import bit_operation
from warpsim.machine.core.registers import Slot
from warpsim.machine.core.site import Site, UnsupportedInstruction
from warpsim.machine.sync.gates import AddressSlot
from warpsim.machine.wave.machine import Op
from warpsim.machine.wave.undefined import SlotUses

AROUND = "bra.around"
"""The branch around a guarded instruction: not an instruction of the kernel, so not counted."""
Writer: TypeAlias = Callable[[list[Array], Array, Mask], None]

copyto = np.copyto


def site_of(number: int, ins: Instruction) -> Site:
    return Site(
        number=number,
        opcode=ins.opcode,
        kind="" if ins.opcode.startswith((AROUND, "frame.")) else classify(ins.opcode),
        listing=LISTING,
        line=ins.line,
        source=ins.source,
        text=ins.text,
        element=_element(ins.opcode.split(".")),
    )


def _element(parts: list[str]) -> int:
    """Bytes of what ld.global.v4.f32 and its like load or store."""
    if parts[0] not in ("ld", "st", "atom", "red") or not re.fullmatch(r"[busf]\d+", parts[-1]):
        return 0
    return width_of(parts[-1]) // 8


_REGISTER = re.compile(r"Register\(name='([^']*)'\)")


# Not swaps: what they put into memory may have padding.
_UPDATES = re.compile(r"(atom|red)\b.*\.(add|min|max|inc|dec)\.")


class PtxDecoder:
    """The function being decoded, and the instruction at which decoding stands."""

    def __init__(self, function: Function, target: str = "") -> None:
        self.function = function
        self.target = target
        """The architecture that the module is for."""
        self.slots: list[Slot] = []
        self._index: dict[Slot, int] = {}
        self.sites = [site_of(number, ins) for number, ins in enumerate(function.instructions)]
        self.shared_unit = 4
        """Bytes of the smallest shared-memory access so far."""
        self.global_unit = 4
        """The same of global memory."""
        self.checks: list[Op] = []
        """What is checked before the instruction at hand is executed."""
        self._named: Counter[str] | None = None
        """How often each register is an operand."""
        self._swapped: set[tuple[Operand, int]] | None = None
        self._reads: dict[int, list[int]] = {}
        self._multiplies: dict[int, tuple[int, int, int]] = {}
        self._guards: dict[int, tuple[int, bool]] = {}
        self._members: dict[int, int] = {}
        self._lanes: dict[int, Callable[[list[Array]], Array]] = {}
        self._decides: dict[int, list[int]] = {}
        self._writes: dict[int, list[int]] = {}
        self.at(0)

    def uses(self) -> list[SlotUses]:
        """What each instruction that has been decoded does with registers."""
        return [
            SlotUses(
                reads=tuple(self._reads.get(site.number, ())),
                decides=tuple(self._decides.get(site.number, ())),
                writes=tuple(self._writes.get(site.number, ())),
                copies=site.opcode.startswith(("mov.", "ld.", "ldu.", "st.", "cvta.", "shfl.")),
                updates=_UPDATES.match(site.opcode) is not None,
                selects=site.opcode.startswith("selp."),
                stem=bit_operation(site.opcode),
                multiplies=self._multiplies.get(site.number, (0, 0, 0)),
                guard=self._guards.get(site.number),
                lanes=self._lanes.get(site.number),
                members=self._members.get(site.number),
            )
            for site in self.sites
        ]

    def multiplies(self, a_count: int, b_count: int, c_count: int) -> None:
        """Of the registers that this instruction reads, the last hold A, B and C."""
        self._multiplies[self.site.number] = (a_count, b_count, c_count)

    def shuffles(self, lanes: Callable[[list[Array]], Array]) -> None:
        """`lanes`: from which lane each lane takes the first operand."""
        self._lanes[self.site.number] = lanes

    def reduces(self, members: int) -> None:
        """Each lane gets something of the first operands of all lanes that a member mask names."""
        self._members[self.site.number] = members

    def at(self, number: int) -> None:
        """Goes to an instruction."""
        self.checks = []
        self.instruction = self.function.instructions[number]
        self.site = self.sites[number]
        self.operands = self.instruction.operands
        self.parts = self.instruction.opcode.split(".")
        """Of the opcode: modifiers, the mnemonic first."""

    def refuse(self, why: str = "is not covered by the emulator") -> UnsupportedInstruction:
        return refuse(self.instruction, why)

    # Slots

    def place(self, slot: Slot) -> int:
        if slot not in self._index:
            self._index[slot] = len(self.slots)
            self.slots.append(slot)
        return self._index[slot]

    def register_width(self, register: Register) -> int:
        return width_of(self.function.registers[register.name])

    def source(self, operand: Operand, kind: str) -> int:
        """The slot of a source operand of PTX type `kind`."""
        slot = self._source(operand, kind)
        self._reads.setdefault(self.site.number, []).append(slot)
        return slot

    def guard(self, operand: Operand) -> int:
        """The slot of a guard: what it is decides, as an address does."""
        slot = self._deciding(operand, "pred")
        self._guards[self.site.number] = slot, self.instruction.guard_negated
        return slot

    def _deciding(self, operand: Operand, kind: str) -> int:
        slot = self._source(operand, kind)
        self._decides.setdefault(self.site.number, []).append(slot)
        return slot

    def _source(self, operand: Operand, kind: str) -> int:
        bits = width_of(kind)
        if isinstance(operand, Register):
            width = self.register_width(operand)
            if width < bits:
                raise self.refuse(f"reads {bits} bits of a {width}-bit register")
            return self.place(registers.RegisterPart(operand.name, width, bits))
        if isinstance(operand, Immediate):
            return self.place(registers.Literal(literal(operand, kind), bits))
        if isinstance(operand, SpecialName):
            return self.place(registers.SpecialRegister(operand.name.removeprefix("%"), bits))
        if isinstance(operand, Symbol):
            return self.place(registers.SymbolAddress(operand.name, operand.offset, bits))
        raise self.refuse("has an operand of unknown form")

    def arguments(self, operand: Operand, size: int, count: int) -> list[int] | None:
        """The slots of `count` elements of `size` bytes in the entry's parameters; None for an
        address that is not that of an element of one of them."""
        base = operand.base if isinstance(operand, Address) and not operand.extra else None
        if not isinstance(operand, Address) or not isinstance(base, Symbol):
            return None
        first, every = base.offset + operand.offset, size * count
        for parameter in self.function.parameters:
            inside = 0 <= first <= parameter.size - every
            if parameter.name == base.name and inside and not (first | parameter.align) % every:
                at = range(first, first + every, size)
                return [self.place(registers.Argument(base.name, x, 8 * size)) for x in at]
        return None

    def destination(self, operand: Operand) -> int:
        """The slot of a destination register, at the register's own width."""
        slot = self._destination(operand)
        self._writes.setdefault(self.site.number, []).append(slot)
        return slot

    def _destination(self, operand: Operand) -> int:
        if operand is None:
            return self.place(registers.Sink())
        if not isinstance(operand, Register):
            raise self.refuse("writes to no register")
        width = self.register_width(operand)
        return self.place(registers.RegisterPart(operand.name, width, width))

    def sources(self, operand: Operand, kind: str, count: int) -> list[int]:
        """Slots of a vector operand's elements, or of a single operand."""
        return [self.source(item, kind) for item in self._items(operand, count)]

    def destinations(self, operand: Operand, count: int) -> list[int]:
        return [self.destination(item) for item in self._items(operand, count)]

    def _items(self, operand: Operand, count: int) -> tuple[Operand, ...]:
        items = operand.items if isinstance(operand, Vector) else (operand,)
        if len(items) != count:
            raise self.refuse(f"has {len(items)} elements where {count} are expected")
        return items

    def halves(self, operand: Operand, *, to: bool = False) -> tuple[int, int]:
        """The slots of the low and the high half of a register of 128 bits."""
        if not isinstance(operand, Register) or self.register_width(operand) != 128:
            raise self.refuse("needs a register of 128 bits there")
        names = (f"{operand.name}@low", f"{operand.name}@high")
        low, high = (self.place(registers.RegisterPart(name, 64, 64)) for name in names)
        noted = self._writes if to else self._reads
        noted.setdefault(self.site.number, []).extend((low, high))
        return low, high

    def predicate(self, operand: Operand) -> tuple[int, bool]:
        """(slot, whether it is negated) of p or !p."""
        if isinstance(operand, Not):
            return self.source(operand.operand, "pred"), True
        return self.source(operand, "pred"), False

    def width(self, slot: int) -> int:
        """Bits of a destination slot."""
        key = self.slots[slot]
        return key.width if isinstance(key, registers.RegisterPart) else key.bits

    def constant(self, operand: Operand) -> int:
        """The value of an operand that has to be a literal."""
        if not isinstance(operand, Immediate):
            raise self.refuse("needs a literal there")
        return operand.value

    # Memory

    def is_read(self, operand: Operand) -> bool:
        """Whether anything uses a register besides the instruction that has it as an operand."""
        if self._named is None:
            parts = ((ins.operands, ins.guard) for ins in self.function.instructions)
            self._named = Counter(_REGISTER.findall(repr(list(parts))))
        return not isinstance(operand, Register) or self._named[operand.name] > 1

    def swapped(self, operand: Operand) -> bool:
        """Whether an atom.cas of the function has this very address."""
        if self._swapped is None:
            self._swapped = {
                (address.base, address.offset)
                for ins in self.function.instructions
                if ins.opcode.startswith("atom.") and ".cas." in ins.opcode
                if isinstance(address := ins.operands[1], Address)
            }
        return isinstance(operand, Address) and (operand.base, operand.offset) in self._swapped

    def pointer(self, operand: Operand) -> AddressSlot:
        """An address operand, to be read in one lane."""
        if not isinstance(operand, Address):
            raise self.refuse("has no address where one is expected")
        return AddressSlot(self._base(operand.base), operand.offset)

    def _base(self, base: Operand) -> int:
        self.check_space(base)
        bits = self.register_width(base) if isinstance(base, Register) else 64
        return self._deciding(base, f"u{bits}")

    def check_space(self, base: Operand) -> None:
        """Refuses a parameter's name as an address in another state space, as ptxas does."""
        parameters = {parameter.name for parameter in self.function.parameters}
        if isinstance(base, Symbol) and base.name in parameters:
            spaces = {part.partition("::")[0] for part in self.parts}
            if "param" not in spaces:
                raise self.refuse(
                    f"names the parameter {base.name} where an address in another state space is "
                    "expected; mov and cvta.param give its generic address"
                )

    def address(self, operand: Operand) -> Callable[[list[Array]], Array]:
        """A function that gives the address operand [base + offset] as uint64 or int64 [n, 32]."""
        return self.reader(*self.addressed(operand))

    def addressed(self, operand: Operand) -> tuple[int, int]:
        """The slot of the base of an address operand, of 32 or 64 bits, and the offset."""
        if not isinstance(operand, Address) or operand.extra:
            raise self.refuse("has an address of unknown form")
        base, offset = operand.base, operand.offset
        if isinstance(base, Symbol):
            self.check_space(base)
            return self._source(Symbol(base.name, base.offset + offset), "u64"), 0
        return self._base(base), offset

    def reader(self, slot: int, offset: int) -> Callable[[list[Array]], Array]:
        """As address(), of what addressed() gives."""
        if offset == 0:
            return lambda R: R[slot]
        step = np.int64(offset)
        if self.slots[slot].bits == 32:  # signed: nvcc has sums below 0 that the offset makes good
            return lambda R: R[slot].view(np.int32).astype(np.int64) + step
        return lambda R: R[slot].view(np.int64) + step

    def loaded(self, slot: int, kind: str) -> Writer:
        """Writes loaded values to a register that may be wider than they are."""
        bits, width = width_of(kind), self.width(slot)
        if width == bits or isinstance(self.slots[slot], registers.Sink):
            return lambda R, values, m: copyto(R[slot], values, where=m, casting="unsafe")
        if kind[0] == "s":
            signed, wide = np.dtype(f"i{bits // 8}"), DTYPES[width]
            return lambda R, values, m: copyto(R[slot], values.view(signed).astype(wide), where=m)
        return lambda R, values, m: copyto(R[slot], values, where=m)

    def note_unit(self, space: str, size: int) -> None:
        """Races are told apart at the size of the smallest shared-memory access of the kernel."""
        if space in ("shared", "cluster", "generic"):
            self.shared_unit = min(self.shared_unit, size)
        if space in ("global", "generic"):
            self.global_unit = min(self.global_unit, size)


def pair(operand: Operand) -> tuple[Operand, Operand]:
    """d|p, or d with nothing for p."""
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, None)
