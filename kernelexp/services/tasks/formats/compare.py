"""Whether two answers agree: the structure, types, shapes, then each element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

SHOWN = 3
PART = 1 << 26
"""Elements that are compared at once."""
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


def disagreement(expected: Any, actual: Any, rtol: float, atol: float, errors: Errors) -> str:
    """The first difference in a sentence; empty where all of it agrees.

    A NaN agrees with a NaN only, an infinity with the same one only, so that neither can hide in a
    tolerance.
    """
    wanted, given = list(_leaves(expected)), list(_leaves(actual))
    if len(wanted) != len(given):
        return f"{len(given)} values came back where the reference gives {len(wanted)}."
    for (name, one), (_, other) in zip(wanted, given, strict=True):
        sentence = _of_values(name, one, other, rtol, atol, errors)
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


def _of_values(name: str, one: Any, other: Any, rtol: float, atol: float, errors: Errors) -> str:
    import torch

    if not isinstance(one, torch.Tensor):
        return "" if one == other else f"{name} is {other!r}; the reference gives {one!r}."
    if not isinstance(other, torch.Tensor):
        return f"{name} is not a tensor but {type(other).__name__}."
    if one.shape != other.shape:
        return f"{name} has shape {tuple(other.shape)}; the reference has {tuple(one.shape)}."
    if one.dtype != other.dtype:
        return f"{name} has type {_word(other.dtype)}; the reference has {_word(one.dtype)}."
    return _of_elements(name, one, other, rtol, atol, errors)


def _word(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _of_elements(name: str, one: Any, other: Any, rtol: float, atol: float, errors: Errors) -> str:
    """Part by part: in double precision a whole tensor may be too large for its GPU."""
    left, right = one.reshape(-1), other.reshape(-1)
    atol = min(atol, LARGEST_SHARE * _size(left)) if left.numel() else atol
    count = 0
    spots: list[int] = []
    for at in range(0, left.numel(), PART):
        part = left[at : at + PART], right[at : at + PART]
        bad = _wrong(*part, rtol, atol, errors)
        count += int(bad.sum())
        spots += [at + int(index) for index in bad.nonzero().reshape(-1)[: SHOWN - len(spots)]]
    errors.elements += left.numel()
    errors.wrong += count
    if not count:
        return ""
    words = "; ".join(
        f"{_index(one.shape, at)} is {right[at].item():.6g}, not {left[at].item():.6g}"
        for at in spots
    )
    return f"{count:,} of {left.numel():,} elements of {name} are wrong: {words}."


def _wrong(one: Any, other: Any, rtol: float, atol: float, errors: Errors) -> Any:
    """Returns the elements that disagree, as a mask."""
    import torch

    wide = torch.complex128 if one.is_complex() else torch.float64
    left, right = one.to(wide), other.to(wide)
    same = (left == right) | (left.isnan() & right.isnan())
    both = left.isfinite() & right.isfinite() & ~same
    distance = (left - right).abs().where(both, torch.zeros((), dtype=torch.float64))
    bad = ~(same | (both & (distance <= atol + rtol * left.abs())))
    errors.absolute = max(errors.absolute, float(distance.max()))
    relative = (distance / left.abs()).where(both & (left != 0), torch.zeros_like(distance))
    errors.relative = max(errors.relative, float(relative.max()))
    return bad


def _size(values: Any) -> float:
    """The root of the mean square of those that are finite."""
    import torch

    total, count = 0.0, 0
    for at in range(0, values.numel(), PART):
        part = values[at : at + PART]
        sizes = part.to(torch.complex128 if part.is_complex() else torch.float64).abs()
        finite = sizes[sizes.isfinite()]
        total, count = total + float((finite**2).sum()), count + finite.numel()
    return float((total / count) ** 0.5) if count else 0.0


def _index(shape: Any, at: int) -> str:
    places = []
    for size in reversed(tuple(shape)):
        places.append(at % size)
        at //= size
    return f"[{', '.join(map(str, reversed(places)))}]"
