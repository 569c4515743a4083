"""What each kind of instruction leaves in a stream: wavefronts, sectors, bytes, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from warpsim.front.sass.decoder import SassDecoder
from warpsim.front.sass.syntax import (
    ConstantOperand,
    Described,
    MachineInstruction,
    MemoryOperand,
    RegisterOperand,
)
from warpsim.machine.core.arrays import Array
from warpsim.machine.memory.layout import GLOBAL_BASE, WINDOW, GlobalLayout
from warpsim.machine.schedule.batches import Batch
from warpsim.machine.wave.machine import Machine

SHARED = frozenset("LDS STS LDSM STSM ATOMS".split())
LOADS = frozenset("LDG LD LDL".split())
STORES = frozenset("STG ST STL".split())
ATOMICS = frozenset("ATOM ATOMG RED REDG".split())
COPIES = frozenset({"LDGSTS"})
CONSTANTS = frozenset({"LDC"})
ARRIVALS = frozenset("SYNCS ARRIVES".split())
BULK_LOADS = frozenset("UTMALDG UBLKCP".split())
BULK_STORES = frozenset("UTMASTG UTMAREDG".split())
PREFETCHES = frozenset({"UTMAPF"})
PRODUCTS = frozenset("UTCHMMA UTCQMMA UTCIMMA UTCOMMA".split())
SIGNALS = frozenset({"UTCBAR"})
GLOBAL = LOADS | STORES | ATOMICS
APART = (
    SHARED
    | GLOBAL
    | COPIES
    | CONSTANTS
    | ARRIVALS
    | BULK_LOADS
    | BULK_STORES
    | PREFETCHES
    | PRODUCTS
    | SIGNALS
)
"""Opcodes that leave figures: each begins a block, so that its registers are as it finds them."""
_WIDTHS = {"64": 8, "F64": 8, "128": 16, "U8": 1, "S8": 1, "U16": 2, "S16": 2, "256": 32}
_MATRIX_ROW = 16
_LANES = np.arange(32)


class Streams(Protocol):
    """Where figures go."""

    def figures(self, place: int, *figures: int) -> None: ...
    def signal(self, tokens: Sequence[int]) -> None: ...
    def shared(
        self, places: Array, addresses: Array, on: Array | None, size: int, pairs: bool
    ) -> None: ...
    def globally(
        self, places: Array, addresses: Array, on: Array | None, size: int, atomic: bool = False
    ) -> None: ...


class AccessFootprint:
    """Of an instruction that leaves nothing."""

    signals = False
    """Whether what it leaves is known only when it has run."""

    def __init__(self, decoder: SassDecoder) -> None:
        ins = decoder.instruction
        self.number = ins.number
        self._guard = decoder.guard() if ins.guard is not None else None

    def _on(self, batch: Batch) -> Array | None:
        """Lanes that execute it, as bool [n, 32]; None: all."""
        mask = None if batch.mask is True else batch.mask
        if self._guard is not None:
            slot, negated = self._guard
            holds = np.broadcast_to(batch.set.R[slot] != negated, (batch.set.count, 32))
            mask = holds if mask is None else holds & mask
        return None if mask is None else np.ascontiguousarray(mask)

    def before(self, streams: Streams, batch: Batch, places: Array) -> None:
        """Figures from the registers that it finds."""

    def after(
        self, streams: Streams, batch: Batch, row: int, place: int, signals: Sequence[Signal]
    ) -> None:
        """Figures of a warp from what it has signalled."""


Signal = tuple[int, int]
"""A token, and the bytes that arrived with it."""


class _Access(AccessFootprint):
    """An access to shared or global memory."""

    def __init__(self, decoder: SassDecoder) -> None:
        super().__init__(decoder)
        ins = decoder.instruction
        operands = [x for x in ins.operands if isinstance(x, MemoryOperand)]
        if not operands:
            raise decoder.refuse("has no address")
        self._base = ins.base
        self._size = next((_WIDTHS[m] for m in ins.modifiers if m in _WIDTHS), 4)
        self._addresses = [_Address(decoder, operand) for operand in operands]
        self._local = ins.base in ("LDL", "STL")

    def _global(self, batch: Batch) -> Array:
        address = self._addresses[-1].values(batch)
        if self._local:  # the words of 32 lanes lie side by side
            return (address & WINDOW) // 4 * 128 + 4 * _LANES
        return address


class _Shared(_Access):
    def __init__(self, decoder: SassDecoder) -> None:
        super().__init__(decoder)
        ins = decoder.instruction
        self._matrices = 0
        if self._base in ("LDSM", "STSM"):
            self._matrices = next((int(m) for m in ins.modifiers if m in ("2", "4")), 1)
            self._size = _MATRIX_ROW

    def before(self, streams: Streams, batch: Batch, places: Array) -> None:
        address, on = self._addresses[0].values(batch), self._on(batch)
        if self._matrices:
            rows = np.broadcast_to(_LANES < 8 * self._matrices, address.shape)
            on = np.ascontiguousarray(rows if on is None else rows & on)
        pairs = self._base == "LDS"
        streams.shared(places, address & WINDOW, on, self._size, pairs)


class _Global(_Access):
    def before(self, streams: Streams, batch: Batch, places: Array) -> None:
        atomic = self._base in ATOMICS
        streams.globally(places, self._global(batch), self._on(batch), self._size, atomic)


class _Copy(_Access):
    def before(self, streams: Streams, batch: Batch, places: Array) -> None:
        on = self._on(batch)
        streams.shared(places, self._addresses[0].values(batch) & WINDOW, on, self._size, False)
        streams.globally(places, self._addresses[1].values(batch), on, self._size)


class _Constant(AccessFootprint):
    """A constant whose place each lane names: how many words they read."""

    def __init__(self, decoder: SassDecoder) -> None:
        super().__init__(decoder)
        (operand,) = (x for x in decoder.instruction.operands if isinstance(x, ConstantOperand))
        self._place = decoder.place_in_bank(operand)

    def before(self, streams: Streams, batch: Batch, places: Array) -> None:
        words, on = self._place(batch.set.R).astype(np.int64) >> 2, self._on(batch)
        words = np.broadcast_to(words, (batch.set.count, 32))
        for row, place in enumerate(places.tolist()):
            own = words[row] if on is None else words[row, on[row]]
            streams.figures(place, len(np.unique(own)))


class _Arrival(AccessFootprint):
    """Arrives at mbarriers: signals, and waits for nothing."""

    signals = True

    def after(
        self, streams: Streams, batch: Batch, row: int, place: int, signals: Sequence[Signal]
    ) -> None:
        tokens = [token for token, _ in signals]
        streams.signal(tokens)
        streams.figures(place, len(tokens), *tokens, 0)


class _Signal(AccessFootprint):
    """A commit: signals when the products before it are done."""

    signals = True

    def after(
        self, streams: Streams, batch: Batch, row: int, place: int, signals: Sequence[Signal]
    ) -> None:
        tokens = [token for token, _ in signals]
        streams.signal(tokens)
        streams.figures(place, len(tokens), *tokens)


class _Product(AccessFootprint):
    """A tcgen05.mma: rows and columns of D; none where no lane takes part."""

    def __init__(self, decoder: SassDecoder) -> None:
        super().__init__(decoder)
        described = (x for x in decoder.instruction.operands if isinstance(x, Described))
        (register,) = (x.register for x in described if x.kind == "idesc")
        self._descriptor = decoder.word_of(register)

    def before(self, streams: Streams, batch: Batch, places: Array) -> None:
        on, R = self._on(batch), batch.set.R
        for row, place in enumerate(places.tolist()):
            value = int(R[self._descriptor][row, 0])
            rows, columns = (value >> 24 & 0x1F) << 4, (value >> 17 & 0x3F) << 3
            active = on is None or bool(on[row].any())
            streams.figures(place, *((rows, columns) if active else (0, 0)))


class _Bulk(AccessFootprint):
    """A copy of the TMA unit: bytes, the array that it reads or writes, what it signals."""

    signals = True

    def __init__(self, decoder: SassDecoder) -> None:
        super().__init__(decoder)
        self._slots: list[int] = []
        for operand in decoder.instruction.operands:
            if isinstance(operand, MemoryOperand) and operand.uniform is not None:
                dimensions = decoder.instruction.modifiers[0][:1]
                extra = int(dimensions) if dimensions.isdigit() else 0
                first = operand.uniform
                count = 2 + extra if not self._slots else 2
                for part in range(count):
                    self._slots.append(decoder.word_of(first, part))
        self._stores = decoder.instruction.base in BULK_STORES or (
            decoder.instruction.modifiers[:2] == ("G", "S")
        )
        self._sectors = 0

    def before(self, streams: Streams, batch: Batch, places: Array) -> None:
        self._sectors = batch.set.machine.execution.tally(self.number).tma_sectors

    def after(
        self, streams: Streams, batch: Batch, row: int, place: int, signals: Sequence[Signal]
    ) -> None:
        on = self._on(batch)
        active = bool(on is None or on[row, 0])
        R = batch.set.R
        low, high = (int(R[slot][row, 0]) for slot in self._slots[-2:])
        array = _array(batch.set.machine, low | high << 32)
        if self._stores:
            sectors = batch.set.machine.execution.tally(self.number).tma_sectors - self._sectors
            warps = batch.set.count if on is None else int(np.count_nonzero(on[:, 0]))
            streams.figures(place, 32 * sectors // max(1, warps) if active else 0, array)
            return
        tokens = [token for token, _ in signals]
        size = max((size for _, size in signals), default=0)
        streams.signal(tokens)
        streams.figures(place, size, array, len(tokens), *tokens)


class _Prefetch(AccessFootprint):
    """A box of an array to L2; -1 where no lane takes part."""

    def __init__(self, decoder: SassDecoder) -> None:
        super().__init__(decoder)
        operands = [x for x in decoder.instruction.operands if isinstance(x, MemoryOperand)]
        tensor_map = operands[-1].uniform
        if tensor_map is None:
            raise decoder.refuse("has no tensor map")
        self._map = [decoder.word_of(tensor_map, part) for part in range(2)]

    def before(self, streams: Streams, batch: Batch, places: Array) -> None:
        on, R = self._on(batch), batch.set.R
        for row, place in enumerate(places.tolist()):
            low, high = (int(R[slot][row, 0]) for slot in self._map)
            active = on is None or on[row, 0]
            array = _array(batch.set.machine, low | high << 32) if active else -1
            streams.figures(place, array)


def _array(machine: Machine, address: int) -> int:
    """The index of the array that a tensor map's address, or its own, is of; -1: not known."""
    world, placed = machine.world, machine.execution.parameters.placed.get(address)
    offset = address - GLOBAL_BASE if placed is None else placed.base
    generator = (at for at, extent in enumerate(extents(world).values()) if offset in extent)
    return next(generator, -1)


