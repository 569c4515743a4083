"""Operands as places in a list of arrays, resolved once when a kernel is loaded.

A decoded instruction reads `R[i]`: an array of shape [warps, 32] of unsigned bit patterns, whether
the operand is a register, a literal, a parameter or a special register. Registers of all warps lie
in one array each, so `R` of a set of warps is a list of slices of them, and one NumPy call executes
an instruction for every warp that stands at it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelexp.emulator.ptx.faults import UnsupportedInstruction
from kernelexp.emulator.ptx.syntax import (
    Function,
    Immediate,
    Instruction,
    Operand,
    Register,
    Special,
    Symbol,
)

Array: TypeAlias = NDArray[Any]
Key: TypeAlias = tuple[Any, ...]

DTYPES: dict[int, type[np.generic]] = {
    1: np.bool_,
    8: np.uint8,
    16: np.uint16,
    32: np.uint32,
    64: np.uint64,
}

# What a register holds before anything is written to it: a NaN in every floating-point type.
POISON: dict[int, int] = {1: 1, 8: 0xFF, 16: 0xFFF7, 32: 0xFFF7_FFF7, 64: 0xFFF7_FFF7_FFF7_FFF7}


def width_of(type_name: str) -> int:
    """Bits of a PTX type: width_of("bf16x2") is 32."""
    if type_name == "pred":
        return 1
    pairs = {"f16x2": 32, "bf16x2": 32, "e4m3x2": 16, "e5m2x2": 16, "u16x2": 32, "s16x2": 32}
    pairs |= {"tf32": 32, "bf16": 16, "f32x2": 64, "e4m3": 8, "e5m2": 8}
    return pairs.get(type_name) or int(type_name[1:])


class Slots:
    """The places that a kernel's instructions read and write."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.keys: list[Key] = []
        self._index: dict[Key, int] = {}

    def place(self, key: Key) -> int:
        if key not in self._index:
            self._index[key] = len(self.keys)
            self.keys.append(key)
        return self._index[key]

    def width(self, register: Register) -> int:
        return width_of(self.function.registers[register.name])

    def source(self, operand: Operand, kind: str, ins: Instruction) -> int:
        """The slot of a source operand of PTX type `kind`."""
        bits = width_of(kind)
        if isinstance(operand, Register):
            width = self.width(operand)
            if width < bits:
                raise UnsupportedInstruction(
                    f"{ins.where()}: {ins.text} reads {bits} bits of a {width}-bit register."
                )
            return self.place(("reg", operand.name, width, bits))
        if isinstance(operand, Immediate):
            return self.place(("imm", literal(operand, kind), bits))
        if isinstance(operand, Special):
            return self.place(("special", operand.name, bits))
        if isinstance(operand, Symbol):
            return self.place(("symbol", operand.name, operand.offset, bits))
        raise UnsupportedInstruction(f"{ins.where()}: {ins.text} has an operand of unknown form.")

    def destination(self, operand: Operand, ins: Instruction) -> int:
        """The slot of a destination register, at the register's own width."""
        if operand is None:
            return self.place(("sink", 64))
        if not isinstance(operand, Register):
            raise UnsupportedInstruction(f"{ins.where()}: {ins.text} writes to no register.")
        width = self.width(operand)
        return self.place(("reg", operand.name, width, width))


def literal(operand: Immediate, kind: str) -> int:
    """The bits of a literal as PTX type `kind`: 0d literals are rounded to the type."""
    bits = width_of(kind)
    if operand.float_bits == 64 and bits == 32:
        value = struct.unpack("<d", struct.pack("<Q", operand.value))[0]
        return int(np.float32(value).view(np.uint32))
    if operand.float_bits == 32 and kind == "f64":
        value = struct.unpack("<f", struct.pack("<I", operand.value))[0]
        return int(np.float64(value).view(np.uint64))
    return operand.value & ((1 << bits) - 1)


class RegisterFile:
    """The arrays behind the slots of one kernel, for `warps` warps."""

    def __init__(self, slots: Slots, warps: int, constant: Callable[[Key, int], Array]) -> None:
        """`constant(key, warps)` gives the array of a slot that is no register."""
        self.slots = slots
        self.registers: dict[str, Array] = {}
        self.arrays: list[Array] = []
        for key in slots.keys:
            if key[0] == "reg":
                self.arrays.append(self._register(key[1], key[2], key[3], warps))
            elif key[0] == "sink":
                self.arrays.append(np.zeros((warps, 32), DTYPES[key[1]]))
            elif key[0] == "imm":
                self.arrays.append(np.full((warps, 32), key[1], DTYPES[key[2]]))
            else:
                self.arrays.append(constant(key, warps))

    def _register(self, name: str, width: int, bits: int, warps: int) -> Array:
        if name not in self.registers:
            self.registers[name] = np.full((warps, 32), POISON[width], DTYPES[width])
        register = self.registers[name]
        # A narrow read takes the low part: every width/bits-th element of the narrower view.
        return register if bits == width else register.view(DTYPES[bits])[:, :: width // bits]

    def poison(self) -> None:
        for register in self.registers.values():
            register.fill(POISON[register.dtype.itemsize * 8 if register.dtype != bool else 1])

    def rows(self, first: int, count: int) -> list[Array]:
        """The slots of warps [first, first + count)."""
        return [array[first : first + count] for array in self.arrays]
