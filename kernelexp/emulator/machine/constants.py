"""Constant banks: bytes that the threads of a launch read and nobody writes.

What the driver fills in goes by these names: `ntid.x` ... `nctaid.z`, `stack` (where a thread's
stack begins: it grows downwards), `dynamic shared` (bytes), `shared window` (where its variables
begin) and `local window` (generic addresses), `nothing` (values that no result depends on, such as
memory descriptors), and the names of the entry's parameters.
"""

from __future__ import annotations

import numpy as np

from kernelexp.emulator.machine.arrays import Array
from kernelexp.emulator.machine.image import Bank
from kernelexp.emulator.machine.layout import (
    LOCAL_WINDOW,
    SHARED_RESERVED,
    SHARED_WINDOW,
    GlobalLayout,
    LocalLayout,
    Parameters,
)
from kernelexp.launch import Launch

WORD = 4


def fill(
    bank: Bank, launch: Launch, world: GlobalLayout, parameters: Parameters, local: LocalLayout
) -> Array:
    """The bytes of a bank at a launch, uint8 [multiple of 16]."""
    data = np.zeros(-(-bank.size // 16) * 16, np.uint8)
    data[: len(bank.data)] = np.frombuffer(bank.data, np.uint8)
    for pointed in bank.addresses:
        _put(data, pointed.offset, world.symbol(pointed.name) + pointed.addend, 8)
    for offset, name in bank.fields.items():
        name, _, part = name.partition("+")
        if name in parameters.offsets:
            first = parameters.offsets[name] + int(part or 0)
            data[offset : offset + WORD] = parameters.arena.data[first : first + WORD]
        else:
            _put(data, offset, _value(name, launch, local) >> 8 * int(part or 0), WORD)
    return data


def _put(data: Array, offset: int, value: int, size: int) -> None:
    octets = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    data[offset : offset + size] = np.frombuffer(octets, np.uint8)


def _value(name: str, launch: Launch, local: LocalLayout) -> int:
    stem, _, axis = name.partition(".")
    if axis:
        sizes = {"ntid": launch.block, "nctaid": launch.grid}
        return sizes[stem]["xyz".index(axis)]
    return {
        "stack": local.size,
        "dynamic shared": launch.dynamic_smem_bytes,
        "shared window": SHARED_WINDOW + SHARED_RESERVED,
        "local window": LOCAL_WINDOW,
        "nothing": 0,
    }[name]
