"""Constant banks: bytes that the threads of a launch read and nobody writes.

What the driver fills in goes by these names: `ntid.x` ... `nctaid.z`, `stack` (where a thread's
stack begins: it grows downwards), `dynamic shared` (bytes), `shared window` (where its variables
begin), `local window`, `constant window`, `parameters` and `workspace` (generic addresses),
`reserved shared` (where the part of it lies that kernels may use), `nsmid`, `nothing` (values that
no result depends on, such as memory descriptors), and the names of the entry's parameters.

Of clusters: `clusters` (1 if the launch has any), `cluster_nctaid.x` ..., `nclusterid.x` ...,
`cluster_nctarank`, and `1/cluster_nctaid.x` ... (f32, rounded up, so that an index times it has
the quotient as its integral part).
"""

from __future__ import annotations

import math

import numpy as np

from warpsim.launch import Launch
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.image import Bank
from warpsim.machine.memory.layout import (
    CONSTANT_WINDOW,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    RESERVED_FOR_KERNELS,
    SHARED_RESERVED,
    SHARED_WINDOW,
    GlobalLayout,
    LocalLayout,
    Parameters,
)

WORD = 4
RESERVED_SHARED = "reserved shared"


def fill(
    bank: Bank,
    launch: Launch,
    world: GlobalLayout,
    parameters: Parameters,
    local: LocalLayout,
    sms: int,
) -> Array:
    """The bytes of a bank at a launch on so many SMs, uint8 [multiple of 16]."""
    data = np.zeros(-(-bank.size // 16) * 16, np.uint8)
    data[: len(bank.data)] = np.frombuffer(bank.data, np.uint8)
    for pointed in bank.addresses:
        _put(data, pointed.offset, world.symbol(pointed.name) + pointed.addend, 8)
    for name, (offset, size) in bank.variables.items():
        if name in world.arrays:
            data[offset : offset + size] = world.contents(name, size)
    for offset, name in bank.fields.items():
        name, _, part = name.partition("+")
        if name in parameters.offsets:
            first = parameters.offsets[name] + int(part or 0)
            data[offset : offset + WORD] = parameters.arena.data[first : first + WORD]
        else:
            placed = {
                "bank 0": PARAM_WINDOW,
                "parameters": parameters.address,
                "workspace": world.workspace,
                "nsmid": sms,
            }
            value = placed[name] if name in placed else _value(name, launch, local)
            _put(data, offset, value >> 8 * int(part or 0), WORD)
    return data


def _put(data: Array, offset: int, value: int, size: int) -> None:
    octets = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    data[offset : offset + size] = np.frombuffer(octets, np.uint8)


def _value(name: str, launch: Launch, local: LocalLayout) -> int:
    stem, _, axis = name.partition(".")
    if axis:
        index = "xyz".index(axis)
        size = launch.cluster[index]
        if stem.startswith("1/"):
            return _reciprocal(size)
        if stem == "nclusterid":
            return launch.grid[index] // size
        sizes = {"ntid": launch.block, "nctaid": launch.grid, "cluster_nctaid": launch.cluster}
        return sizes[stem][index]
    return {
        "clusters": int(math.prod(launch.cluster) > 1),
        "cluster_nctarank": math.prod(launch.cluster),
        "stack": local.size,
        "dynamic shared": launch.dynamic_smem_bytes,
        "shared window": SHARED_WINDOW + SHARED_RESERVED,
        "local window": LOCAL_WINDOW,
        "constant window": CONSTANT_WINDOW,
        RESERVED_SHARED: RESERVED_FOR_KERNELS,
        "nothing": 0,
    }[name]


def _reciprocal(size: int) -> int:
    """The bits of the smallest f32 that is not below 1 / size."""
    value = np.float32(1 / size)
    if float(value) * size < 1:
        value = np.nextafter(value, np.float32(2))
    return int(value.view(np.uint32))
