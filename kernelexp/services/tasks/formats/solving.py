"""A .cu file whose host function is called by its C name, with device pointers and plain values."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelexp.model.errors import UsageError
from kernelexp.services.tasks import extensions

_POINTER = "pointer"
_TO_DEVICE, _TO_HOST = 1, 2

Parameter = list[str]
"""Name, C type, and whether it is `in`, `out` or `inout`."""


def spell(name: str, kind: Any, direction: str) -> Parameter:
    """A parameter that a signature describes with types of ctypes."""
    pointer = issubclass(kind, ctypes._Pointer | ctypes.c_void_p)
    return [name, _POINTER if pointer else kind.__name__, direction]


def of_source(source: Path, entry: str, signature: list[Parameter]) -> Callable[..., None]:
    """Compiles a file; the function is called with tensors and values by name, and leaves in the
    tensors what it wrote."""
    library = ctypes.CDLL(str(extensions.compile_shared(source)))
    if not hasattr(library, entry):
        raise UsageError(f'{source.name} does not define extern "C" {entry}().')
    function, runtime = getattr(library, entry), extensions.runtime()
    function.restype = None

    def call(**given: Any) -> None:
        arguments = [(given[name], kind) for name, kind, _ in signature]
        if extensions.on_gpu():  # where tensors lie already
            function(*(_passed(value, kind) for value, kind in arguments))
        else:
            _call(function, runtime, arguments)

    return call


def _call(function: Any, runtime: Any, arguments: list[tuple[Any, str]]) -> None:
    copies: list[tuple[Any, ctypes.c_void_p]] = []
    passed: list[Any] = []
    for value, kind in arguments:
        if kind == _POINTER:
            copies.append((value, _upload(runtime, value)))
            passed.append(copies[-1][1])
        else:
            passed.append(_passed(value, kind))
    function(*passed)
    _require(runtime, runtime.cudaDeviceSynchronize())
    for tensor, address in copies:
        _download(runtime, tensor, address)
        runtime.cudaFree(address)


def _passed(value: Any, kind: str) -> Any:
    if kind == _POINTER:
        return ctypes.c_void_p(value.data_ptr())
    return getattr(ctypes, kind, ctypes.c_size_t)(value)


def _upload(runtime: Any, tensor: Any) -> ctypes.c_void_p:
    address = ctypes.c_void_p()
    plain = tensor.contiguous()
    size = max(1, plain.numel() * plain.element_size())
    _require(runtime, runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)))
    if plain.numel():
        _copy(runtime, address, ctypes.c_void_p(plain.data_ptr()), size, _TO_DEVICE)
    return address


def _download(runtime: Any, tensor: Any, address: ctypes.c_void_p) -> None:
    import torch

    if tensor.numel() == 0:
        return
    plain = torch.empty(tensor.shape, dtype=tensor.dtype)
    size = plain.numel() * plain.element_size()
    _copy(runtime, ctypes.c_void_p(plain.data_ptr()), address, size, _TO_HOST)
    tensor.copy_(plain)


def _copy(runtime: Any, to: Any, source: Any, size: int, kind: int) -> None:
    _require(runtime, runtime.cudaMemcpy(to, source, ctypes.c_size_t(size), kind))


def _require(runtime: Any, error: int) -> None:
    if error:
        runtime.cudaGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"CUDA: {runtime.cudaGetErrorString(error).decode()}")
