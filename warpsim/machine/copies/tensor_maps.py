"""Tensor maps in memory: parameters, copies of them, and what kernels change in them."""

from __future__ import annotations

import numpy as np

from warpsim.launch import TENSOR_MAP_BYTES
from warpsim.machine.copies.copying import refused
from warpsim.machine.core.asynchronous import Issuer, Pending
from warpsim.machine.memory.arena import WRITTEN, Arena
from warpsim.machine.memory.layout import GLOBAL_BASE, PARAM_WINDOW, WINDOW, WINDOW_BITS
from warpsim.machine.memory.tensor_map_image import PlacedMap, change
from warpsim.machine.wave.machine import Machine

ALIGN = 64


class MapUses(dict[int, list[Pending]]):
    """By the generic address of a map in global memory: copies that may still read it."""


def use(machine: Machine, issuer: Issuer, address: int, operations: list[Pending]) -> None:
    """Copies have been issued by the map at a generic address."""
    if address >> WINDOW_BITS == PARAM_WINDOW >> WINDOW_BITS:
        return
    if not machine.execution.image.strict:
        for operation in operations:
            _watch(machine, issuer, address, operation)
        return
    uses = machine.state(MapUses)
    in_flight = [operation for operation in uses.get(address, ()) if not operation.done]
    uses[address] = [*in_flight, *operations]


def _watch(machine: Machine, issuer: Issuer, address: int, operation: Pending) -> None:
    """Of SASS, where a map is changed by ordinary stores: a finding if it has been when the copy
    lands."""
    window = slice(address - GLOBAL_BASE, address - GLOBAL_BASE + TENSOR_MAP_BYTES)
    before, land = machine.world.arena.data[window].copy(), operation.land

    def landed() -> None:
        if (machine.world.arena.data[window] != before).any():
            sentence = (
                f"the tensor map at {address:#x} has been overwritten while {operation.describe()} "
                "could still read it: nothing has waited for that copy."
            )
            machine.report("overwritten-in-use", sentence, issuer.site, issuer.place)
        land()

    operation.land = landed


def find(machine: Machine, issuer: Issuer, address: int, dimensions: int) -> PlacedMap:
    """The tensor map at a generic address; Fatal with a finding if there is none, or if it has
    another number of dimensions than the copy has coordinates."""
    placed = _find(machine, issuer, address)
    rank = len(placed.tensor.shape)
    if rank != dimensions:
        sentence = (
            f"a copy with {dimensions} coordinates uses the tensor map of {placed.tensor.array}, "
            f"which has {rank} dimensions."
        )
        raise refused(machine, issuer, "tensor-descriptor", sentence)
    return placed


def _find(machine: Machine, issuer: Issuer, address: int) -> PlacedMap:
    if address >> WINDOW_BITS == PARAM_WINDOW >> WINDOW_BITS:
        parameters = machine.execution.parameters
        if address not in parameters.placed:  # what lies there never changes
            placed = _in_arena(machine, issuer, parameters.arena, address, PARAM_WINDOW)
            parameters.placed[address] = placed
        return parameters.placed[address]
    return _in_arena(machine, issuer, machine.world.arena, address, GLOBAL_BASE)


def _in_arena(machine: Machine, issuer: Issuer, arena: Arena, address: int, base: int) -> PlacedMap:
    first = address - base
    if 0 <= first <= len(arena.state) - TENSOR_MAP_BYTES and address % ALIGN == 0:
        states = arena.state[first : first + TENSOR_MAP_BYTES]
        placed = machine.execution.parameters.maps.find(
            arena.data[first : first + TENSOR_MAP_BYTES].tobytes()
        )
        if placed is not None and (states & WRITTEN).all():
            if _is_global(machine, placed.base):
                return placed
            wrong = f"{GLOBAL_BASE + placed.base:#x}"
            sentence = f"a tensor map has the address {wrong}, which is not global memory."
            raise refused(machine, issuer, "out-of-bounds", sentence)
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
    _in_arena(machine, issuer, arena, address, base)
    if field == "global_address" and not _is_global(machine, value - GLOBAL_BASE):
        sentence = f"a tensor map gets the address {value:#x}, which is not global memory."
        raise refused(machine, issuer, "out-of-bounds", sentence)
    window = slice(first, first + TENSOR_MAP_BYTES)
    data = bytearray(arena.data[window].tobytes())
    change(data, field, index, value)
    arena.data[window] = np.frombuffer(data, np.uint8)


def _is_global(machine: Machine, offset: int) -> bool:
    return 0 <= offset < len(machine.world.arena.state)


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
    for operation in machine.state(MapUses).get(to, ()):
        if not operation.done:
            machine.report(
                "overwritten-in-use",
                f"the tensor map at {to:#x} is overwritten while {operation.describe()} may still "
                "read it: nothing has waited for that copy.",
                issuer.site,
                issuer.place,
            )
    world.data[at : at + TENSOR_MAP_BYTES] = arena.data[first : first + TENSOR_MAP_BYTES]
    world.state[at : at + TENSOR_MAP_BYTES] = WRITTEN
