"""Bytes between shared and global memory: what the copy engine reads, writes and signals."""

# NumPy's operators on arrays of any type are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernelexp.emulator.findings import Fatal
from kernelexp.emulator.isa.atomics import _operation as reduction
from kernelexp.emulator.isa.mbarrier import WINDOW
from kernelexp.emulator.machine import tma
from kernelexp.emulator.machine.arena import UNWRITTEN, WRITTEN
from kernelexp.emulator.machine.asynchronous import Issuer
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.mbarrier import Mbarrier
    from kernelexp.launch import TensorMap


def land_in_shared(
    machine: Machine,
    issuer: Issuer,
    cta: int,
    low: int,
    data: Array,
    form: tma.Image,
    ins: Instruction,
) -> None:
    """Writes bytes to shared memory of a resident CTA."""
    base = machine.arena_offset(cta, low)
    if machine.ctas[cta].exited:
        machine.found(
            "remote-cta-exited",
            f"a copy arrives in CTA {machine.ctas[cta].number}, which has ended.",
            ins,
            issuer.place,
        )
    in_use(machine, base, form.footprint(len(data)), ins, issuer)
    machine.clocks.tick()
    units = _units(machine, base, low, len(data), form)
    machine.races.engine_write(units, issuer.thread, issuer.seen, ins)
    if form is tma.LINEAR:
        machine.shared.data[base : base + len(data)] = data
        machine.shared.state[base : base + len(data)] = WRITTEN
    else:
        index = (tma.chunks(low, len(data), form) + (base - low)) // tma.CHUNK_BYTES
        machine.shared.scatter(index * tma.CHUNK_BYTES, data.view(np.uint64).reshape(-1, 2), 8, 2)


def _units(machine: Machine, base: int, low: int, size: int, form: tma.Image) -> Array | slice:
    """What a copy touches, in the race check's units."""
    unit = machine.clocks.unit
    if form.row == form.pitch:  # No gaps, whatever the swizzle does.
        return slice(base // unit, (base + size) // unit)
    chunks = tma.chunks(low, size, form) + (base - low)
    return machine.clocks.units_of(chunks, tma.CHUNK_BYTES).ravel()


def in_use(machine: Machine, base: int, size: int, ins: Instruction, issuer: Issuer) -> None:
    """A finding if another pending operation reads or writes these bytes."""
    for other in machine.engines.pending:
        for first, end in other.touches:
            if first < base + size and base < end and other.instruction is not ins:
                machine.found(
                    "overwritten-in-use",
                    f"{machine.shared_name(base)} is written by a copy while this still uses it: "
                    f"{other.what}.",
                    ins,
                    issuer.place,
                )
                return


def complete(
    machine: Machine, barrier: Mbarrier | None, size: int, issuer: Issuer, ins: Instruction
) -> None:
    """Bytes have arrived: who waits for the barrier has seen them."""
    if barrier is None:
        return
    row = np.zeros_like(issuer.seen)
    row[machine.clocks.copy] = machine.clocks.now
    machine.mbarriers.complete(barrier, size, row, ins)


def shared_range(
    machine: Machine, place: int, address: int, size: int, align: int, ins: Instruction
) -> tuple[int, int]:
    """(resident CTA, offset) of a copy's shared-memory side, checked."""
    _, cta, low = machine.shared_offset(place, address & WINDOW, ins)
    if low % align:
        machine.found("misaligned", f"shared {low:#x} is no multiple of {align}.", ins, place)
        raise Fatal
    if low + size > machine.layout.end:
        machine.found(
            "out-of-bounds",
            f"a copy of {size} bytes at shared {low:#x} leaves the CTA's memory.",
            ins,
            place,
        )
        raise Fatal
    return cta, low


def find_map(machine: Machine, address: int, ins: Instruction, place: int) -> TensorMap:
    found = machine.tensor_map(address)
    if found is None:
        machine.found("out-of-bounds", f"no tensor map lies at {address:#x}.", ins, place)
        raise Fatal
    return found


def signalled(
    machine: Machine,
    cta: int,
    barrier: tuple[int, int],
    ctas: list[int],
    pair: bool,
    ins: Instruction,
) -> Mbarrier | None:
    """The barrier that the part of a copy which lands in `cta` completes on."""
    bar_cta, low = barrier
    if len(ctas) > 1 or bar_cta not in ctas:
        # Multicast: the same offset in each receiving CTA; in pairs, in the CTA of the pair that
        # has the parity of the one named.
        parity = machine.ctas[bar_cta].rank & 1
        if pair:
            bar_cta = (cta & ~1) | parity
        elif len(ctas) > 1:
            bar_cta = cta
    return machine.mbarriers.find(
        machine.arena_offset(bar_cta, low), machine.ctas[bar_cta].number, low, ins
    )


def read_box(
    machine: Machine, tensor: TensorMap, start: tuple[int, ...], ins: Instruction, place: int
) -> Array:
    """The box's bytes in the order of its shared-memory image, zeros outside the array."""
    world = machine.global_layout
    base = world.offsets[tensor.array]
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
    if unwritten:
        machine.found(
            "uninitialised-read",
            f"a copy reads parts of {tensor.array} that nobody wrote.",
            ins,
            place,
        )
    return data


KINDS = {
    "u8": "b8",
    "u16": "b16",
    "u32": "u32",
    "s32": "s32",
    "f16": "f16",
    "bf16": "bf16",
    "f32": "f32",
    "f64": "f64",
}


def fetch_shared(
    machine: Machine,
    issuer: Issuer,
    cta: int,
    low: int,
    size: int,
    form: tma.Image,
    ins: Instruction,
    agent: int,
) -> Array:
    """Bytes from shared memory, read by the copy engine: `agent` is clocks.copy or clocks.store."""
    base = machine.arena_offset(cta, low)
    machine.clocks.tick()
    units = _units(machine, base, low, size, form)
    machine.races.engine_read(units, issuer.thread, issuer.seen, issuer.fence, agent, ins)
    chunks = tma.chunks(low, size, form) + (base - low)
    if (machine.shared.states(16)[chunks // 16].view(np.uint8) == UNWRITTEN).any():
        machine.found(
            "uninitialised-read",
            f"a copy reads {machine.shared_name(base)}, which nobody wrote.",
            ins,
            issuer.place,
        )
    return machine.shared.view(8, 2)[chunks // 16].reshape(-1).view(np.uint8)


def check_start(
    machine: Machine, tensor: TensorMap, start: tuple[int, ...], ins: Instruction, place: int
) -> None:
    """A box begins at a multiple of 16 bytes along its first dimension (an H200 demands it)."""
    if start[0] * tma.ELEMENT_BYTES[tensor.element] % tma.CHUNK_BYTES:
        machine.found(
            "misaligned",
            f"the box at {start} of {tensor.array} does not begin at a multiple of 16 bytes.",
            ins,
            place,
        )
        raise Fatal


def write_box(
    machine: Machine, tensor: TensorMap, start: tuple[int, ...], operation: str | None, data: Array
) -> None:
    world = machine.global_layout
    element = tma.ELEMENT_BYTES[tensor.element]
    offsets, inside = tma.box_offsets(tensor, start)
    index = (world.offsets[tensor.array] + offsets[inside]) // element
    values = data.view(f"u{element}")[inside]
    view = world.arena.view(element, 1)
    if operation is not None:
        values = reduction(operation, KINDS[tensor.element])(view[index], values)
    view[index] = values
    world.arena.states(element)[index] = int.from_bytes(bytes([WRITTEN]) * element, "little")
