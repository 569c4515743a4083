"""Bulk copies: tensor (TMA) and linear, loads to mbarriers, stores and reductions in groups."""

# NumPy's operators on arrays of any type are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.findings import Fatal
from kernelexp.emulator.isa.atomics import _operation as reduction
from kernelexp.emulator.isa.gate import Gate, lanes_of
from kernelexp.emulator.isa.mbarrier import WINDOW
from kernelexp.emulator.isa.registry import Op, builder, modifiers, refuse
from kernelexp.emulator.machine import tma
from kernelexp.emulator.machine.access import SECTOR_BYTES
from kernelexp.emulator.machine.arena import UNWRITTEN, WRITTEN
from kernelexp.emulator.machine.asynchronous import Pending
from kernelexp.emulator.machine.spaces import GLOBAL_BASE
from kernelexp.emulator.ptx.syntax import Address, Instruction, Operand, Register, Vector
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.mbarrier import Mbarrier
    from kernelexp.emulator.machine.warps import Fragment
    from kernelexp.launch import TensorMap

_DIM = "{d:1d|2d|3d|4d|5d}"
_HINT = "{h:|.L2::cache_hint}"
_GROUP = "{g:|.cta_group::1|.cta_group::2}"
_DST = "{s:shared::cta|shared::cluster}"
_TX = ".mbarrier::complete_tx::bytes"
TENSOR_ALIGN, BULK_ALIGN = 128, 16


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


class Issuer:
    """The thread that issued an operation, and what it had seen then."""

    def __init__(self, machine: Machine, place: int, lane: int) -> None:
        self.place = place
        self.thread = place * 32 + lane
        clocks = machine.clocks
        self.seen: Array = clocks.seen[place].copy()
        self.fence: Array = clocks.fence_seen[place].copy()


