"""torch without a GPU, for code that asks for one: what is on `cuda` lies in the CPU's memory.

In a solution's process that memory is managed by the emulator's CUDA runtime, so that kernels reach
it; in a problem's it is plain.
"""

from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import Any


def manage_memory(library: Path) -> None:
    """Puts tensors in memory of the CUDA runtime from here on."""
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL).kx_manage()


def install(synchronize: Any = None) -> None:
    """Replaces the GPU in this process; `synchronize` is called where a program waits for it."""
    import torch
    from torch.overrides import TorchFunctionMode

    class _OnCpu(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is torch.device:
                return func(*args, **(kwargs or {}))
            given = {name: _device(value) for name, value in (kwargs or {}).items()}
            return func(*map(_device, args), **given)

    _OnCpu().__enter__()
    wait = synchronize or (lambda: None)
    _patch_tensor(torch)
    _patch_modules(torch, wait)
    torch.Generator = _generator(torch.Generator)


def _generator(own: Any) -> Any:
    """A class, which annotations name too."""

    class Generator(own):  # type: ignore[misc]
        def __new__(cls, device: Any = None) -> Any:
            return own.__new__(own)

    return Generator


def _device(value: Any) -> Any:
    import torch

    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


def _patch_tensor(torch: Any) -> None:
    def same(self: Any, *_: Any, **__: Any) -> Any:
        return self

    torch.Tensor.cuda = same
    torch.Tensor.is_cuda = property(lambda self: True)
    torch.nn.Module.cuda = same
    torch.Tensor.device = property(lambda self: torch.device("cuda", 0))


def _patch_modules(torch: Any, wait: Any) -> None:
    """Patches what programs call of torch.cuda; times are those of no GPU, and not a number."""

    class Event:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.at = 0.0

        def record(self, *_: Any) -> None:
            self.at = time.perf_counter()

        def synchronize(self) -> None:
            wait()

        def elapsed_time(self, _: Any) -> float:
            return float("nan")

    class Stream:
        cuda_stream = 0

        def __init__(self, *_: Any, **__: Any) -> None: ...

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None: ...

        def synchronize(self) -> None:
            wait()

        wait_stream = wait_event = record_event = lambda self, *_: None

    cuda = torch.cuda
    cuda.is_available = lambda: True
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    cuda.set_device = lambda *_: None
    cuda.synchronize = lambda *_: wait()
    cuda.empty_cache = lambda: None
    cuda.manual_seed = cuda.manual_seed_all = lambda *_: None
    cuda.get_device_capability = lambda *_: (9, 0)
    cuda.get_device_name = lambda *_: "NVIDIA H200 (emulated)"
    cuda.current_stream = cuda.default_stream = lambda *_: Stream()
    cuda.stream = lambda *_: Stream()
    cuda.device = lambda *_: Stream()
    cuda.Event, cuda.Stream = Event, Stream
