"""A captured launch on this machine's GPU, in a process of its own: on the memory that it had, as
often as is wanted; what is left other than it was in the program."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernelexp.evidence.measure import launch
from kernelexp.evidence.measure.launch import DriverError, check, driver
from kernelexp.evidence.programs import captures
from kernelexp.evidence.programs.captures import Allocation, Capture
from kernelexp.model.errors import KernelexpError

_OTHER = 256 << 20
"""Bytes: more than the L2 cache of any card."""
_USABLE = 0.9
"""Of the free memory, what allocations of the program may take."""


class ChangedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of a region that are not as the program left them."""

    region: int
    address: int
    """Of the region in the program."""
    bytes: int
    first: int
    """Offset of the first."""
    size: int
    """Of the region."""
    as_floats: float
    """The largest difference of 32-bit floats at these places, relative to the program's: little
    says that results were rounded otherwise; negative where they are no such floats."""


class WorkerReplay(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a replaying process."""

    error: str = ""
    differences: tuple[ChangedOutput, ...] = ()
    repeatable: bool = True
    """Whether the last launch left what the first did."""
    row_same: bool = True
    """Whether launches in a row, each on what the one before left, left that too."""


def compare(index: int, capture: Capture, got: bytes, after: bytes) -> Iterator[ChangedOutput]:
    """Yields the difference in one region, if there is any."""
    differs = np.frombuffer(got, np.uint8) != np.frombuffer(after, np.uint8)
    if differs.any():
        yield ChangedOutput(
            region=index,
            address=capture.regions[index].address,
            bytes=int(differs.sum()),
            first=int(differs.argmax()),
            size=len(after),
            as_floats=_as_floats(got, after),
        )


def _as_floats(got: bytes, after: bytes) -> float:
    end = len(after) // 4 * 4
    one, other = (np.frombuffer(data[:end], np.float32) for data in (got, after))
    differs = one.view(np.uint32) != other.view(np.uint32)
    if not differs.any():
        return -1.0
    values, own = one[differs].astype(np.float64), other[differs].astype(np.float64)
    if not (np.isfinite(values).all() and np.isfinite(own).all()):
        return -1.0
    return float((np.abs(values - own) / np.maximum(np.abs(own), np.finfo(np.float32).tiny)).max())


class _Card:
    """The regions of a capture on the device, and its kernel."""

    def __init__(self, folder: Path, capture: Capture, other: _Card | None = None) -> None:
        """other: whose memory it shares where the program's did."""
        self._cu = cu = driver()
        check(cu.cuInit(0))
        device = check(cu.cuDeviceGet(0))
        check(cu.cuCtxSetCurrent(check(cu.cuDevicePrimaryCtxRetain(device))))
        self._capture = capture
        # First, as in the program: where in memory they lie has an effect on the L2 cache.
        self.places = self._allocations(other)
        module = check(cu.cuModuleLoadData((folder / captures.CUBIN).read_bytes()))
        self._function = check(cu.cuModuleGetFunction(module, capture.symbol.encode()))
        self._starts = [self._allocate(region.size) for region in capture.regions]
        self._bases = [self._place(module, region) for region in capture.regions]
        for index, region in enumerate(capture.regions):
            before, _ = captures.contents(folder, capture, index)
            check(cu.cuMemcpyHtoD(self._starts[index], before, region.size))
        launch.allow(cu, self._function, capture.shared, capture.cluster)
        self._data = [self._argument(index) for index in range(len(capture.parameters))]
        count = max(1, len(self._data))
        self._arguments = (ctypes.c_void_p * count)(*map(ctypes.addressof, self._data))
        self._config = launch.config(
            *(cu, capture.grid, capture.block, capture.shared, capture.cluster),
            cooperative=capture.cooperative,
        )
        self._launched = False
        self._other: Any = None

    def _allocations(self, other: _Card | None) -> dict[tuple[int, int], int]:
        """Allocates what the program had, in its order and whole, or shares it; the places by the
        program's addresses and sizes. If all is more than there is, only what the launch needs."""
        needed = [region for region in self._capture.regions if not region.variable]
        own = [(region.allocation, region.allocated) for region in needed]
        wanted = dict.fromkeys([*self._capture.allocations, *own])
        free, _ = check(self._cu.cuMemGetInfo())
        if sum(size for _, size in wanted) + sum(region.size for region in needed) > free * _USABLE:
            wanted = dict.fromkeys(item for item in wanted if item in own)
        places = dict(other.places) if other else {}
        for item in wanted:
            if item not in places:
                places[item] = int(self._allocate(item[1]))
        return places

    def _place(self, module: Any, region: Allocation) -> Any:
        if not region.variable:
            begin = self.places[region.allocation, region.allocated]
            return begin + region.address - region.allocation
        return check(self._cu.cuModuleGetGlobal(module, region.variable.encode()))[0]

    def _allocate(self, size: int) -> Any:
        return check(self._cu.cuMemAlloc(size))

    def _argument(self, index: int) -> Any:
        capture, bases = self._capture, [int(base) for base in self._bases]
        # Of a tensor map, the first word is the address; what else is in it may stay.
        data = captures.relocated(capture.parameters[index].content, capture.regions, bases)
        # Tensor maps, which are copied from here, lie on 64 bytes as they do in the program.
        room = (ctypes.c_uint8 * (len(data) + 64))()
        skipped = -ctypes.addressof(room) % 64
        argument = (ctypes.c_uint8 * len(data)).from_buffer(room, skipped)
        ctypes.memmove(argument, data, len(data))
        return argument

    def launch(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Launches on memory as it was before the launch in the program."""
        self.restore()
        meanwhile()
        check(self._cu.cuCtxSynchronize())
        self.enqueue()
        check(self._cu.cuCtxSynchronize())

    def restore(self) -> None:
        """Restores the captured memory; copies what launches leave alone only once."""
        for start, base, region in zip(
            self._starts, self._bases, self._capture.regions, strict=True
        ):
            if region.changed or not self._launched:
                check(self._cu.cuMemcpyDtoD(base, start, region.size))
        self._launched = True

    def enqueue(self) -> None:
        """Behind what was launched before, on what that left."""
        arguments = ctypes.addressof(self._arguments)
        check(self._cu.cuLaunchKernelEx(self._config, self._function, arguments, 0))

    def row(self, repeats: int, previous: _Card | None = None) -> None:
        """Launches so many times without a pause, each directly after one of the other."""
        self.restore()
        if previous:
            previous.restore()
        for _ in range(repeats):
            if previous:
                previous.enqueue()
            self.enqueue()
        check(self._cu.cuCtxSynchronize())

    def evict(self) -> None:
        """Other data into the L2 cache."""
        if self._other is None:
            self._other = self._allocate(_OTHER)
        check(self._cu.cuMemsetD8(self._other, 0, _OTHER))
        check(self._cu.cuCtxSynchronize())

    def content(self, index: int) -> bytes:
        data = bytearray(self._capture.regions[index].size)
        check(self._cu.cuMemcpyDtoH(data, self._bases[index], len(data)))
        return bytes(data)


def replay(folder: Path, repeats: int, in_row: int, previous: Path | None) -> WorkerReplay:
    """Launches it once, as often as that, so often with other data in the L2 cache, `in_row` times
    in a row, and so often directly after another capture of the program; the first one's bytes are
    compared with the program's.

    The row comes behind those with other data in the L2 cache: which part of 64 MiB stays there
    from launch to launch depends on whether it was first there because it was read, as after a
    program's copies, or because it was written, as after restore(): 24.0 and 22.3 us of cuBLAS's
    gemv on an H100.
    """
    capture = captures.read(folder)
    card = _Card(folder, capture)
    every = range(len(capture.regions))
    card.launch()
    first = [card.content(index) for index in every]
    differences = [
        difference
        for index, got in enumerate(first)
        for difference in compare(index, capture, got, captures.contents(folder, capture, index)[1])
    ]
    for _ in range(repeats):
        card.launch()
    for _ in range(repeats):
        card.launch(card.evict)
    last = [card.content(index) for index in every]
    card.row(in_row)
    row = [card.content(index) for index in every]
    if previous:
        card.row(in_row, _Card(previous, captures.read(previous), card))
    return WorkerReplay(
        differences=tuple(differences), repeatable=first == last, row_same=first == row
    )


def main() -> None:
    folder, path, counts = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:5]
    previous = Path(sys.argv[5]) if sys.argv[5:] else None
    result = WorkerReplay(error="it did not come to its end")
    with contextlib.suppress(SystemExit):
        try:
            result = replay(folder, int(counts[0]), int(counts[1]), previous)
        except (DriverError, KernelexpError) as fault:
            result = WorkerReplay(error=str(fault))
    path.write_bytes(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
