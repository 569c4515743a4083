"""One thread's asynchronous operation: its operands, lane by lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.registry import refuse
from kernelexp.emulator.ptx.syntax import Address, Instruction, Operand, Register, Vector
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    pass


class At:
    """An address operand, to be read in one lane."""

    def __init__(self, operand: Operand, d: Decoder, ins: Instruction) -> None:
        if not isinstance(operand, Address):
            raise refuse(ins, "has no address where one is expected")
        base = operand.base
        bits = d.slots.width(base) if isinstance(base, Register) else 64
        self.slot = d.source(operand.base, f"u{bits}", ins)
        self.offset = operand.offset
        vector = operand.extra[0] if operand.extra else Vector(())
        items = vector.items if isinstance(vector, Vector) else (vector,)
        self.coordinates = [d.source(item, "s32", ins) for item in items]

    def value(self, R: list[Array], row: int, lane: int) -> int:
        return int(R[self.slot][row, lane]) + self.offset

    def start(self, R: list[Array], row: int, lane: int) -> tuple[int, ...]:
        return tuple(int(R[slot][row, lane].view(np.int32)) for slot in self.coordinates)


def each_lane(warps: Any, m: Any) -> list[tuple[int, int, int]]:
    """(row, place, lane) of every active lane."""
    found = []
    for row, place in enumerate(warps.warps.tolist()):
        lanes = range(32) if m is True else np.flatnonzero(m[row]).tolist()
        found += [(row, place, lane) for lane in lanes]
    return found
