"""A part of an answer that is looked at before the next call: both sides find the same one."""

from __future__ import annotations

from typing import Any

from kernelexp.services.tasks import wire

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