def land_in_shared(
    machine: Machine,
    issuer: Issuer,
    cta: int,
    low: int,
    data: Array,
    swizzle: str,
    ins: Instruction,
) -> None:
    """Writes a dense image of bytes to shared memory of a resident CTA."""
    base = machine.arena_offset(cta, low)
    size = len(data)
    if machine.ctas[cta].exited:
        machine.found(
            "remote-cta-exited",
            f"a copy arrives in CTA {machine.ctas[cta].number}, which has ended.",
            ins,
            issuer.place,
        )
    in_use(machine, base, size, ins, issuer, writes=True)
    unit = machine.clocks.unit
    machine.clocks.tick()
    machine.races.engine_write(
        slice(base // unit, (base + size) // unit), issuer.thread, issuer.seen, ins
    )
    if swizzle == "none":
        machine.shared.data[base : base + size] = data
    else:
        index = tma.chunks(low, size, swizzle) + (base - low)
        machine.shared.view(8, 2)[index // 16] = data.view(np.uint64).reshape(-1, 2)
    machine.shared.state[base : base + size] = WRITTEN


def in_use(
    machine: Machine, base: int, size: int, ins: Instruction, issuer: Issuer, *, writes: bool
) -> None:
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


@builder(
    f"cp.async.bulk.tensor.{_DIM}{_GROUP}.{_DST}.global{{t:|.tile}}{_TX}{{m:|.multicast::cluster}}{{g2:|.cta_group::1|.cta_group::2}}{_HINT}"
)
def tensor_load(ins: Instruction, d: Decoder) -> Op:
    """Boxes of 1 to 5 dimensions, swizzles, out-of-bounds fill with zeros, multicast, a barrier in
    the pair's other CTA; complete_tx counts the whole box. im2col is refused."""
    parts = modifiers(ins)
    to, source, bar = (At(operand, d, ins) for operand in ins.operands[:3])
    multicast = "multicast::cluster" in parts
    mask_slot = d.source(ins.operands[3], "u16", ins) if multicast else None
    pair = "cta_group::2" in parts
    if len(source.coordinates) != int(parts[4][0]):
        raise refuse(ins, "has another number of coordinates than dimensions")
    number = d.number

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place, lane in each_lane(warps, m):
            tensor = find_map(machine, source.value(R, row, lane), ins, place)
            size = tma.box_bytes(tensor)
            cta, low = shared_range(machine, place, to.value(R, row, lane), size, TENSOR_ALIGN, ins)
            _, bar_cta, bar_low = machine.shared_offset(
                place, bar.value(R, row, lane) & WINDOW, ins
            )
            own = machine.cta_of(place).place
            if not pair and not multicast and bar_cta != cta:
                machine.found(
                    "mbarrier-misuse",
                    "the barrier of a copy without cta_group::2 lies in another CTA than its data.",
                    ins,
                    place,
                )
            ctas = [cta]
            if mask_slot is not None:
                mask, first = int(R[mask_slot][row, lane]), own - machine.ctas[own].rank
                ctas = [first + rank for rank in range(machine.cluster_size) if mask >> rank & 1]
            start = source.start(R, row, lane)
            machine.tally(number).tma_sectors += size // SECTOR_BYTES
            _issue_load(
                machine,
                Issuer(machine, place, lane),
                ins,
                tensor,
                start,
                ctas,
                low,
                (bar_cta, bar_low),
                pair,
            )

    return op


def _issue_load(
    machine: Machine,
    issuer: Issuer,
    ins: Instruction,
    tensor: TensorMap,
    start: tuple[int, ...],
    ctas: list[int],
    low: int,
    barrier: tuple[int, int],
    pair: bool,
) -> None:
    size = tma.box_bytes(tensor)

    def land() -> None:
        data = read_box(machine, tensor, start, ins, issuer.place)
        for cta in ctas:
            land_in_shared(machine, issuer, cta, low, data, tensor.swizzle, ins)
            complete(machine, _signalled(machine, cta, barrier, ctas, pair, ins), size, issuer, ins)

    base = [machine.arena_offset(cta, low) for cta in ctas]
    machine.engines.issue(
        Pending(
            what=f"the load of the box at {start} of {tensor.array} ({ins.where()})",
            land=land,
            instruction=ins,
            touches=tuple((b, b + size) for b in base),
        )
    )


def _signalled(
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


# Stores


@builder(f"cp.async.bulk.tensor.{_DIM}.global.shared::cta{{t:|.tile}}.bulk_group{_HINT}")
def tensor_store(ins: Instruction, d: Decoder) -> Op:
    """Boxes and swizzles; what lies outside the array is dropped."""
    return _tensor_out(ins, d, None)


@builder(
    f"cp.reduce.async.bulk.tensor.{_DIM}.global.shared::cta.{{o:add|min|max|and|or|xor|inc|dec}}{{t:|.tile}}.bulk_group{_HINT}"
)
def tensor_reduce(ins: Instruction, d: Decoder) -> Op:
    """Reductions of integers, f16, bf16, f32 and f64, element after element."""
    return _tensor_out(ins, d, modifiers(ins)[7])


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


def _tensor_out(ins: Instruction, d: Decoder, operation: str | None) -> Op:
    target, source = At(ins.operands[0], d, ins), At(ins.operands[1], d, ins)
    number = d.number

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place, lane in each_lane(warps, m):
            tensor = find_map(machine, target.value(R, row, lane), ins, place)
            start, size = target.start(R, row, lane), tma.box_bytes(tensor)
            cta, low = shared_range(
                machine, place, source.value(R, row, lane), size, TENSOR_ALIGN, ins
            )
            machine.tally(number).tma_sectors += size // SECTOR_BYTES
            issuer = Issuer(machine, place, lane)

            read = functools.partial(
                fetch_shared, machine, issuer, cta, low, size, tensor.swizzle, ins
            )
            write = functools.partial(_write_box, machine, tensor, start, operation)
            base = machine.arena_offset(cta, low)
            add_to_group(machine, issuer, ins, read, write, base, size, tensor.array)

    return op


def fetch_shared(
    machine: Machine, issuer: Issuer, cta: int, low: int, size: int, swizzle: str, ins: Instruction
) -> Array:
    """A dense image of bytes from shared memory, read by the copy engine."""
    base = machine.arena_offset(cta, low)
    unit = machine.clocks.unit
    machine.clocks.tick()
    machine.races.engine_read(
        slice(base // unit, (base + size) // unit),
        issuer.thread,
        issuer.seen,
        issuer.fence,
        machine.clocks.copy,
        ins,
    )
    if (machine.shared.state[base : base + size] == UNWRITTEN).any():
        machine.found(
            "uninitialised-read",
            f"a copy reads {machine.shared_name(base)}, which nobody wrote.",
            ins,
            issuer.place,
        )
    if swizzle == "none":
        return machine.shared.data[base : base + size].copy()
    index = tma.chunks(low, size, swizzle) + (base - low)
    return machine.shared.view(8, 2)[index // 16].reshape(-1).view(np.uint8)


def _write_box(
    machine: Machine, tensor: TensorMap, start: tuple[int, ...], operation: str | None, data: Array
) -> None:
    world = machine.global_layout
    element = tma.ELEMENT_BYTES[tensor.element]
    offsets, inside = tma.box_offsets(tensor, start)
    index = (world.offsets[tensor.array] + offsets[inside]) // element
    values = data.view(f"u{element}")[inside]
    view = world.arena.view(element, 1)
    if operation is not None:
        values = reduction(operation, _KINDS[tensor.element])(view[index], values)
    view[index] = values
    world.arena.states(element)[index] = int.from_bytes(bytes([WRITTEN]) * element, "little")


def add_to_group(
    machine: Machine,
    issuer: Issuer,
    ins: Instruction,
    read: Callable[[], Array],
    write: Callable[[Array], None],
    base: int,
    size: int,
    to: str,
) -> None:
    """Issues a store of the open bulk group of its thread: first it reads, later it writes."""
    data: list[Array] = []
    order = ("bulk", next(machine.serial))
    reading = Pending(
        f"the read of a store to {to} ({ins.where()})",
        lambda: data.append(read()),
        ins,
        order=order,
        touches=((base, base + size),),
    )
    writing = Pending(
        f"a store to {to} ({ins.where()})", lambda: write(data.pop()), ins, order=order
    )
    opened = machine.groups.setdefault(("bulk open", issuer.thread), [])
    opened += [reading, writing]
    machine.engines.issue(reading)
    machine.engines.issue(writing)


@builder("cp.async.bulk.commit_group")
def commit_group(ins: Instruction, d: Decoder) -> Op:
    """Closes the thread's group."""

    def op(R: list[Array], m: Any, warps: Any) -> None:
        groups = warps.machine.groups
        for _, place, lane in each_lane(warps, m):
            thread = place * 32 + lane
            opened = groups.pop(("bulk open", thread), [])
            groups.setdefault(("bulk", thread), []).append(opened)

    return op


class BulkWait(Gate):
    """cp.async.bulk.wait_group N: at most N of the thread's groups are pending."""

    def __init__(self, ins: Instruction, d: Decoder) -> None:
        super().__init__(ins)
        self.allowed = d.constant(ins.operands[0], ins)
        self.reads_only = modifiers(ins)[-1] == "read"

    def _waited(self, machine: Machine, fragment: Fragment) -> list[Pending]:
        found: list[Pending] = []
        for lane in lanes_of(fragment):
            groups = machine.groups.get(("bulk", fragment.warp * 32 + lane), [])
            for group in groups[: max(0, len(groups) - self.allowed)]:
                found += [p for p in group if p.touches or not self.reads_only]
        return found

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        return all(operation.done for operation in self._waited(machine, fragment))

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        for lane in lanes_of(fragment):
            key = ("bulk", fragment.warp * 32 + lane)
            groups = machine.groups.get(key, [])
            while groups and all(operation.done for operation in groups[0]):
                groups.pop(0)
        # What these copies have read may be overwritten by whoever hears of this.
        row = np.zeros_like(machine.clocks.seen[fragment.warp])
        row[machine.clocks.copy] = machine.clocks.now
        machine.clocks.acquire(fragment.warp, row)

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        pending = sum(not operation.done for operation in self._waited(machine, fragment))
        return f"{pending} reads and writes of bulk copies"


@builder("cp.async.bulk.wait_group{r:|.read}", gate=True)
def wait_group(ins: Instruction, d: Decoder) -> BulkWait:
    """A store reads its source first and writes later: `.read` waits for the former only."""
    return BulkWait(ins, d)


# Linear copies


@builder(f"cp.async.bulk.{_DST}.global{_TX}{{m:|.multicast::cluster}}{_HINT}")
@builder(f"cp.async.bulk.shared::cluster.shared::cta{_TX}")
def bulk_load(ins: Instruction, d: Decoder) -> Op:
    """From global memory, or from the own CTA's shared memory, to shared memory."""
    parts = modifiers(ins)
    to, source, bar = (
        At(ins.operands[0], d, ins),
        At(ins.operands[1], d, ins),
        At(ins.operands[3], d, ins),
    )
    size_slot = d.source(ins.operands[2], "u32", ins)
    multicast = "multicast::cluster" in parts
    mask_slot = d.source(ins.operands[4], "u16", ins) if multicast else None
    from_shared = parts[4] == "shared::cta"
    number = d.number

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place, lane in each_lane(warps, m):
            size = int(R[size_slot][row, lane])
            _bulk_size(machine, size, ins, place)
            cta, low = shared_range(machine, place, to.value(R, row, lane), size, BULK_ALIGN, ins)
            _, bar_cta, bar_low = machine.shared_offset(
                place, bar.value(R, row, lane) & WINDOW, ins
            )
            ctas, own = [cta], machine.cta_of(place).place
            if mask_slot is not None:
                mask, first = int(R[mask_slot][row, lane]), own - machine.ctas[own].rank
                ctas = [first + rank for rank in range(machine.cluster_size) if mask >> rank & 1]
            issuer, address = Issuer(machine, place, lane), source.value(R, row, lane)
            machine.tally(number).tma_sectors += 0 if from_shared else -(-size // SECTOR_BYTES)

            def land(
                size: int = size,
                low: int = low,
                ctas: list[int] = ctas,
                issuer: Issuer = issuer,
                address: int = address,
                barrier: tuple[int, int] = (bar_cta, bar_low),
            ) -> None:
                data = (
                    _linear_shared(machine, issuer, address, size, ins)
                    if from_shared
                    else _linear_global(machine, issuer, address, size, ins)
                )
                for target in ctas:
                    land_in_shared(machine, issuer, target, low, data, "none", ins)
                    found = _signalled(machine, target, barrier, ctas, False, ins)
                    complete(machine, found, size, issuer, ins)

            base = [machine.arena_offset(target, low) for target in ctas]
            machine.engines.issue(
                Pending(
                    f"a bulk load of {size} bytes ({ins.where()})",
                    land,
                    ins,
                    touches=tuple((b, b + size) for b in base),
                )
            )

    return op


def _bulk_size(machine: Machine, size: int, ins: Instruction, place: int) -> None:
    if size % BULK_ALIGN:
        machine.found(
            "misaligned", f"a bulk copy of {size} bytes: multiples of 16 only.", ins, place
        )
        raise Fatal


def _linear_global(
    machine: Machine, issuer: Issuer, address: int, size: int, ins: Instruction
) -> Array:
    first = global_range(machine, issuer, address, size, ins)
    arena = machine.global_layout.arena
    if (arena.state[first : first + size] == UNWRITTEN).any():
        machine.found(
            "uninitialised-read", "a copy reads memory that nobody wrote.", ins, issuer.place
        )
    return arena.data[first : first + size].copy()


def global_range(
    machine: Machine, issuer: Issuer, address: int, size: int, ins: Instruction
) -> int:
    """Arena offset of a linear copy's global side, checked."""
    first = address - GLOBAL_BASE
    arena = machine.global_layout.arena
    if address % BULK_ALIGN:
        machine.found("misaligned", f"global {address:#x} is no multiple of 16.", ins, issuer.place)
        raise Fatal
    if not 0 <= first <= len(arena.state) - size or not arena.state[first : first + size].all():
        machine.found(
            "out-of-bounds",
            f"a copy of {size} bytes at global {address:#x} leaves its array.",
            ins,
            issuer.place,
        )
        raise Fatal
    return first


def _linear_shared(
    machine: Machine, issuer: Issuer, address: int, size: int, ins: Instruction
) -> Array:
    cta, low = shared_range(machine, issuer.place, address, size, BULK_ALIGN, ins)
    return fetch_shared(machine, issuer, cta, low, size, "none", ins)


@builder(f"cp.async.bulk.global.shared::cta.bulk_group{_HINT}")
@builder(
    f"cp.reduce.async.bulk.global.shared::cta.bulk_group{_HINT}.{{o:add|min|max|and|or|xor}}{{n:|.noftz}}.{{t:u32|s32|u64|s64|b32|b64|f16|bf16|f32|f64}}"
)
def bulk_store(ins: Instruction, d: Decoder) -> Op:
    """From shared to global memory, with a reduction or without."""
    parts = modifiers(ins)
    operation = None
    if parts[1] == "reduce":
        names = [part for part in parts if part in ("add", "min", "max", "and", "or", "xor")]
        operation = reduction(names[0], parts[-1])
    element = {"f16": 2, "bf16": 2}.get(parts[-1], 8 if parts[-1].endswith("64") else 4)
    to, source = At(ins.operands[0], d, ins), At(ins.operands[1], d, ins)
    size_slot = d.source(ins.operands[2], "u32", ins)
    number = d.number

    def op(R: list[Array], m: Any, warps: Any) -> None:
        machine = warps.machine
        for row, place, lane in each_lane(warps, m):
            size, issuer = int(R[size_slot][row, lane]), Issuer(machine, place, lane)
            _bulk_size(machine, size, ins, place)
            cta, low = shared_range(
                machine, place, source.value(R, row, lane), size, BULK_ALIGN, ins
            )
            first = global_range(machine, issuer, to.value(R, row, lane), size, ins)
            machine.tally(number).tma_sectors += -(-size // SECTOR_BYTES)

            read = functools.partial(fetch_shared, machine, issuer, cta, low, size, "none", ins)
            write = functools.partial(_write_linear, machine, first, element, operation)
            base = machine.arena_offset(cta, low)
            add_to_group(machine, issuer, ins, read, write, base, size, "global memory")

    return op


def _write_linear(
    machine: Machine,
    first: int,
    element: int,
    operation: Callable[[Array, Array], Array] | None,
    data: Array,
) -> None:
    arena = machine.global_layout.arena
    view = arena.data[first : first + len(data)]
    if operation is not None:
        old = view.copy().view(f"u{element}")
        data = operation(old, data.view(f"u{element}")).view(np.uint8)
    view[...] = data
    arena.state[first : first + len(data)] = WRITTEN
