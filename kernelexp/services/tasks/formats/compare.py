"""Whether two answers agree: the structure, types, shapes, then each element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

SHOWN = 3
LARGEST_SHARE = 0.1
"""Of the reference's size, which an absolute tolerance is not to exceed: where it does, as with the
softmax of a long row, zeros would be right."""


class Errors(msgspec.Struct, kw_only=True):
    """The largest of all tensors that were compared."""

    absolute: float = 0.0
    relative: float = 0.0
    """Of elements that are not 0 in the reference."""
    wrong: int = 0
    elements: int = 0


def disagreement(
    expected: Any, actual: Any, rtol: float, atol: float, errors: Errors, *, dtypes: bool = True
) -> str:
    """The first difference in a sentence; empty where all of it agrees.

    A NaN agrees with a NaN only, an infinity with the same one only, so that neither can hide in a
    tolerance.
    """
    wanted, given = list(_leaves(expected)), list(_leaves(actual))
    if len(wanted) != len(given):
        return f"{len(given)} values came back where the reference gives {len(wanted)}."
    for (name, one), (_, other) in zip(wanted, given, strict=True):
        sentence = _of_values(name, one, other, rtol, atol, errors, dtypes)
        if sentence:
            return sentence
    return ""


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{name}[{index}]")
    else:
        yield name or "the result", value


def _of_values(
    name: str, one: Any, other: Any, rtol: float, atol: float, errors: Errors, dtypes: bool
) -> str:
    import torch

    if not isinstance(one, torch.Tensor):
        return "" if one == other else f"{name} is {other!r}; the reference gives {one!r}."
    if not isinstance(other, torch.Tensor):
        return f"{name} is no tensor but {type(other).__name__}."
    if one.shape != other.shape:
        return f"{name} has shape {tuple(other.shape)}; the reference has {tuple(one.shape)}."
    if dtypes and one.dtype != other.dtype:
        return f"{name} has type {_word(other.dtype)}; the reference has {_word(one.dtype)}."
    return _of_elements(name, one, other, rtol, atol, errors)


def _word(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _of_elements(name: str, one: Any, other: Any, rtol: float, atol: float, errors: Errors) -> str:
    import torch

    wide = torch.complex128 if one.is_complex() else torch.float64
    left, right = one.to(wide).reshape(-1), other.to(wide).reshape(-1)
    same = (left == right) | (left.isnan() & right.isnan())
    both = left.isfinite() & right.isfinite() & ~same
    distance = (left - right).abs().where(both, torch.zeros((), dtype=torch.float64))
    allowed = min(atol, LARGEST_SHARE * _size(left)) + rtol * left.abs()
    bad = ~(same | (both & (distance <= allowed)))
    if left.numel():
        errors.absolute = max(errors.absolute, float(distance.max()))
        relative = (distance / left.abs()).where(both & (left != 0), torch.zeros_like(distance))
        errors.relative = max(errors.relative, float(relative.max()))
    errors.elements += left.numel()
    errors.wrong += int(bad.sum())
    return _spelled(name, one, other, bad) if bool(bad.any()) else ""


def _size(values: Any) -> float:
    """The root of the mean square of those that are finite."""
    finite = values[values.isfinite()].abs()
    return float((finite**2).mean() ** 0.5) if finite.numel() else 0.0


def _spelled(name: str, one: Any, other: Any, bad: Any) -> str:
    first = [int(index) for index in bad.nonzero().reshape(-1)[:SHOWN]]
    spots = "; ".join(
        f"{_index(one.shape, at)} is {other.reshape(-1)[at].item():.6g}, "
        f"not {one.reshape(-1)[at].item():.6g}"
        for at in first
    )
    return f"{int(bad.sum()):,} of {bad.numel():,} elements of {name} are wrong: {spots}."


def _index(shape: Any, at: int) -> str:
    places = []
    for size in reversed(tuple(shape)):
        places.append(at % size)
        at //= size
    return f"[{', '.join(map(str, reversed(places)))}]"