def extents(world: GlobalLayout) -> dict[str, range]:
    """Bytes of the arrays of a launch, as offsets."""
    return {
        name: range(world.offsets[name], world.offsets[name] + array.nbytes)
        for name, array in world.arrays.items()
    }


class _Address:
    """A memory operand as int64 [n, 32]."""

    def __init__(self, decoder: SassDecoder, operand: MemoryOperand) -> None:
        self._parts: list[tuple[int, int | None, int]] = []
        for register in (operand.base, operand.uniform):
            if register is None or register.index < 0:
                continue
            wide = register.part in ("64",) or (
                operand.descriptor is not None and register.file == "R" and register.part != "U32"
            )
            shift = {"X4": 2, "X8": 3, "X16": 4}.get(register.part, 0)
            low = decoder.word_of(_bare(register))
            high = decoder.word_of(_bare(register), 1) if wide else None
            self._parts.append((low, high, shift))
        self._offset = operand.offset

    def values(self, batch: Batch) -> Array:
        R, total = batch.set.R, np.full((batch.set.count, 32), self._offset, np.int64)
        for low, high, shift in self._parts:
            value = R[low].astype(np.int64)
            if high is not None:
                value = value | R[high].astype(np.int64) << 32
            total += value << shift
        return total


def _bare(register: RegisterOperand) -> RegisterOperand:
    return RegisterOperand(file=register.file, index=register.index)


