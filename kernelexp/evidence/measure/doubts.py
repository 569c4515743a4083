"""Reasons why being right against a problem.py may say little: its inputs, its tolerance."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kernelexp.evidence.measure.tensors import as_bytes, torch_dtype
from kernelexp.model.problem import Array, Problem, Size, Tensors, Tolerance

if TYPE_CHECKING:
    import torch

_MANY = 2
"""Elements from which on an array that holds one value throughout is no scalar."""
_ROUNDINGS, _MOST = 4096, 0.25
"""A relative tolerance up to so many roundings of the coarsest type is not doubted, nor beyond."""


def find(
    problem: Problem,
    size: Size,
    seed: int,
    inputs: Tensors,
    outputs: Mapping[str, Array],
    tolerance: Tolerance,
    code: str,
) -> Iterator[str]:
    """Clauses; `inputs` were drawn with `seed`. `code` is the kernel's PTX or SASS, whose matrix
    instructions may round operands to coarser types than arrays have."""
    arrays = {name: tensor for name, tensor in inputs.items() if tensor.numel() >= _MANY}
    if arrays and all(map(_is_constant, arrays.values())):
        values = ", ".join(f"{name} is {_first(tensor)}" for name, tensor in arrays.items())
        yield f"every element of an input is the same ({values})"
    elif arrays and _ignores_seed(problem, size, seed, arrays):
        yield "inputs() gives the same values for every seed, so that a kept result would be right"
    types = [tensor.dtype for tensor in inputs.values()]
    types += [torch_dtype(array.dtype) for array in outputs.values()]
    if not any(kind.is_floating_point for kind in types):
        return
    limit = min(_MOST, _ROUNDINGS * max(*map(_rounding, types), _of_matrices(code)))
    if tolerance.rtol > limit:
        yield (
            f"a relative tolerance of {tolerance.rtol:g} is more than {limit:.2g}, which the types "
            "of its arrays explain"
        )


def _is_constant(tensor: torch.Tensor) -> bool:
    flat = tensor.reshape(-1)
    return bool((as_bytes(flat) == as_bytes(flat[:1]).repeat(len(flat))).all())


def _first(tensor: torch.Tensor) -> str:
    value = tensor.reshape(-1)[0].item()
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _ignores_seed(problem: Problem, size: Size, seed: int, first: Tensors) -> bool:
    import torch

    other = problem.inputs(size, seed + 1, "cpu")
    return all(
        name in other
        and other[name].shape == tensor.shape
        and torch.equal(as_bytes(other[name]), as_bytes(tensor))
        for name, tensor in first.items()
    )


def _rounding(dtype: torch.dtype) -> float:
    """Returns the relative error of rounding a value to the type; 0 for an integer."""
    import torch

    return torch.finfo(dtype).eps / 2 if dtype.is_floating_point else 0.0


_MATRIX = re.compile(r"\b(?:w?mma|wgmma|tcgen05\.mma|[HQ]G?MMA)\.[\w.:]+")
_MANTISSAS = {"tf32": 10, "f16": 10, "bf16": 7, "e4m3": 3, "e5m2": 2}


def _of_matrices(code: str) -> float:
    """Returns the relative error of rounding an operand to the coarsest type of the matrix
    instructions; 0 without any."""
    words = {word for match in set(_MATRIX.findall(code)) for word in re.split(r"[.:]+", match)}
    bits = [bits for kind, bits in _MANTISSAS.items() if {kind, kind.upper()} & words]
    return 2.0 ** -(min(bits) + 1) if bits else 0.0
