"""Tensor copies (TMA): boxes of an array, to and from shared memory."""

from __future__ import annotations

import functools

import numpy as np

from warpsim.arithmetic.reductions import reduction
from warpsim.machine.copies import tensor_maps
from warpsim.machine.copies.bulk import issue_store
from warpsim.machine.copies.copying import (
    CopyDestination,
    Landing,
    fetch_shared,
    issue_load,
    land,
    landings,
    refused,
    shared_range,
)
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.clocks import SLOTS
from warpsim.machine.core.site import UnsupportedInstruction
from warpsim.machine.memory import tma
from warpsim.machine.memory.arena import UNWRITTEN, WRITTEN
from warpsim.machine.memory.layout import GLOBAL_BASE
from warpsim.machine.memory.tensor_map_image import PlacedMap
from warpsim.machine.wave.machine import Machine

ALIGN = 128
_KINDS = {
    "u8": "b8",
    "u16": "b16",
    "u32": "u32",
    "s32": "s32",
    "f16": "f16",
    "bf16": "bf16",
    "f32": "f32",
    "f64": "f64",
}


def load(
    machine: Machine,
    issuer: Issuer,
    destination: CopyDestination,
    tensor_map: int,
    start: tuple[int, ...],
) -> None:
    """Copies the box at `start`, innermost coordinate first, to shared memory."""
    placed = tensor_maps.find(machine, issuer, tensor_map, len(start))
    tensor = placed.tensor
    form = tma.image(tensor)
    footprint = form.footprint(tma.box_bytes(tensor))
    places = landings(machine, issuer, destination, footprint, ALIGN)
    multicast = destination.ranks is not None
    if not destination.pair and not multicast and places[0].barrier_cta != places[0].cta:
        sentence = "the barrier of a copy without cta_group::2 lies in another CTA than its data."
        machine.report("mbarrier-misuse", sentence, issuer.site, issuer.place)
    plain, start = _in_bytes(machine, issuer, placed, start)
    sectors = tma.sectors(plain.tensor, placed.base + GLOBAL_BASE, start, load=True)
    tally = machine.execution.tally(issuer.site.number)
    tally.load(sectors, len(places) if multicast else 0)

    read = functools.cache(functools.partial(_read_box, machine, issuer, plain, start))

    def arrive(place: Landing) -> None:
        data = read()
        # Padding does not count: so DeepGEMM and CUTLASS expect it of E2M1 that they unpack.
        land(machine, issuer, place, tma.padded(data, tensor), form, len(data))

    what = f"the load of the box at {start} of {tensor.array}"
    issued = issue_load(machine, issuer, places, footprint, what, arrive)
    tensor_maps.use(machine, issuer, tensor_map, issued)


def store(
    machine: Machine,
    issuer: Issuer,
    tensor_map: int,
    start: tuple[int, ...],
    source: int,
    operation: str | None,
) -> None:
    """Copies a box from shared memory, or reduces it into the array: what is outside is dropped."""
    placed = tensor_maps.find(machine, issuer, tensor_map, len(start))
    if placed.tensor.element.endswith(("_p64", "_p32")):
        raise UnsupportedInstruction(f"{issuer.site.where()}: a store of padded elements.")
    placed, start = _in_bytes(machine, issuer, placed, start)
    tensor = placed.tensor
    form, size = tma.image(tensor), tma.box_bytes(tensor)
    footprint = form.footprint(size)
    cta, low = shared_range(machine, issuer, source, footprint, ALIGN)
    sectors = tma.sectors(tensor, placed.base + GLOBAL_BASE, start, load=False)
    machine.execution.tally(issuer.site.number).tma_sectors += sectors
    agent, base = machine.clocks.store + issuer.place % SLOTS, machine.arena_offset(cta, low)

    def wanted() -> Array:
        inside = tma.box_offsets(tensor, start)[1]
        return np.repeat(inside, tma.ELEMENT_BYTES[tensor.element])

    read = functools.partial(fetch_shared, machine, issuer, cta, low, size, form, agent, wanted)
    write = functools.partial(_write_box, machine, issuer, placed, start, operation)
    issued = issue_store(machine, issuer, tensor.array, (base, base + footprint), read, write)
    tensor_maps.use(machine, issuer, tensor_map, issued)


