"""PyTorch's "cuda" device where there is none: its tensors lie in the CPU's memory.

A script that asks for `device="cuda"`, `.cuda()` or `torch.cuda.is_available()` runs as it is.
PyTorch computes on the CPU; tensors know that they are meant to be on the device, and what is made
of them is too. `.cpu()` and `.to("cuda")` copy between the two, as with a device.

Memory that `torch.empty` gives out is filled with a mark of 8 bytes: wherever it still stands, also
after a copy, nobody has written.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

UNWRITTEN = bytes.fromhex("a5ff93ffb7ffc9ff")
"""Not-a-number in each of PyTorch's types of floating point; nothing computes this one."""


def install(runtime: Callable[[], Any]) -> None:
    """For the rest of the process. `runtime` makes the emulator's CUDA runtime."""
    import torch
    from torch.overrides import TorchFunctionMode

    class OnCpu(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return _Call(torch, function, args, dict(kwargs or {})).result()

    OnCpu().__enter__()
    own = vars(torch.cuda).copy()
    _replace_module(torch, runtime)
    _wrap_compile(torch, own)


@functools.cache
def _say() -> None:
    print(
        "note: there is no CUDA device: tensors on \"cuda\" lie in the CPU's memory, and PyTorch's "
        "own operations are computed there.",
        file=sys.stderr,
    )


class _State:
    default = False
    """Whether tensors are made on the device unless a call says otherwise."""


_FILLS = frozenset(["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"])
_MAKES = frozenset(
    "empty empty_strided zeros ones full rand randn randint randperm arange linspace logspace eye "
    "tensor as_tensor scalar_tensor".split()
)


class _Call:
    """A call of PyTorch's, with devices that there are."""

    def __init__(self, torch: Any, function: Any, args: Any, kwargs: dict[str, Any]) -> None:
        self._torch, self._function, self._args, self._kwargs = torch, function, args, kwargs
        self._name = getattr(function, "__name__", "")
        self._owner = getattr(getattr(function, "__self__", None), "__name__", "")
        self._own: Any = args[0] if args and isinstance(args[0], torch.Tensor) else None

    def result(self) -> Any:
        if self._name in ("__get__", "__set__"):
            return self._attribute()
        if self._own is not None:
            if self._name == "cuda":
                return self._moved(to_device=True)
            if self._name == "cpu":
                return self._moved(to_device=False)
            if self._name == "to":
                return self._to()
            if self._name == "get_device" and on_device(self._own):
                return 0
            if self._name == "is_pinned":
                return False
            if self._name == "pin_memory":
                return self._own
        self._kwargs.pop("pin_memory", None)
        asked = self._kwargs.get("device")
        if _is_cuda(asked):
            self._kwargs["device"] = "cpu"
        result = self._function(*self._args, **self._kwargs)
        if self._name in _FILLS:
            _mark(self._torch, result)
        if asked is None:
            made = _State.default and self._name in _MAKES
            here = made or any(map(on_device, _tensors(self._torch, [self._args, self._kwargs])))
        else:
            here = _is_cuda(asked)
        return self._put(result) if here else result

    def _attribute(self) -> Any:
        """Of a tensor: what it says of its device."""
        result = self._function(*self._args, **self._kwargs)
        here = self._own is not None and on_device(self._own)
        if self._name == "__set__":
            if self._owner == "data" and any(map(on_device, _tensors(self._torch, self._args[1:]))):
                self._put(self._own)
            return result
        if not here:
            return result
        if self._owner == "device":
            return self._torch.device("cuda", 0)
        if self._owner in ("is_cuda", "is_cpu"):
            return self._owner == "is_cuda"
        return self._put(result)

    def _to(self) -> Any:
        """Tensor.to: a device, a type, or another tensor, in any order."""
        given = [*self._args[1:], *self._kwargs.values()]
        wanted = next((on_device(x) for x in given if isinstance(x, self._torch.Tensor)), None)
        for item in given:
            if isinstance(item, str | self._torch.device) or type(item) is int:
                wanted = _is_cuda(item)
        names = ("device", "other")
        args = [_on_cpu(item) for item in self._args]
        kwargs = {k: _on_cpu(v) if k in names else v for k, v in self._kwargs.items()}
        result = self._function(*args, **kwargs)
        here = on_device(self._own)
        if wanted is None or wanted == here:
            return self._put(result) if here else result
        if result is self._own:
            result = result.clone()
        return self._put(result, wanted)

    def _moved(self, *, to_device: bool) -> Any:
        if on_device(self._own) == to_device:
            return self._own
        return self._put(self._own.clone(), to_device)

    def _put(self, result: Any, here: bool = True) -> Any:
        return _put(self._torch, result, here)


def _put(torch: Any, result: Any, here: bool = True) -> Any:
    """Notes where tensors lie."""
    if here:
        _say()
    for tensor in _tensors(torch, result):
        tensor._on_cuda = here
    return result


def on_device(tensor: Any) -> bool:
    return bool(getattr(tensor, "__dict__", {}).get("_on_cuda"))


def _is_cuda(device: Any) -> bool:
    return type(device) is int or str(device).split(":")[0] == "cuda"


def _on_cpu(item: Any) -> Any:
    asks = type(item).__name__ == "device" or isinstance(item, str) or type(item) is int
    return "cpu" if asks and _is_cuda(item) else item


def _tensors(torch: Any, item: Any) -> Iterator[Any]:
    if isinstance(item, torch.Tensor):
        yield item
    elif isinstance(item, list | tuple):
        for part in item:
            yield from _tensors(torch, part)
    elif isinstance(item, dict):
        yield from _tensors(torch, list(item.values()))


# ---- Memory that nobody wrote


def _mark(torch: Any, tensor: Any) -> None:
    """Fills what torch.empty has given out."""
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        return
    octets = _octets(torch, tensor.untyped_storage())
    whole = len(octets) // len(UNWRITTEN) * len(UNWRITTEN)
    octets[:whole].view(torch.int64).fill_(int.from_bytes(UNWRITTEN, "little", signed=True))


def _octets(torch: Any, storage: Any) -> Any:
    return torch.tensor([], dtype=torch.uint8).set_(storage)


def unwritten(tensor: Any) -> list[tuple[int, int]]:
    """Where its storage holds nothing that was written: first byte and the one behind the last, in
    order."""
    import torch

    with torch._C.DisableTorchFunction():
        octets = _octets(torch, tensor.untyped_storage())
        whole = len(octets) // len(UNWRITTEN) * len(UNWRITTEN)
        mark = int.from_bytes(UNWRITTEN, "little", signed=True)
        marked = octets[:whole].view(torch.int64) == mark
        if not bool(marked.any()):
            return []
        steps = torch.diff(marked.to(torch.int8), prepend=torch.zeros(1, dtype=torch.int8))
        begins = (steps == 1).nonzero().flatten().tolist()
        ends = [*(steps == -1).nonzero().flatten().tolist(), len(marked)]
    return [(8 * begin, 8 * end) for begin, end in zip(begins, ends, strict=False)]


# ---- torch.cuda


def _replace_module(torch: Any, runtime: Callable[[], Any]) -> None:
    """What scripts ask of torch.cuda."""
    cuda = torch.cuda

    def nothing(*_args: Any, **_kwargs: Any) -> None:
        """There is nothing to wait for."""

    def properties(_device: Any = None) -> Any:
        known = runtime()
        return types.SimpleNamespace(
            name=known.device_name(),
            major=known.attribute(75),
            minor=known.attribute(76),
            multi_processor_count=known.attribute(16),
            total_memory=known.memory(),
            max_threads_per_multi_processor=known.attribute(39),
            shared_memory_per_block_optin=known.attribute(97),
            shared_memory_per_multiprocessor=known.attribute(81),
            regs_per_multiprocessor=known.attribute(82),
            L2_cache_size=known.attribute(38),
            warp_size=32,
        )

    def capability(device: Any = None) -> tuple[int, int]:
        found = properties(device)
        return found.major, found.minor

    for name in (
        *("synchronize", "set_device", "empty_cache", "init", "ipc_collect", "_lazy_init"),
        *("reset_peak_memory_stats", "reset_max_memory_allocated", "manual_seed_all"),
        *("manual_seed", "_sleep"),
    ):
        setattr(cuda, name, functools.partial(nothing))  # torch._dynamo tells them apart
    for name, value in (
        *(("is_available", True), ("is_initialized", True), ("device_count", 1)),
        *(("current_device", 0), ("is_bf16_supported", True), ("memory_allocated", 0)),
        *(("max_memory_allocated", 0), ("memory_reserved", 0)),
    ):
        setattr(cuda, name, functools.partial(_constant, value))
    cuda.get_device_properties, cuda.get_device_capability = properties, capability
    cuda.get_device_name = lambda _device=None: properties().name
    cuda.Event, cuda.Stream, cuda.device = _Event, _Stream, _Context
    cuda.current_stream = cuda.default_stream = _Stream
    cuda.stream = _Context
    set_default = torch.set_default_device

    def set_default_device(device: Any) -> None:
        _State.default = _is_cuda(device)
        set_default("cpu" if _State.default else device)

    torch.set_default_device = set_default_device


def _wrap_compile(torch: Any, own: dict[str, Any]) -> None:
    """torch.compile traces without what is above: it takes its tensors for the CPU's.

    own: what torch.cuda is without it.
    """
    make = torch.compile

    @contextlib.contextmanager
    def plainly() -> Iterator[None]:
        now = vars(torch.cuda).copy()
        vars(torch.cuda).update(own)
        try:
            with torch.overrides._pop_mode_temporarily():
                yield
        finally:
            vars(torch.cuda).update(now)

    def wrapped(compiled: Any, model: Any) -> Any:
        @functools.wraps(compiled)
        def call(*args: Any, **kwargs: Any) -> Any:
            weights = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
            here = any(map(on_device, _tensors(torch, [args, kwargs, weights])))
            with plainly():
                result = compiled(*args, **kwargs)
            return _put(torch, result) if here else result

        return call

    @functools.wraps(make)
    def compile_model(model: Any = None, **options: Any) -> Any:
        if model is None:
            return functools.partial(compile_model, **options)
        compiled = make(model, **options)
        if not isinstance(model, torch.nn.Module):
            return wrapped(compiled, model)
        compiled.forward = wrapped(compiled.forward, model)
        return compiled

    torch.compile = compile_model


def _constant(value: Any, *_args: Any, **_kwargs: Any) -> Any:
    return value


class _Event:
    """Of CUDA: there is no time between two."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None: ...

    def record(self, *_args: Any) -> None: ...

    def synchronize(self) -> None: ...

    def wait(self, *_args: Any) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, _other: Any) -> float:
        return math.nan


class _Context:
    """A device or a stream that is chosen for a block."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None: ...

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *_: object) -> None: ...


class _Stream(_Context):
    cuda_stream = 0

    def synchronize(self) -> None: ...

    def wait_stream(self, _other: Any) -> None: ...

    def wait_event(self, _event: Any) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        return event or _Event()
