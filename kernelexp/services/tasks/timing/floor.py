"""Floor of a call's time on its card: bytes that have to be moved, instructions to issue."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from kernelexp.facts.chips import Chip
from kernelexp.services.tasks import wire
from kernelexp.services.tasks.task import Call, Values

SECTOR = 32
PROBES = 24
"""Sectors of each input that are changed, one by one, to see whether the answer changes."""
RISK = 0.001
LANES = 128
"""Threads of an SM that execute an instruction in a clock, at most."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that a call can't do without."""

    read: float = 0.0
    """Of inputs which the answer depends on: at least so many, with a risk of RISK per input."""
    written: float = 0.0


def moved(reference: Call, arguments: Values, seed: int) -> Moved:
    """Asks the reference, which leaves the arguments as they are."""
    import torch

    given = wire.tensors(arguments)
    copies = wire.copied(arguments)
    answer = reference(copies)
    before = {item.data_ptr(): old for item, old in zip(wire.tensors(copies), given, strict=True)}
    written = 0
    for tensor in wire.tensors(answer):
        old = before.get(tensor.data_ptr())
        written += 0 if old is not None and _same(tensor, old) else tensor.nbytes
    right, generator = wire.copied(answer), torch.Generator("cpu").manual_seed(seed)
    again = reference(wire.copied(arguments))
    if not all(map(_same, wire.tensors(again), wire.tensors(right))):
        return Moved(written=float(written))  # it changes by itself
    read = 0.0
    for place, tensor in enumerate(given):
        if tensor.is_floating_point() and tensor.numel() and tensor.is_contiguous():
            hits = sum(
                _matters(reference, arguments, place, right, generator) for _ in range(PROBES)
            )
            read += least_share(hits, PROBES) * tensor.nbytes
    return Moved(read=read, written=float(written))


def _matters(reference: Call, arguments: Values, place: int, right: Any, generator: Any) -> bool:
    """Whether another answer comes of other values in a sector of one input."""
    import torch

    copies = wire.copied(arguments)
    tensor = wire.tensors(copies)[place]
    width = max(1, SECTOR // tensor.element_size())
    at = width * int(
        torch.randint(-(-tensor.numel() // width), (), generator=generator, device="cpu")
    )
    flat = tensor.view(-1)[at : at + width]
    flat.copy_(flat * -1.5 + 1)
    changed = tensor.data_ptr()
    pairs = zip(wire.tensors(reference(copies)), wire.tensors(right), strict=True)
    return any(not _same(a, b) for a, b in pairs if a.data_ptr() != changed)


def _same(one: Any, other: Any) -> bool:
    """Bit by bit: a NaN is the same as itself."""
    import torch

    left, right = (item.contiguous().reshape(-1).view(torch.uint8) for item in (one, other))
    return bool(torch.equal(left, right))


def least_share(hits: int, count: int) -> float:
    """The share of which so many hits are still expected in one of 1 / RISK such counts."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        tail = sum(
            math.comb(count, k) * middle**k * (1 - middle) ** (count - k)
            for k in range(hits, count + 1)
        )
        low, high = (middle, high) if tail < RISK else (low, middle)
    return low


def least_us(chip: Chip, needed: Moved, thread_instructions: float) -> tuple[float, str]:
    """Microseconds, and the arithmetic.

    What fits into L2 may be left there for later, so that it is not traffic of this call's; inputs
    are read from the device's memory, because L2 is overwritten before each call.
    """
    kept = max(0.0, needed.written - chip.l2_size.value)
    memory = 1e6 * (needed.read + kept) / chip.dram.value
    lanes = LANES * chip.sms.value * chip.clock.value
    issue = 1e6 * thread_instructions / lanes
    if issue > memory:
        return issue, (
            f"{thread_instructions:,.0f} thread-instructions, as emulated, / ({LANES} per clock x "
            f"{chip.sms.value:.0f} SMs x {chip.clock.value / 1e6:,.0f} MHz) = {issue:.3g} us"
        )
    return memory, (
        f"({needed.read / 1e6:.4g} MB of inputs that the answer depends on + {kept / 1e6:.4g} MB "
        f"of it that exceed L2) / {chip.dram.value / 1e12:.4g} TB/s ({chip.dram.source}) = "
        f"{memory:.3g} us"
    )