def _in_bytes(
    machine: Machine, issuer: Issuer, placed: PlacedMap, start: tuple[int, ...]
) -> tuple[PlacedMap, tuple[int, ...]]:
    """The map, and where the box begins, with bytes for elements if these are packed; checked.

    A box begins at a multiple of 16 bytes along its first dimension (an H200 demands it), of 128
    padded elements.
    """
    tensor = placed.tensor
    if not machine.world.extent(tensor.array, placed.base):
        sentence = f"the tensor map is one over {tensor.array}, which was freed."
        raise refused(machine, issuer, "out-of-bounds", sentence)
    size, room = tma.PACKED.get(
        tensor.element, (16 * tma.ELEMENT_BYTES.get(tensor.element, 1),) * 2
    )
    first, unit = start[0] * size // 16, tma.CHUNK_BYTES if size == room else 8 * size
    if first % unit or start[0] * size % 16:
        sentence = (
            f"the box at {start} of {tensor.array} does not begin at a multiple of {unit} bytes."
        )
        raise refused(machine, issuer, "misaligned", sentence)
    if tensor.element not in tma.PACKED:
        return placed, start
    return PlacedMap(tma.in_bytes(tensor), placed.base), (first, *start[1:])


def _read_box(machine: Machine, issuer: Issuer, placed: PlacedMap, start: tuple[int, ...]) -> Array:
    """The box's bytes in the order of its shared-memory image, zeros outside the array."""
    world, (tensor, base) = machine.world, placed
    races, fast = machine.world_races, machine.global_space.fast
    watched = not races.history.untouched(base, base + world.extent(tensor.array, base))
    box = tma.box_chunks(tensor, start)
    if fast and box is not None:
        agent = machine.clocks.copy if watched else None
        data = fast.read_chunks(box[1], base + box[0], issuer, agent)
        if data is not None:
            return data
    element = tma.ELEMENT_BYTES[tensor.element]
    offsets, inside = tma.box_offsets(tensor, start)
    whole = bool(inside.all())
    # A row of the box lies together: gather 8 bytes at a time where everything allows it.
    per = 8 // element
    if whole and tensor.box[0] % per == 0 and start[0] % per == 0:
        index = (base + offsets[::per]) // 8
        data, states = world.arena.view(8, 1)[index].view(np.uint8), world.arena.states(8)[index]
        unwritten = (states.view(np.uint8) == UNWRITTEN).any()
    else:
        index = (base + np.where(inside, offsets, 0))[:, None] + np.arange(element)
        data = np.where(inside[:, None], world.arena.data[index], 0).astype(np.uint8).ravel()
        unwritten = ((world.arena.state[index] == UNWRITTEN) & inside[:, None]).any()
    if watched:
        units = _distinct((base + offsets[inside]) // races.history.unit)
        races.engine_read(units, issuer, machine.clocks.copy)
    if unwritten:
        sentence = f"a copy reads parts of {tensor.array} that was never written."
        machine.report("uninitialised-read", sentence, issuer.site, issuer.place)
    return data


def _distinct(units: Array) -> Array:
    """Each unit once, ascending: in the order in which a box mostly has them."""
    step = np.diff(units)
    if (step > 0).all():
        return units
    return units[np.append(True, step > 0)] if (step >= 0).all() else np.unique(units)


def _write_box(
    machine: Machine,
    issuer: Issuer,
    placed: PlacedMap,
    start: tuple[int, ...],
    operation: str | None,
    data: Array,
) -> None:
    world, (tensor, base), fast = machine.world, placed, machine.global_space.fast
    box = tma.box_chunks(tensor, start)
    machine.world_races.reports.issued(issuer)
    if fast and box is not None and operation is None:
        agent = machine.world_races.output_agent(issuer)
        if fast.write_chunks(box[1], base + box[0], 0, data, issuer, agent):
            return
    element = tma.ELEMENT_BYTES[tensor.element]
    offsets, inside = tma.box_offsets(tensor, start)
    index = (base + offsets[inside]) // element
    values = data.view(f"u{element}")[inside]
    units = _distinct(index * element // machine.world_races.history.unit)
    machine.world_races.engine_output(units, issuer, reduces=operation is not None)
    view = world.arena.view(element, 1)
    if operation is not None:
        values = reduction(operation, _KINDS[tensor.element])(view[index], values)
    view[index] = values
    world.arena.states(element)[index] = int.from_bytes(bytes([WRITTEN]) * element, "little")
