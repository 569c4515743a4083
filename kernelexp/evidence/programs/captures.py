"""Launches that were captured on a GPU, as files: one folder each.

launch.json says what was launched, module.cubin is the code, and N.before and N.after are the
N-th allocation around the launch; there is no N.after of one that it left as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from kernelexp.model.errors import UsageError
from warpsim.launch import Dim3

LAUNCH, CUBIN = "launch.json", "module.cubin"
FORMAT = 1
MAP_STEP = 16
"""Tensor maps lie at multiples of 64 bytes, but parameters do not begin at one."""


class PassedParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter by its bytes."""

    offset: int
    data: Annotated[str, msgspec.Meta(pattern=r"^([0-9a-fA-F]{2})*\Z")]
    """In hexadecimal."""

    @property
    def content(self) -> bytes:
        return bytes.fromhex(self.data)


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """The copied part of an allocation that an argument points into, or of a variable that the
    program or the launch has set."""

    address: int
    size: int
    """Bytes that were copied."""
    allocation: int
    """Where it begins."""
    allocated: int
    """Its bytes, which may be more."""
    changed: bool
    """Whether the launch left it other than it was."""
    variable: str = ""
    """The symbol in the kernel's module; empty: an allocation."""

    @property
    def end(self) -> int:
        return self.address + self.size


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """launch.json."""

    format: int
    symbol: str
    launch: int
    """Among all launches of its process, from 1."""
    number: int
    """Among those of its kernel."""
    previous: str = ""
    """The kernel that its process launched before it."""
    process: int
    device: str
    correlation: int
    grid: Dim3
    block: Dim3
    cluster: Dim3
    shared: int
    """Bytes of dynamic shared memory."""
    cooperative: bool
    attributes: tuple[int, ...]
    """The kinds that the launch carried (CUlaunchAttributeID)."""
    modules: int
    """Loaded modules with a kernel of that name."""
    chosen: bool
    """Whether module.cubin is known to be the right one of them; else it is the last one."""
    parameters: tuple[PassedParameter, ...]
    regions: tuple[Allocation, ...]
    allocations: tuple[tuple[int, int], ...] = ()
    """Addresses and bytes of all that the program had allocated with cuMemAlloc, the oldest
    first."""
    nanoseconds: int = 0
    """That this launch took on the device; 0: not known."""
    others: tuple[int, ...] = ()
    """What the program's other launches of this kernel with this grid and block took."""

    @property
    def bytes(self) -> int:
        return sum(region.size for region in self.regions)


class ShapeTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Times of a kernel's launches with one grid and block."""

    grid: Dim3
    block: Dim3
    nanoseconds: tuple[int, ...]


class LaunchedKernel(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel in a process's summary."""

    symbol: str
    launches: int
    patterns: tuple[int, ...]
    """Of those that were asked for, by number, that it matches."""
    times: tuple[ShapeTimes, ...]


class TimedCapture(msgspec.Struct, frozen=True, kw_only=True):
    """A folder in a process's summary."""

    folder: str
    nanoseconds: int


class SkippedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A launch that was asked for and is not there."""

    symbol: str
    launch: int
    why: str


class ProcessSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary that a process leaves at its end: process-N.json."""

    process: int
    program: str
    error: str
    """Why nothing could be seen; empty where it could."""
    no_times: str
    """Why kernels have no times; empty where they have."""
    launches: int
    graphs: int
    """Launches of CUDA graphs, whose kernels are not among `launches`."""
    modules: int
    kernels: tuple[LaunchedKernel, ...]
    captured: tuple[TimedCapture, ...]
    skipped: tuple[SkippedLaunch, ...]


def is_one(folder: Path) -> bool:
    return (folder / LAUNCH).is_file()


def read(folder: Path) -> Capture:
    """launch.json of a folder; UsageError where it is not a capture, or something is missing."""
    try:
        capture = msgspec.json.decode((folder / LAUNCH).read_bytes(), type=Capture)
    except OSError:
        raise UsageError(f"{folder} is not a capture: it has no {LAUNCH}.") from None
    except msgspec.DecodeError as fault:
        raise UsageError(f"{folder / LAUNCH} can't be read: {fault}.") from None
    if capture.format != FORMAT:
        raise UsageError(f"{folder} has format {capture.format}: this version reads {FORMAT}.")
    for path, size in _files(folder, capture):
        if not path.is_file() or (size is not None and path.stat().st_size != size):
            raise UsageError(f"{path} is missing or cut short: capture the launch again.")
    return capture


def _files(folder: Path, capture: Capture) -> Iterator[tuple[Path, int | None]]:
    yield folder / CUBIN, None
    for index, region in enumerate(capture.regions):
        yield folder / f"{index}.before", region.size
        if region.changed:
            yield folder / f"{index}.after", region.size


def contents(folder: Path, capture: Capture, index: int) -> tuple[bytes, bytes]:
    """Returns the contents of a region before the launch and after it."""
    before = (folder / f"{index}.before").read_bytes()
    changed = capture.regions[index].changed
    return before, (folder / f"{index}.after").read_bytes() if changed else before


def summaries(folder: Path) -> list[ProcessSummary]:
    """Reads the summaries of the processes that ended, in the order of their numbers."""
    read_all = [
        msgspec.json.decode(path.read_bytes(), type=ProcessSummary)
        for path in folder.glob("process-*.json")
    ]
    return sorted(read_all, key=lambda summary: summary.process)


def shape(capture: Capture) -> tuple[str, Dim3, Dim3]:
    """Returns what is equal in launches whose times are those of one kernel."""
    return capture.symbol, capture.grid, capture.block


def times_of(read: Sequence[ProcessSummary], capture: Capture) -> Iterator[int]:
    """Nanoseconds of launches of its shape, in their order."""
    for summary in read:
        for kernel in summary.kernels:
            for times in kernel.times:
                if (kernel.symbol, times.grid, times.block) == shape(capture):
                    yield from times.nanoseconds


def write(folder: Path, capture: Capture) -> None:
    text = msgspec.json.format(msgspec.json.encode(capture), indent=1)
    (folder / LAUNCH).write_bytes(text)


def relocated(data: bytes, regions: Sequence[Allocation], bases: Sequence[int]) -> bytes:
    """Bytes of a parameter with every address in it that points into a region moved to where that
    lies now."""
    result = bytearray(data)
    for at in range(0, len(data) - 7, 8):
        word = int.from_bytes(data[at : at + 8], "little")
        for region, base in zip(regions, bases, strict=True):
            if region.address <= word < region.end:
                moved = word - region.address + base
                result[at : at + 8] = moved.to_bytes(8, "little")
    return bytes(result)


def moved(address: int, regions: Sequence[Allocation], bases: Sequence[int]) -> int:
    """Returns where an address lies now; the address itself where it lies in no region."""
    data = relocated(address.to_bytes(8, "little"), regions, bases)
    return int.from_bytes(data, "little")
