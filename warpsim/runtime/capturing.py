"""A launch of a program with the memory that it was given, kept to be launched again elsewhere."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

import msgspec

from warpsim.execute import Result
from warpsim.launch import Dim3, full_name, plain_name
from warpsim.runtime.device import DeviceMemory, Object
from warpsim.runtime.launching import Request
from warpsim.runtime.loading import Loaded

_WORD = 8


class LaunchChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which launch of a program is kept."""

    kernel: str
    """Its own name, with template arguments or without, or its symbol."""
    number: int = 1
    """The first launch of it, the second, and so on."""

    def names(self, symbol: str) -> bool:
        plain = full_name(symbol)
        wanted = "".join(self.kernel.split())
        known = (symbol, plain_name(symbol), plain, plain.rpartition("::")[2])
        return wanted in ("".join(item.split()) for item in known)


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation, or a variable of a module, around a launch."""

    address: int
    before: bytes
    after: bytes

    @property
    def end(self) -> int:
        return self.address + len(self.before)


class CapturedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A launch, as it was executed."""

    symbol: str
    launch: int
    """Among all launches of the program, from 1."""
    grid: Dim3
    block: Dim3
    cluster: Dim3
    dynamic_smem_bytes: int
    arguments: tuple[bytes, ...]
    ptx: str
    """Of its module."""
    regions: tuple[Region, ...]
    """What its arguments point into."""
    changed: tuple[str, ...] = ()
    """Variables of its module that no longer have their first values."""
    finished: bool = True
    """Whether every thread came to its end."""


class Captor:
    """Keeps the launch that was chosen."""

    def __init__(self, choice: LaunchChoice) -> None:
        self._choice = choice
        self._passed = 0

    def wants(self, symbol: str) -> bool:
        """Whether the launch that comes now is the one; it counts it."""
        if self._choice.names(symbol):
            self._passed += 1
            return self._passed == self._choice.number
        return False

    def keep(
        self, loaded: Loaded, symbol: str, request: Request, launch: Callable[[], Result]
    ) -> CapturedLaunch:
        """Copies all that the arguments point into, before the launch and after it."""
        device = loaded.world.device
        objects = tuple(_pointed(device, request.arguments))
        before = unexecuted(loaded, symbol, request)
        changed = tuple(loaded.changed())
        result = launch()
        regions = (
            msgspec.structs.replace(region, after=device.read(item))
            for region, item in zip(before.regions, objects, strict=True)
        )
        return msgspec.structs.replace(
            before, regions=tuple(regions), changed=changed, finished=result.finished
        )


def unexecuted(loaded: Loaded, symbol: str, request: Request) -> CapturedLaunch:
    """A launch with the memory that it would find, which it is not given."""
    device = loaded.world.device
    regions = (
        Region(address=item.address, before=device.read(item), after=b"")
        for item in _pointed(device, request.arguments)
    )
    return CapturedLaunch(
        symbol=symbol,
        launch=request.launch,
        grid=request.grid,
        block=request.block,
        cluster=request.cluster,
        dynamic_smem_bytes=request.shared,
        arguments=request.arguments,
        ptx=loaded.text(symbol),
        regions=tuple(regions),
        finished=False,
    )


def _pointed(device: DeviceMemory, arguments: Sequence[bytes]) -> Iterator[Object]:
    words = {
        word
        for argument in arguments
        for (word,) in struct.iter_unpack("<Q", argument[: len(argument) // _WORD * _WORD])
    }
    known = {result.address: result for word in words if (result := device.live.at(word))}
    yield from (known[address] for address in sorted(known))
