"""Values for processes that don't trust each other, in files or in shared memory: JSON and plain
bytes, no pickles."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernelexp.model.errors import UsageError

TENSOR, TUPLE, NUMBER = "tensor", "tuple", "number"
ALIGNED = 256
"""Bytes at which each tensor begins, in memory as cudaMalloc's."""
LONGEST = 4 << 30
"""Bytes of all tensors in a file."""
STACKED = 4 << 20
"""Bytes up to which tensors are put together to be summed: four of each of 175 answers took 80 us
an answer on an H100, when each was summed and waited for by itself."""


def write(path: Path, value: Any) -> None:
    """Writes `path`.json and `path`.bin; UsageError for what is neither a tensor nor plain data."""
    with path.with_suffix(".bin").open("wb") as file:
        tree = _encoded(value, lambda tensor: _store(tensor, file))
    path.with_suffix(".json").write_text(json.dumps(tree))


def read(path: Path, device: str = "cpu") -> Any:
    """Reads what write() wrote; ValueError where that is not what the files hold."""
    content = _content(path.with_suffix(".bin"))
    tree = json.loads(path.with_suffix(".json").read_text())
    return _decoded(tree, lambda leaf: _restore(leaf, content, device))


def layout(value: Any) -> tuple[Any, int]:
    """A value as JSON, its tensors by where they lie in memory of so many bytes; as write()."""
    size = 0

    def place(tensor: Any) -> dict[str, Any]:
        nonlocal size
        at = size
        strides = _dense_strides(tensor)
        size += -(-_reach(tensor.shape, strides) * tensor.element_size() // ALIGNED) * ALIGNED
        return {**_described(tensor), "strides": strides, "at": at}

    tree = _encoded(value, place)
    return tree, max(size, ALIGNED)


def views(tree: Any, flat: Any) -> Any:
    """The value of a layout, whose tensors lie in `flat`; ValueError where they leave it."""
    return _decoded(tree, lambda leaf: _view(leaf, flat))


def fill(tree: Any, flat: Any, value: Any) -> None:
    """Copies the tensors of a value to where its layout has them."""
    for to, tensor in zip(tensors(views(tree, flat)), tensors(value), strict=True):
        to.copy_(tensor.detach())


def places(tree: Any) -> list[int]:
    """The byte at which each tensor of a layout begins, in their order."""
    offsets: list[int] = []
    _decoded(tree, lambda leaf: offsets.append(int(leaf["at"])))
    return offsets


def memory(tensor: Any) -> Any:
    """A tensor's bytes in the order of its layout; None where the layout has another."""
    import torch

    strides = _dense_strides(tensor)
    if not tensor.numel() or strides != list(tensor.stride()):
        return None
    reach = _reach(tensor.shape, strides)
    return tensor.detach().as_strided((reach,), (1,)).view(torch.uint8)


def _view(leaf: dict[str, Any], flat: Any) -> Any:
    dtype, shape, at = _parsed(leaf)
    strides = [int(stride) for stride in leaf["strides"]]
    size = _reach(shape, strides) * dtype.itemsize
    if min([0, *strides]) < 0 or len(strides) != len(shape) or at + size > flat.numel():
        raise ValueError("a tensor leaves its memory")
    return flat[at : at + size].view(dtype).as_strided(shape, strides)


def _reach(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to the last."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def _dense_strides(tensor: Any) -> list[int]:
    """A tensor's own strides; those of a contiguous one where its elements overlap or are apart."""
    import torch

    strides = list(tensor.stride())
    dense = min([1, *strides]) >= 1 and _reach(tensor.shape, strides) <= 4 * tensor.numel()
    if dense and not torch._debug_has_internal_overlap(tensor):
        return strides
    return list(torch.empty(tensor.shape, device="meta").stride())


def _content(path: Path) -> bytearray:
    """Read once into its place: inputs of 64 MB are read for each call that is timed."""
    size = path.stat().st_size
    if size > LONGEST:
        raise ValueError("the tensors are too large")
    content = bytearray(size)
    with path.open("rb", buffering=0) as file:
        at = 0
        while part := file.readinto(memoryview(content)[at:]):
            at += part
    return content


def tensors(value: Any) -> list[Any]:
    """Those within a value, in their order."""
    import torch

    gathered: list[Any] = []
    _gather(value, torch.Tensor, gathered)
    return gathered


def _gather(value: Any, kind: type, gathered: list[Any]) -> None:
    if isinstance(value, kind):
        gathered.append(value)
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            _gather(item, kind, gathered)


def is_plain(value: Any) -> bool:
    """Whether to look at it runs no code but Python's and torch's own."""
    import torch

    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return not value.__dict__
    if kind is dict:
        return all(map(is_plain, value.values()))
    if kind is list or kind is tuple:
        return all(map(is_plain, value))
    return value is None or kind in (bool, int, float, str)


def copied(value: Any) -> Any:
    """Copies values to other memory."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    return type(value)(map(copied, value)) if isinstance(value, list | tuple) else value


def digest(value: Any) -> int:
    """Returns a digest of all tensors' bytes, on their device; whoever has it has the answer."""
    return digests([value])[0]


def digests(values: Sequence[Any]) -> list[int]:
    """Returns the digest of each value: all are queued before one is waited for, those that are
    alike together."""
    rows = [[tensor for tensor in tensors(value) if tensor.numel()] for value in values]
    if len(rows) > 1 and rows[0] and all(_alike(row, rows[0]) for row in rows):
        columns = [_column(column) for column in zip(*rows, strict=True)]
        return [sum(totals) for totals in zip(*(one.tolist() for one in columns), strict=True)]
    sums = [[_sum(_plain(tensor)) for tensor in row] for row in rows]
    return [sum(int(total) for total in totals) for totals in sums]


def _alike(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.device == b.device and a.shape == b.shape
        for a, b in zip(one, other, strict=True)
    )


def _column(tensors: Sequence[Any]) -> Any:
    """Sums of tensors that are alike."""
    import torch

    if tensors[0].nbytes > STACKED:
        return torch.stack([_sum(_plain(tensor)) for tensor in tensors])
    stacked = torch.stack(tensors).detach().reshape(len(tensors), -1).view(torch.uint8)
    return _sum(stacked if stacked.shape[1] % 8 else stacked.view(torch.int64))


def _plain(tensor: Any) -> Any:
    import torch

    plain = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    # Of 64 bits, which are summed as they are: others are first copied to that type.
    return plain if plain.numel() % 8 else plain.view(torch.int64)


def _sum(plain: Any) -> Any:
    import torch

    return plain.sum(-1, dtype=torch.int64)


def _encoded(value: Any, store: Callable[[Any], dict[str, Any]]) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return {TENSOR: store(value)}
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return {NUMBER: value.hex()}
    if isinstance(value, list):
        return [_encoded(item, store) for item in value]
    if isinstance(value, tuple):
        return {TUPLE: [_encoded(item, store) for item in value]}
    if isinstance(value, dict):
        return {"mapping": [[str(key), _encoded(item, store)] for key, item in value.items()]}
    raise UsageError(
        f"a value of type {type(value).__name__} can't be handed to another process: tensors, "
        "numbers, texts, lists, tuples and mappings can."
    )


def _described(tensor: Any) -> dict[str, Any]:
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}


def _store(tensor: Any, file: Any) -> dict[str, Any]:
    import torch

    plain = tensor.detach().cpu().contiguous()
    at = file.tell()
    flat = plain.reshape(-1).view(torch.uint8) if plain.numel() else plain.new_empty(0)
    file.write(memoryview(flat.numpy()) if plain.numel() else b"")
    return {**_described(tensor), "strides": list(tensor.stride()), "at": at}


def _decoded(tree: Any, restore: Callable[[dict[str, Any]], Any]) -> Any:
    if isinstance(tree, list):
        return [_decoded(item, restore) for item in tree]
    if not isinstance(tree, dict):
        return tree
    (kind, inner), *rest = tree.items()
    if rest:
        raise ValueError("more than one kind of value")
    if kind == TENSOR:
        return restore(inner)
    if kind == TUPLE:
        return tuple(_decoded(item, restore) for item in inner)
    if kind == NUMBER:
        return float.fromhex(inner)
    return {key: _decoded(item, restore) for key, item in inner}


def _parsed(leaf: dict[str, Any]) -> tuple[Any, list[int], int]:
    """Type, shape, and place of a tensor."""
    import torch

    dtype = getattr(torch, str(leaf["dtype"]), None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{leaf['dtype']} is not a type of elements")
    shape, at = [int(size) for size in leaf["shape"]], int(leaf["at"])
    if min([at, *shape]) < 0:
        raise ValueError("a tensor leaves its file")
    return dtype, shape, at


def _restore(leaf: dict[str, Any], content: bytearray, device: str) -> Any:
    import torch

    dtype, shape, at = _parsed(leaf)
    count = math.prod(shape)
    if at + count * dtype.itemsize > len(content):
        raise ValueError("a tensor leaves its file")
    if count == 0:
        return torch.empty(shape, dtype=dtype, device=device)
    result = torch.frombuffer(content, dtype=torch.uint8, count=count * dtype.itemsize, offset=at)
    own = result.clone() if device == "cpu" else result.to(device)
    plain = own.view(dtype).reshape(shape)
    return _strided(plain, [int(stride) for stride in leaf["strides"]])


def _strided(plain: Any, strides: list[int]) -> Any:
    """Restores its strides, as after a transposition; not where elements would overlap."""
    import torch

    if list(plain.stride()) == strides or len(strides) != plain.dim():
        return plain
    reach = _reach(plain.shape, strides)
    dense = min(strides) >= 1 and plain.numel() <= reach <= 4 * plain.numel()
    if not dense or torch._debug_has_internal_overlap(plain.as_strided((1,), (1,))):
        return plain
    result = torch.empty_strided(
        tuple(plain.shape), tuple(strides), dtype=plain.dtype, device=plain.device
    )
    return result.copy_(plain)
