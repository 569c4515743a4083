"""A program's device memory: the mapping, and what lies where in it."""

from __future__ import annotations

import bisect
import ctypes
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from warpsim.machine.core.arrays import NORESERVE, Array
from warpsim.machine.core.image import Variable
from warpsim.machine.memory.arena import (
    CONSTANT,
    OUTSIDE,
    SCRATCH_BYTES,
    UNWRITTEN,
    WRITTEN,
    Arena,
)
from warpsim.machine.memory.layout import FUNCTIONS, GLOBAL_BASE, GUARD_BYTES, GlobalLayout
from warpsim.machine.memory.tensor_map_image import TensorMaps

_GROWTH = 1 << 24
"""Bytes by which the part of the mapping that launches see grows."""
_WORKSPACE = 64
_FIXED = 0x10
"""MAP_FIXED of Linux, which the mmap module does not have."""


class Object(msgspec.Struct, frozen=True):
    """An allocation, or a variable in one."""

    address: int
    size: int
    name: str

    @property
    def end(self) -> int:
        return self.address + self.size


class Objects:
    """What lies where, by address; ranges do not overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._objects: dict[int, Object] = {}

    def add(self, made: Object) -> None:
        if made.address not in self._objects:
            bisect.insort(self._starts, made.address)
        self._objects[made.address] = made

    def remove(self, address: int) -> Object | None:
        gone = self._objects.pop(address, None)
        if gone is not None:
            del self._starts[bisect.bisect_left(self._starts, address)]
        return gone

    def before(self, address: int) -> Object | None:
        """The last that begins at or before an address."""
        index = bisect.bisect_right(self._starts, address)
        return self._objects[self._starts[index - 1]] if index else None

    def after(self, address: int) -> Object | None:
        """The first that begins after an address."""
        index = bisect.bisect_right(self._starts, address)
        return self._objects[self._starts[index]] if index < len(self._starts) else None

    def at(self, address: int) -> Object | None:
        result = self.before(address)
        return result if result is not None and address < result.end else None

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)


class Mapped(Arena):
    """The first bytes of a mapping; their contents are as they are."""

    def __init__(self, data: Array, state: Array) -> None:
        self.data, self.state = data, state
        self._views = {}
        self._states = {}


class DeviceMemory:
    """Memory that a program and its launches share."""

    def __init__(self, data: int, state: int) -> None:
        self._files = data, state
        self._data, self._state = _mapped(data), _mapped(state)
        self._state[:SCRATCH_BYTES] = WRITTEN
        self.live, self.freed = Objects(), Objects()
        self.maps = TensorMaps(GLOBAL_BASE)
        self.allocated: dict[int, int] = {}
        """Bytes that malloc() of a kernel gave, by their address."""
        self.heap: tuple[int, int] = (0, 0)
        """Address of what malloc() gives next, and the end of that."""
        self.arena = self._seen(_GROWTH)

    def detach(self) -> None:
        """From now on what this process writes is its own, at the same addresses."""
        for file, view in zip(self._files, (self._data, self._state), strict=True):
            _map_again(view, file)

    def _seen(self, size: int) -> Mapped:
        return Mapped(self._data[:size], self._state[:size])

    def reach(self, end: int) -> None:
        """Lets launches see the memory up to an address."""
        need = end - GLOBAL_BASE + GUARD_BYTES + SCRATCH_BYTES
        if need > len(self.arena.data):
            self.arena = self._seen(min(-(-need // _GROWTH) * _GROWTH, len(self._data)))

    def add(self, made: Object) -> None:
        self.live.add(made)
        self.reach(made.end)

    def release(self, address: int) -> Object | None:
        """What was allocated there, which is gone now."""
        gone = self.live.remove(address)
        if gone is not None:
            self.freed.add(gone)
        return gone

    def read(self, made: Object) -> bytes:
        at = made.address - GLOBAL_BASE
        return bytes(self.arena.data[at : at + made.size])

    def write(self, address: int, data: bytes, size: int, state: int) -> None:
        """The first contents of `size` bytes, zeros behind `data`."""
        at = address - GLOBAL_BASE
        self.arena.state[at : at + size] = state
        self.arena.data[at : at + size] = 0
        self.arena.data[at : at + len(data)] = np.frombuffer(data, np.uint8)

    def locate(self, address: int) -> str:
        """The end of a sentence about an address outside of every object."""
        gone = self.freed.at(address)
        if gone is not None:
            return f", in {gone.name} ({gone.size:,} bytes), which was freed at {gone.name}-"
        before, after = self.live.before(address), self.live.after(address)
        near = [(address - before.end, "past the end of", before)] if before else []
        near += [(after.address - address, "before the beginning of", after)] if after else []
        distance, where, name = min(
            ((d, where, item) for d, where, item in near if 0 <= d < GUARD_BYTES),
            key=lambda item: item[0],
            default=(GUARD_BYTES, "", None),
        )
        if name is None:
            return ""
        how_far = f"{distance:,} byte{'s' * (distance != 1)}" if distance else "just"
        return f", {how_far} {where} {name.name} ({name.size:,} bytes)"


def _mapped(file: int) -> Array:
    size = os.fstat(file).st_size
    return np.frombuffer(mmap.mmap(file, size, flags=mmap.MAP_SHARED), np.uint8)


def _map_again(view: Array, file: int) -> None:
    """Privately; what others write stays visible in pages that this process has not written."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long
    flags = mmap.MAP_PRIVATE | _FIXED | NORESERVE
    at, access = view.ctypes.data, mmap.PROT_READ | mmap.PROT_WRITE
    if libc.mmap(at, view.nbytes, access, flags, file, 0) != at:
        raise OSError(ctypes.get_errno(), "mmap")


