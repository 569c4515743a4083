"""A problem's arrays as torch tensors: allocated, drawn twice, checked by name, fingerprinted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernelexp.model.errors import ConfigurationError
from kernelexp.model.problem import Array, Problem, Size, Tensors
from warpsim.dtypes import TORCH_NAMES, DType

if TYPE_CHECKING:
    import torch

# All bits set is a NaN in every floating-point type of DType, and one that no instruction makes;
# integers have no NaN.
POISON = 0xFF
WORDS = 1 << 22


def torch_dtype(dtype: DType) -> torch.dtype:
    """The torch type of an array's elements."""
    import torch

    torch_type: torch.dtype = getattr(torch, TORCH_NAMES[dtype])
    return torch_type


def is_integral(dtype: torch.dtype) -> bool:
    """Whether elements have no NaN."""
    return not (dtype.is_floating_point or dtype.is_complex)


def is_long(dtype: torch.dtype) -> bool:
    """Whether float64 rounds its integers."""
    return is_integral(dtype) and dtype.itemsize == 8


def allocate(
    arrays: Mapping[str, Array], inputs: Tensors = MappingProxyType({})
) -> dict[str, torch.Tensor]:
    """Arrays on the CPU as they are before a launch: poison, zero, or a copy of the input of the
    same name."""
    import torch

    tensors = {}
    for name, array in arrays.items():
        dtype = torch_dtype(array.dtype)
        size = math.prod(array.shape) * dtype.itemsize
        raw = torch.full((size,), 0 if array.zero else POISON, dtype=torch.uint8)
        tensors[name] = raw.view(dtype).view(array.shape)
        if name in inputs:
            tensors[name].copy_(inputs[name])
    return tensors


def as_numbers(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs along a last dimension of their own, booleans as bytes."""
    import torch

    if tensor.is_complex():
        return torch.view_as_real(tensor)
    return tensor.view(torch.uint8) if tensor.dtype == torch.bool else tensor


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor's memory, one element per byte."""
    import torch

    return tensor.reshape(-1).view(torch.uint8)


def draw_inputs(problem: Problem, size: Size, seed: int, device: str) -> tuple[Tensors, Tensors]:
    """The inputs twice, in memory of their own; ConfigurationError where they differ."""
    one = problem.inputs(size, seed, device)
    return one, draw_again(problem, size, seed, device, one)


def draw_again(problem: Problem, size: Size, seed: int, device: str, first: Tensors) -> Tensors:
    """The inputs once more; ConfigurationError where they are not those drawn first."""
    import torch

    again = problem.inputs(size, seed, device)
    for name, tensor in first.items():
        other = again.get(name)
        alike = other is not None and other.shape == tensor.shape and other.dtype == tensor.dtype
        if other is None or not alike or not torch.equal(as_bytes(tensor), as_bytes(other)):
            raise ConfigurationError(
                f"{problem.name}: inputs() gives other values of {name!r} when it is called again "
                "with the same seed: draw them from torch.Generator(device).manual_seed(seed)."
            )
    return again


def check_names(
    problem: Problem,
    inputs: Tensors,
    given: Tensors,
    outputs: Mapping[str, Array],
    workspaces: Mapping[str, Array],
) -> None:
    """ConfigurationError where two arrays of a launch have one name and are not the same.

    An output may have the name of an input, whose values it then starts with; `given` are the
    inputs as arrange() returns them for a variant.
    """
    for name in workspaces:
        if name in given or name in outputs:
            kind = "an output" if name in outputs else "an input"
            raise ConfigurationError(
                f"{problem.name}: {name!r} is a workspace and {kind}: give the workspace another "
                "name."
            )
    for name, array in outputs.items():
        if name in given and name not in inputs:
            raise ConfigurationError(
                f"{problem.name}: {name!r} is an output that arrange() returns: what is read and "
                "written comes from inputs()."
            )
        if name in given:
            _check_start(problem, name, array, inputs[name], given[name])


def _check_start(
    problem: Problem, name: str, array: Array, start: torch.Tensor, given: torch.Tensor
) -> None:
    """Whether an output can start as the input of its name."""
    if given.data_ptr() != start.data_ptr():
        raise ConfigurationError(
            f"{problem.name}: arrange() changes {name!r}, which is read and written: every variant "
            "gets it as inputs() gives it."
        )
    if array.zero:
        raise ConfigurationError(
            f"{problem.name}: {name!r} is an input, and outputs() says that it starts as zero: "
            "leave out one of them."
        )
    if tuple(start.shape) != array.shape or start.dtype != torch_dtype(array.dtype):
        kind = str(start.dtype).removeprefix("torch.")
        raise ConfigurationError(
            f"{problem.name}: {name!r} is read and written, so inputs() and outputs() should agree "
            f"on it: {kind} {list(start.shape)}, and {array.dtype} {list(array.shape)}."
        )


def fingerprint(tensor: torch.Tensor) -> int:
    """A 64-bit hash of a contiguous tensor's bytes and of their order.

    Each 8-byte word is mixed with its position, then all are added up: whatever is overwritten,
    exchanged or moved changes it, but for one chance in 2^64. It is no cryptographic hash: it does
    not defend against a kernel that searches for a collision, nor against one that restores what
    it changed.
    """
    import torch

    raw = as_bytes(tensor)
    whole = raw.numel() // 8 * 8
    total = sum(int(byte) << 8 * place for place, byte in enumerate(raw[whole:].tolist()))
    words = raw[:whole].view(torch.int64)
    for first in range(0, words.numel(), WORDS):
        piece = words[first : first + WORDS]
        places = torch.arange(first, first + piece.numel(), device=raw.device)
        total += int(_mix(piece + places * -0x61C8864680B583EB).sum())
    return total % (1 << 64)


def _mix(x: torch.Tensor) -> torch.Tensor:
    """The finaliser of splitmix64, with shifts that fill with zeros."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        x = (x ^ (x >> shift & (1 << 64 - shift) - 1)) * factor
    return x ^ (x >> 31 & (1 << 33) - 1)