def of(decoder: SassDecoder) -> dict[int, AccessFootprint]:
    """Footprints by the number of their instruction."""
    prints: dict[int, AccessFootprint] = {}
    for number, ins in enumerate(decoder.code):
        kind = _kind(ins)
        if kind is not None:
            decoder.at(number)
            prints[number] = kind(decoder)
    return prints


def reads_by_lane(ins: MachineInstruction) -> bool:
    """Whether each lane names the constant that it reads."""
    operands = (x for x in ins.operands if isinstance(x, ConstantOperand))
    registers = (x.register for x in operands if x.register is not None)
    return ins.base in CONSTANTS and any(register.file == "R" for register in registers)


def _kind(ins: MachineInstruction) -> type[AccessFootprint] | None:
    base = ins.base
    if base in ARRIVALS:
        return _Arrival if base == "ARRIVES" or "ARRIVE" in ins.modifiers else None
    if base in CONSTANTS:
        return _Constant if reads_by_lane(ins) else None
    for bases, kind in (
        (SHARED, _Shared),
        (GLOBAL, _Global),
        (COPIES, _Copy),
        (BULK_LOADS | BULK_STORES, _Bulk),
        (PREFETCHES, _Prefetch),
        (PRODUCTS, _Product),
        (SIGNALS, _Signal),
    ):
        if base in bases:
            return kind
    return None
