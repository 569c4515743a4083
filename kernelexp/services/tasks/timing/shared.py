"""SharedMemory that two processes see: of a GPU by CUDA's IPC, of the CPU as a file of one folder.

Whoever is not trusted makes it; the other one opens it, and looks at what it is told.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from kernelexp.services.tasks import wire

PINNED = 1 << 20
"""Bytes for what is written to a device and taken from it: more than a turn has of both, so that
none is overwritten that was not read."""


class SharedMemory(Protocol):
    """The shared memory of a device."""

    def make(self, size: int) -> tuple[str, Any]:
        """A name for others, and the bytes as a tensor."""

    def open(self, name: str, size: int) -> Any:
        """Opens what another process made; ValueError where that is none, or less."""

    def write(self, flat: Any, at: int, content: bytes) -> None:
        """Bytes to a place of what was made here, before what is launched next."""

    def take(self, address: int, count: int) -> Callable[[], bytes]:
        """Bytes as they are when what was launched so far is done: to be read when that is."""

    def release(self, name: str) -> None:
        """Releases what was made here, or opened here, and is not used any more."""


def of(device: str, folder: Path) -> SharedMemory:
    """`folder`: where files lie."""
    return _Gpu() if device == "cuda" else _Files(folder)


class _Files:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make(self, size: int) -> tuple[str, Any]:
        name = f"shared-{secrets.token_hex(8)}"
        number = os.open(self._folder / name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        os.ftruncate(number, size)
        return name, _mapped(number, size)

    def open(self, name: str, size: int) -> Any:
        if "/" in name:
            raise ValueError("the name of shared memory leads elsewhere")
        try:
            number = os.open(self._folder / name, os.O_RDWR | os.O_NOFOLLOW)
        except OSError as error:
            raise ValueError(f"shared memory can't be opened: {error.strerror}") from None
        if os.fstat(number).st_size < size:
            os.close(number)
            raise ValueError("shared memory is smaller than it was said to be")
        return _mapped(number, size)

    def write(self, flat: Any, at: int, content: bytes) -> None:
        import torch

        flat[at : at + len(content)] = torch.frombuffer(bytearray(content), dtype=torch.uint8)

    def take(self, address: int, count: int) -> Callable[[], bytes]:
        taken = ctypes.string_at(address, count)
        return lambda: taken

    def release(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)


def _mapped(number: int, size: int) -> Any:
    import torch

    content = mmap.mmap(number, size)
    os.close(number)
    return torch.frombuffer(content, dtype=torch.uint8)


class _Handle(ctypes.Structure):
    """CUipcMemHandle."""

    _fields_ = (("reserved", ctypes.c_ubyte * 64),)


class _Gpu:
    """Shared memory of a GPU, in the context that torch uses."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._driver.cuIpcOpenMemHandle_v2.argtypes = [ctypes.c_void_p, _Handle, ctypes.c_uint]
        self._opened: dict[str, ctypes.c_uint64] = {}
        self._made: dict[str, ctypes.c_uint64] = {}
        self._at = 0

    @functools.cached_property
    def _pinned(self) -> int:
        address = ctypes.c_void_p()
        if self._driver.cuMemAllocHost_v2(ctypes.byref(address), ctypes.c_size_t(PINNED)):
            raise MemoryError("no memory of the host can be given to the GPU")
        return address.value or 0

    def make(self, size: int) -> tuple[str, Any]:
        address, handle = ctypes.c_uint64(), _Handle()
        code = self._driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
        if code:
            raise MemoryError(f"the GPU has no {size:,} bytes more (CUDA error {code})")
        code = self._driver.cuIpcGetMemHandle(ctypes.byref(handle), address)
        if code:
            raise MemoryError(f"memory of the GPU can't be shared (CUDA error {code})")
        name = bytes(handle.reserved).hex()
        self._made[name] = address
        return name, _tensor(address.value, size)

    def open(self, name: str, size: int) -> Any:
        content = bytes.fromhex(name)
        if len(content) != ctypes.sizeof(_Handle):
            raise ValueError("the name of shared memory has another length")
        if name not in self._opened:
            address = ctypes.c_uint64()
            handle = _Handle.from_buffer_copy(content)
            code = self._driver.cuIpcOpenMemHandle_v2(ctypes.byref(address), handle, 1)
            if code:
                raise ValueError(f"shared memory can't be opened (CUDA error {code})")
            self._opened[name] = address
        address, whole = self._opened[name], ctypes.c_size_t()
        self._driver.cuMemGetAddressRange_v2(None, ctypes.byref(whole), address)
        if whole.value < size:
            raise ValueError("shared memory is smaller than it was said to be")
        return _tensor(address.value, size)

    def write(self, flat: Any, at: int, content: bytes) -> None:
        # From memory that the GPU reads itself, in the order of the stream: nobody waits.
        here = self._room(len(content))
        ctypes.memmove(here, content, len(content))
        to, size = ctypes.c_uint64(flat.data_ptr() + at), ctypes.c_size_t(len(content))
        self._driver.cuMemcpyHtoDAsync_v2(to, ctypes.c_void_p(here), size, None)

    def take(self, address: int, count: int) -> Callable[[], bytes]:
        here, size = self._room(count), ctypes.c_size_t(count)
        self._driver.cuMemcpyDtoHAsync_v2(
            ctypes.c_void_p(here), ctypes.c_uint64(address), size, None
        )
        return lambda: ctypes.string_at(here, count)

    def _room(self, count: int) -> int:
        if self._at + count > PINNED:
            self._at = 0
        here, self._at = self._pinned + self._at, self._at + count
        return here

    def release(self, name: str) -> None:
        if address := self._opened.pop(name, None):
            self._driver.cuIpcCloseMemHandle(address)
        if address := self._made.pop(name, None):
            self._driver.cuMemFree_v2(address)


class _DeviceBytes:
    """An object that torch takes for an array of bytes."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 2,
        }


def _tensor(address: int, size: int) -> Any:
    import torch

    return torch.as_tensor(_DeviceBytes(address, size), device="cuda")


SAMPLED = 1024
"""Bytes of it."""
STEP = 16


def place(answer: Any, number: int) -> tuple[Any, int, int] | None:
    """A tensor of it, the first byte and how many, by a number drawn by chance; None: it has none
    whose bytes lie together."""
    tensors = [tensor for tensor in wire.tensors(answer) if tensor.numel()]
    if not tensors:
        return None
    number, which = divmod(number, len(tensors))
    tensor = tensors[which]
    if not tensor.is_contiguous() and wire.memory(tensor) is None:
        return None
    count = min(SAMPLED, tensor.nbytes)
    return tensor, STEP * (number % (1 + (tensor.nbytes - count) // STEP)), count


def content(answer: Any, number: int) -> bytes:
    """Its bytes."""
    found = place(answer, number)
    if found is None:
        return b""
    tensor, at, count = found
    return bytes(wire.memory(tensor)[at : at + count].cpu().numpy().tobytes())
