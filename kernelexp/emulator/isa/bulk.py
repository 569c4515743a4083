"""Linear bulk copies, and the groups in which a thread waits for its bulk stores."""

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
from kernelexp.emulator.isa.issue import At, each_lane
from kernelexp.emulator.isa.mbarrier import WINDOW
from kernelexp.emulator.isa.registry import Op, builder, modifiers
from kernelexp.emulator.machine import tma
from kernelexp.emulator.machine.access import SECTOR_BYTES, TAG_BYTES
from kernelexp.emulator.machine.arena import UNWRITTEN, WRITTEN
from kernelexp.emulator.machine.asynchronous import Issuer, Pending
from kernelexp.emulator.machine.copying import (
    complete,
    fetch_shared,
    land_in_shared,
    shared_range,
    signalled,
)
from kernelexp.emulator.machine.spaces import GLOBAL_BASE
from kernelexp.emulator.ptx.syntax import Instruction
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.warps import Fragment

_DIM = "{d:1d|2d|3d|4d|5d}"
_HINT = "{h:|.L2::cache_hint}"
_GROUP = "{g:|.cta_group::1|.cta_group::2}"
_DST = "{s:shared::cta|shared::cluster}"
_TX = ".mbarrier::complete_tx::bytes"
TENSOR_ALIGN, BULK_ALIGN = 128, 16


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

    def take() -> None:
        data.append(read())
        reading.landed = machine.clocks.now

    reading = Pending(
        f"the read of a store to {to} ({ins.where()})",
        take,
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
        return [
            operation
            for lane in lanes_of(fragment)
            for group in self._old(machine, fragment, lane)
            for operation in group
            if operation.touches or not self.reads_only
        ]

    def _old(self, machine: Machine, fragment: Fragment, lane: int) -> list[list[Pending]]:
        """The groups of a thread that may not be pending any more."""
        groups = machine.groups.get(("bulk", fragment.warp * 32 + lane), [])
        return groups[: max(0, len(groups) - self.allowed)]

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        return all(operation.done for operation in self._waited(machine, fragment))

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        # What these copies have read may be overwritten by whoever hears of this; a copy that the
        # wait allows to be pending may have been read by now, but nobody can know.
        waited = self._waited(machine, fragment)
        row = np.zeros_like(machine.clocks.seen[fragment.warp])
        row[machine.clocks.store] = max((p.landed for p in waited), default=0)
        machine.clocks.acquire(fragment.warp, row)
        for lane in lanes_of(fragment):
            key = ("bulk", fragment.warp * 32 + lane)
            groups, old = machine.groups.get(key, []), len(self._old(machine, fragment, lane))
            machine.groups[key] = [
                group
                for index, group in enumerate(groups)
                if index >= old or not all(operation.done for operation in group)
            ]

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
            if not from_shared:
                to_ctas = len(ctas) if multicast else 0
                machine.tally(number).load(_sectors(address, size), to_ctas)

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
                    land_in_shared(machine, issuer, target, low, data, tma.LINEAR, ins)
                    found = signalled(machine, target, barrier, ctas, False, ins)
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


def _sectors(address: int, size: int) -> int:
    """Sectors of a linear copy: each 128 bytes of it count for themselves (an H200 does so)."""
    ends = [min(first + TAG_BYTES, size) for first in range(0, size, TAG_BYTES)]
    return sum(
        (address + end - 1) // SECTOR_BYTES - (address + first) // SECTOR_BYTES + 1
        for first, end in zip(range(0, size, TAG_BYTES), ends, strict=True)
    )


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
    return fetch_shared(machine, issuer, cta, low, size, tma.LINEAR, ins, machine.clocks.copy)


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
            machine.tally(number).tma_sectors += _sectors(first + GLOBAL_BASE, size)

            agent = machine.clocks.store
            read = functools.partial(
                fetch_shared, machine, issuer, cta, low, size, tma.LINEAR, ins, agent
            )
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
