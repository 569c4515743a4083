"""The base of instructions at which a warp may have to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.warps import Fragment


class Gate:
    """Lets every fragment through; subclasses say what it waits for."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        """What happens on arrival; whether the fragment goes on at once."""
        if self.ready(machine, fragment):
            self.leave(machine, fragment)
            return True
        return False

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        return True

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        """What happens when the fragment goes on."""

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        return self.instruction.opcode


def first_lane(fragment: Fragment) -> int:
    return (fragment.mask & -fragment.mask).bit_length() - 1


def bits_of(mask: int) -> list[int]:
    return [lane for lane in range(32) if mask >> lane & 1]


def lanes_of(fragment: Fragment) -> list[int]:
    return bits_of(fragment.mask)


def scalar(machine: Machine, slot: int, fragment: Fragment) -> int:
    """The value of a slot in the fragment's first lane."""
    return int(machine.value(slot, fragment.warp)[first_lane(fragment)])


def row_of(machine: Machine, slot: int, fragment: Fragment) -> Array:
    return machine.value(slot, fragment.warp)
