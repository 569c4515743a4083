"""What the builder of an instruction may ask for besides its sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from warpsim.front.sass.cubin import HOPPER
from warpsim.front.sass.operands import OperandReader, Reader, is_plain, is_zero, part_of
from warpsim.front.sass.syntax import (
    ZERO,
    Described,
    LiteralOperand,
    MachineInstruction,
    MemoryOperand,
    Operand,
    RegisterOperand,
)
from warpsim.front.sass.word import BYTES
from warpsim.machine.core import forms, registers
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.forms import CompiledForm, Formed
from warpsim.machine.core.warps import ALL, pack
from warpsim.machine.memory.layout import SHARED_RESERVED
from warpsim.machine.wave.machine import Machine, Op, WarpSet

Writer: TypeAlias = Callable[[list[Array], Array, Mask], None]
_TABLES = 2
"""The constant bank with tables of branches."""
_SCALES = {"": 0, "X4": 2, "X8": 3, "X16": 4}
copyto = np.copyto


class SassDecoder(OperandReader):
    """The entry being decoded: where results and branches go, and what memory operands name."""

    def number_at(self, operand: Operand) -> int:
        """The number of the instruction at an address that the code names."""
        address = self.constant(operand)
        if address not in self._numbers:
            raise self.refuse(f"goes to {address:#x}, where no instruction of the entry begins")
        return self._numbers[address]

    def length(self) -> int:
        return len(self.code)

    def starts(self) -> dict[int, int]:
        """The numbers of the instructions that code may go on at by a register, by address: behind
        calls, and wherever a literal or a table of branches points."""
        if self._starts is None:
            after = {i.address + BYTES for i in self.code if i.base == "CALL"}
            literals = {
                o.value for i in self.code for o in i.operands if isinstance(o, LiteralOperand)
            }
            table = self.banks[_TABLES].data if _TABLES in self.banks else b""
            words = np.frombuffer(table[: len(table) // 4 * 4], "<u4").tolist()
            first_of_block = (after | literals | set(words)) & set(self._numbers)
            self._starts = {address: self._numbers[address] for address in sorted(first_of_block)}
        return self._starts

    def swapped(self, operand: Operand) -> bool:
        """Whether a compare-and-swap of the entry has this very address."""
        if self._swapped is None:
            swaps = (ins for ins in self.code if {"CAS", "CAST"} & set(ins.modifiers))
            self._swapped = {
                o for ins in swaps for o in ins.operands if isinstance(o, MemoryOperand)
            }
        return isinstance(operand, MemoryOperand) and operand in self._swapped

    def unguarded(self) -> None:
        """Refuses the instruction if it has a guard."""
        if self.instruction.guard is not None:
            raise self.refuse("has a guard, which is not covered")

    def by_whole_warps(self, op: Op) -> Op:
        """An operation for which all lanes of a warp are needed."""
        self.unguarded()
        site = self.site

        def whole(R: list[Array], m: Mask, warps: WarpSet) -> None:
            for row, lanes in enumerate([] if m is True else pack(m)):
                place = int(warps.warps[row])
                if lanes | warps.machine.exited[place] != ALL:
                    sentence = f"{site.opcode} executed by lanes {lanes:#010x} only."
                    warps.machine.report("divergent-aligned", sentence, site, place)
            op(R, True, warps)

        return whole

    # Destinations

    def to(self, operand: Operand) -> int:
        """Where a result of 32 bits goes."""
        return self.to_words(operand, 1)[0]

    def to_words(self, operand: Operand, count: int) -> list[int]:
        if not isinstance(operand, RegisterOperand) or operand.file not in ("R", "UR"):
            raise self.refuse(f"has {operand} where a result is expected")
        if operand.index == ZERO:
            return [self.slot(registers.Sink(32))] * count
        names = [f"{operand.file}{operand.index + part}" for part in range(count)]
        self.uses[self.instruction.number].writes.update(dict.fromkeys(names))
        return [self.slot(registers.RegisterPart(name, 32, 32)) for name in names]

    def to_pair(self, operand: Operand) -> Writer:
        """Where a result of 64 bits goes."""
        low, high = self.to_words(operand, 2)

        def write(R: list[Array], value: Array, m: Mask) -> None:
            copyto(R[low], value.astype(np.uint32), where=m)
            copyto(R[high], (value >> np.uint64(32)).astype(np.uint32), where=m)

        return write

    def to_predicate(self, operand: Operand) -> int:
        if not isinstance(operand, RegisterOperand) or operand.file not in ("P", "UP"):
            raise self.refuse(f"has {operand} where a predicate is expected")
        if operand.index == ZERO:
            return self.slot(registers.Sink(1))
        name = f"{operand.file}{operand.index}"
        self.uses[self.instruction.number].writes[name] = None
        return self.slot(registers.RegisterPart(name, 1, 1))

    def formed(
        self,
        op: Op,
        name: str,
        target: Operand,
        sources: Sequence[Operand],
        *numbers: int,
        real: bool = False,
    ) -> Op:
        """The instruction with its compiled form, if its sources are whole words.

        real: whether their signs are those of numbers, not of integers.
        """
        if is_zero(target) or any(map(part_of, sources)):
            return op
        slots = (self.to(target), *(self.words(source, 1)[0] for source in sources))
        return Formed(op, CompiledForm(name, slots, numbers, signs=signs_of(sources, real=real)))

    # Addresses

    def address(self, operand: Operand, *, wide: bool) -> Reader:
        """A memory operand as addresses: 64 bits (wide), or 32 bits of shared or local memory."""
        if not isinstance(operand, MemoryOperand):
            raise self.refuse("has no memory operand where one is expected")
        if wide:
            return self._wide(operand)
        readers = []
        if operand.base is not None:
            readers.append(self._scaled(operand.base))
        if operand.uniform is not None:
            slot = self.word_of(operand.uniform)
            readers.append(lambda R: R[slot])
        offset = self.slot(registers.Literal(operand.offset & 0xFFFF_FFFF, 32))
        return _sum(readers, offset)

    def _scaled(self, base: RegisterOperand) -> Reader:
        if base.part not in _SCALES:
            raise self.refuse(f"has an address that is not covered: .{base.part}")
        slot, shift = self.word_of(base), np.uint32(_SCALES[base.part])
        return (lambda R: R[slot] << shift) if shift else (lambda R: R[slot])

    def _wide(self, operand: MemoryOperand) -> Reader:
        readers = []
        for register in (operand.base, operand.uniform):
            if register is None:
                continue
            low = self.word_of(register)
            if register.part == "U32":
                readers.append(_extended(low))
            elif register.part in ("", "64"):
                high = self.word_of(register, 1)
                readers.append(_joined(low, high))
            else:
                raise self.refuse(f"has an address that is not covered: .{register.part}")
        offset = self.slot(registers.Literal(operand.offset & 0xFFFF_FFFF_FFFF_FFFF, 64))
        return _sum(readers, offset)

    def uniform(self, operand: Operand, count: int) -> list[int]:
        """[UR4]: the slots of `count` registers of the warp from there on."""
        register = operand.uniform if isinstance(operand, MemoryOperand) else None
        if register is None or operand != MemoryOperand(uniform=register):
            raise self.refuse("has an operand that is not covered")
        return self.words(self.unsigned(register), count)

    def tensor_address(self, operand: Operand) -> Callable[[list[Array], int], int]:
        """tmem[UR4+0x100]: the address in tensor memory, for a row."""
        if not isinstance(operand, Described) or operand.kind != "tmem" or operand.parts:
            raise self.refuse("names no tensor memory")
        (slot,) = self.words(self.unsigned(operand.register), 1)
        offset = operand.offset
        return lambda R, row: int(R[slot][row, 0]) + offset

    def joined(self, R: list[Array], slots: Sequence[int], row: int) -> int:
        """The value of one or two registers of the warp in `row`."""
        return sum(int(R[slot][row, 0]) << 32 * index for index, slot in enumerate(slots))

    def without_hint(self) -> tuple[Operand, ...]:
        """The operands without a cache policy, which has no effect."""
        *others, last = self.operands
        is_hint = isinstance(last, Described) and last.kind == "desc"
        return tuple(others) if is_hint else self.operands

    def shared_base(self, operand: Operand) -> tuple[int, int] | None:
        """The same as the slot of a register, and what is added to it; None if it is more."""
        if not isinstance(operand, MemoryOperand):
            return None
        registers_ = [part for part in (operand.base, operand.uniform) if part is not None]
        if len(registers_) != 1 or not is_plain(registers_[0]):
            return None
        reserved = SHARED_RESERVED if self.sm < HOPPER else 0
        return self.word_of(registers_[0]), operand.offset + reserved

    def shared_address(self, operand: Operand) -> Reader:
        """An address in shared memory; before Hopper, those of programs begin at 0."""
        where = self.address(operand, wide=False)
        if self.sm >= HOPPER:
            return where
        first = np.uint32(SHARED_RESERVED)
        return lambda R: where(R) + first


def _extended(low: int) -> Reader:
    return lambda R: R[low].astype(np.uint64)


def _joined(low: int, high: int) -> Reader:
    return lambda R: R[high].astype(np.uint64) << np.uint64(32) | R[low]


def _sum(readers: Sequence[Reader], offset: int) -> Reader:
    if not readers:
        return lambda R: R[offset]
    if len(readers) == 1:
        (first,) = readers
        return lambda R: first(R) + R[offset]
    first, second = readers
    return lambda R: first(R) + second(R) + R[offset]


def signs_of(sources: Sequence[Operand], *, real: bool = False) -> int:
    """The signs of sources, as compiled code has them."""
    names = ("absolute", "negated") if real else ("negated", "inverted")
    bits = (forms.MAGNITUDE, forms.FLIPPED) if real else (forms.NEGATED, forms.INVERTED)
    return sum(
        bit << forms.SIGN_BITS * index
        for index, source in enumerate(sources)
        for name, bit in zip(names, bits, strict=True)
        if getattr(source, name, False)
    )


def is_uniform(ins: MachineInstruction) -> bool:
    """Whether it is executed once for the warp, whatever lanes are active."""
    return ins.base.startswith("U")


def uniformly(R: list[Array], slot: int, values: Array, m: Mask, warps: WarpSet) -> None:
    """Gives a register of the warp the value of its first active lane."""
    if m is True:
        R[slot][...] = values[:, :1]
        return
    first = m.argmax(axis=1)[:, None]
    copyto(R[slot], np.take_along_axis(values, first, axis=1), where=m.any(axis=1, keepdims=True))


def once_per_warp(d: SassDecoder, act: Callable[[Machine, Issuer, list[Array], int], None]) -> Op:
    """Acts once for a warp, as its first thread: act(machine, issuer, R, row)."""
    guard, site = d.instruction.guard, d.site
    if guard is not None and guard.file != "UP":
        raise d.refuse("has a guard that is not the warp's, which is not covered")

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for row, place in enumerate(warps.warps.tolist()):
            if m is True or m[row, 0]:
                act(warps.machine, warps.machine.issuer(place, 0, site), R, row)

    return op


def applied(target: int, function: Callable[..., Array], sources: Sequence[Reader]) -> Op:
    """target = function(*sources)"""
    if len(sources) == 1:
        (a,) = sources
        return lambda R, m, warps: copyto(R[target], function(a(R)), where=m)
    if len(sources) == 2:
        a, b = sources
        return lambda R, m, warps: copyto(R[target], function(a(R), b(R)), where=m)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[target], function(*[source(R) for source in sources]), where=m)

    return op