class World(GlobalLayout):
    """Global memory as the kernels of one module see it: the device's, with their own variables."""

    is_shared = True

    def __init__(self, device: DeviceMemory, functions: Iterable[str]) -> None:
        self.device = device
        self.arrays: Mapping[str, Array] = {}
        self.offsets = {}
        self.maps = device.maps
        self.allocated = device.allocated
        self.variables: dict[str, Object] = {}
        self.workspace = 0
        self._functions = {name: FUNCTIONS + 16 * i for i, name in enumerate(functions, 1)}

    @property
    def arena(self) -> Arena:  # type: ignore[override]
        return self.device.arena

    def detach(self) -> None:
        self.device.detach()

    def room(self, variables: Iterable[Variable]) -> int:
        """Bytes that the variables take in one block."""
        return (
            sum(-(-variable.size // 256) * 256 + GUARD_BYTES for variable in variables) + _WORKSPACE
        )

    def place(self, variables: list[Variable], block: int) -> None:
        """Gives them their addresses in a block, and their first contents."""
        self.device.live.remove(block)
        self.workspace = block
        self.device.write(block, b"", _WORKSPACE, WRITTEN)
        at = -(-(block + _WORKSPACE) // 256) * 256
        for variable in variables:
            result = Object(at, variable.size, variable.name)
            self.variables[variable.name] = result
            self.device.add(result)
            at = -(-(result.end + GUARD_BYTES) // 256) * 256
        for variable in variables:
            self._fill(variable)

    def _fill(self, variable: Variable) -> None:
        result = self.variables[variable.name]
        state = CONSTANT if variable.space == "const" else WRITTEN
        self.device.write(result.address, self.first_content(variable), result.size, state)

    def first_content(self, variable: Variable) -> bytes:
        """What the module gives it."""
        data = bytearray(variable.data.ljust(self.variables[variable.name].size, b"\0"))
        for pointed in variable.addresses:
            value = self.symbol(pointed.name) + pointed.addend
            data[pointed.offset : pointed.offset + 8] = value.to_bytes(8, "little")
        return bytes(data)

    def symbol(self, name: str) -> int:
        if name in self._functions:
            return self._functions[name]
        # A kernel has an address that can be held, and is none of a function that can be called.
        return self.variables[name].address if name in self.variables else FUNCTIONS

    def extent(self, name: str, base: int) -> int:
        result = self.device.live.at(GLOBAL_BASE + base)
        return result.end - GLOBAL_BASE - base if result and result.name == name else 0

    def object_at(self, offset: int) -> str:
        result = self.device.live.before(GLOBAL_BASE + offset)
        return result.name if result is not None else ""

    def beside(self, offset: int) -> str:
        return self.device.locate(GLOBAL_BASE + offset)

    def name_at(self, offset: int, element: int = 0) -> str:
        result = self.device.live.at(GLOBAL_BASE + offset)
        if result is None:
            return f"global {GLOBAL_BASE + offset:#x}"
        byte = GLOBAL_BASE + offset - result.address
        if element and byte % element == 0:
            return f"{result.name}[{byte // element:,}] ({element}-byte elements)"
        return f"byte {byte:,} of {result.name}"

    def reserve(self, size: int) -> int:
        first, end = self.device.heap
        following = first + -(-(size + GUARD_BYTES) // 64) * 64
        if not first or following > end:
            return 0
        self.device.heap = following, end
        self.arena.allocate(first - GLOBAL_BASE, size, UNWRITTEN)
        self.device.live.add(Object(first, size, "what malloc() gave"))
        return first

    def release(self, address: int, size: int) -> None:
        self.arena.allocate(address - GLOBAL_BASE, size, OUTSIDE)
        gone = self.device.live.remove(address)
        if gone is not None:
            self.device.freed.add(gone)

    def write_back(self) -> None:
        """Nothing: the program sees the same memory."""
