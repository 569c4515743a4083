"""Tensor maps in memory: parameters, copies of them, and what kernels change in them."""

from __future__ import annotations

import msgspec
import numpy as np

from kernelexp.emulator.machine.arena import WRITTEN, Arena
from kernelexp.emulator.machine.asynchronous import Issuer
from kernelexp.emulator.machine.copying import refused
from kernelexp.emulator.machine.layout import (
    GLOBAL_BASE,
    PARAM_WINDOW,
    WINDOW,
    WINDOW_BITS,
    PlacedMap,
)
from kernelexp.emulator.machine.machine import Machine
from kernelexp.launch import TENSOR_MAP_BYTES, TensorMap

ALIGN = 64
MARK_BYTES = 16


def find(machine: Machine, issuer: Issuer, address: int) -> PlacedMap:
    """The tensor map at a generic address; Fatal with a finding if there is none."""
    if address >> WINDOW_BITS == PARAM_WINDOW >> WINDOW_BITS:
        return _in_arena(machine, issuer, machine.execution.parameters.arena, address, PARAM_WINDOW)
    return _in_arena(machine, issuer, machine.world.arena, address, GLOBAL_BASE)


def _in_arena(machine: Machine, issuer: Issuer, arena: Arena, address: int, base: int) -> PlacedMap:
    first = address - base
    if 0 <= first <= len(arena.state) - TENSOR_MAP_BYTES and address % ALIGN == 0:
        states = arena.state[first : first + TENSOR_MAP_BYTES]
        placed = machine.execution.parameters.maps.find(
            arena.data[first : first + MARK_BYTES].tobytes()
        )
        if placed is not None and (states & WRITTEN).all():
            return placed
    raise refused(machine, issuer, "out-of-bounds", f"no tensor map lies at {address:#x}.")


def _place(machine: Machine, issuer: Issuer, address: int, space: str) -> tuple[Arena, int, int]:
    """(arena, offset in it, address of the arena's beginning) of an address of a state space."""
    if space == "global":
        return machine.world.arena, address - GLOBAL_BASE, GLOBAL_BASE
    offset, _, _ = machine.shared_offset(issuer.place, address & WINDOW, issuer.site)
    return machine.shared, offset, address - offset


def replace(
    machine: Machine, issuer: Issuer, address: int, space: str, field: str, index: int, value: int
) -> None:
    """Changes a field of the tensor map at an address of `space`."""
    arena, first, base = _place(machine, issuer, address, space)
    placed = _in_arena(machine, issuer, arena, address, base)
    if field == "global_address":
        changed = PlacedMap(placed.tensor, value - GLOBAL_BASE)
        if not 0 <= changed.base < len(machine.world.arena.state):
            sentence = f"a tensor map gets the address {value:#x}, which is not global memory."
            raise refused(machine, issuer, "out-of-bounds", sentence)
    else:
        changed = PlacedMap(_with(placed.tensor, field, index, value), placed.base)
    data = machine.execution.parameters.maps.add(changed)
    arena.data[first : first + len(data)] = np.frombuffer(data, np.uint8)


def _with(tensor: TensorMap, field: str, index: int, value: int) -> TensorMap:
    name = {"global_dim": "shape", "global_stride": "strides_bytes", "box_dim": "box"}[field]
    values = list(getattr(tensor, name))
    values[index] = value
    return msgspec.structs.replace(tensor, **{name: tuple(values)})


def publish(machine: Machine, issuer: Issuer, to: int, source: int) -> None:
    """Copies a tensor map from shared to global memory, and makes it visible to the copy engine."""
    arena, first, base = _place(machine, issuer, source, "shared")
    _in_arena(machine, issuer, arena, source, base)
    at = to - GLOBAL_BASE
    world = machine.world.arena
    if (
        not 0 <= at <= len(world.state) - TENSOR_MAP_BYTES
        or (world.state[at : at + TENSOR_MAP_BYTES] == 0).any()
    ):
        sentence = f"a tensor map is copied to {to:#x}, which is outside every object."
        raise refused(machine, issuer, "out-of-bounds", sentence)
    world.data[at : at + TENSOR_MAP_BYTES] = arena.data[first : first + TENSOR_MAP_BYTES]
    world.state[at : at + TENSOR_MAP_BYTES] = WRITTEN
