"""The calls that each thread is in: what they keep, and where they go on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array, Mask, first_true
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.site import Site
from warpsim.machine.memory.arena import POISON_BYTE, UNWRITTEN, Arena
from warpsim.machine.wave.machine import Machine, WarpSet

DEEPEST = 1000
"""Calls of a thread in each other; the driver's stack of a kilobyte ends sooner."""


STACK = "@stack"
"""The local variable that alloca takes memory from."""
STACK_BYTES = 1024
"""Of each thread, as the driver sets aside unless it is told otherwise."""


class Allocas:
    """How much of its stack each thread has taken by alloca, [warps, 32]."""

    def __init__(self) -> None:
        self.bytes: Array = np.zeros((0, 32), np.int64)

    def of(self, machine: Machine) -> Array:
        if not len(self.bytes):
            self.bytes = np.zeros((machine.execution.warps, 32), np.int64)
        return self.bytes


def take(warps: WarpSet, size: Array, align: int, m: Mask, site: Site) -> Array:
    """Offsets of `size` bytes in each thread's stack; Fatal with a finding if it is full."""
    space, active = warps.machine.state(Allocas).of(warps.machine), warps.active(m)
    first: Array = -(-space[warps.slice] // align) * align
    ends = np.where(active, first + size.astype(np.int64), 0)
    if (ends > STACK_BYTES).any():
        row = int(np.nonzero(ends > STACK_BYTES)[0][0])
        sentence = f"alloca takes more than the {STACK_BYTES:,} bytes of a thread's stack."
        warps.machine.report("stack", sentence, site, int(warps.warps[row]))
        raise Fatal
    space[warps.slice] = np.where(active, ends, space[warps.slice])
    return first


def taken(warps: WarpSet) -> Array:
    """How much of its stack each thread has taken."""
    return warps.machine.state(Allocas).of(warps.machine)[warps.slice]


class Kept(NamedTuple):
    """What a call keeps for its caller."""

    registers: tuple[int, ...]
    """Slots."""
    spans: tuple[tuple[int, int], ...]
    """(slot of the address in local memory, bytes) of parameters."""


class Frame(NamedTuple):
    number: int
    """Of the call."""
    registers: list[Array]
    bytes: list[Array]


class Stacks(dict[int, list[Frame]]):
    """By thread."""


def _span(R: list[Array], warps: WarpSet, row: int, lane: int, slot: int, size: int) -> slice:
    first = int(R[slot][row, lane]) + int(warps.local[row, lane])
    return slice(first, first + size)


def copy(R: list[Array], m: Mask, warps: WarpSet, to: int, source: int, size: int) -> None:
    """Bytes of each thread's local memory, and whether they have been written."""
    arena = warps.machine.local
    for row, _, lane in warps.each_lane(m):
        here, there = (_span(R, warps, row, lane, slot, size) for slot in (to, source))
        arena.data[here], arena.state[here] = arena.data[there], arena.state[there]


def forget(local: Arena, first: Array, size: int) -> None:
    """`size` bytes from each of these offsets on are those of a call that has returned."""
    places = first.reshape(-1, 1) + np.arange(size)
    local.state[places], local.data[places] = UNWRITTEN, POISON_BYTE


def push(R: list[Array], m: Mask, warps: WarpSet, number: int, kept: Kept, site: Site) -> None:
    machine = warps.machine
    stacks = machine.state(Stacks)
    for row, place, lane in warps.each_lane(m):
        registers = [R[slot][row, lane] for slot in kept.registers]
        spans = [_span(R, warps, row, lane, *span) for span in kept.spans]
        stack = stacks.setdefault(32 * place + lane, [])
        stack.append(Frame(number, registers, [machine.local.data[s].copy() for s in spans]))
        if len(stack) > DEEPEST:
            who = machine.thread_name(32 * place + lane)
            sentence = (
                f"{who} is more than {DEEPEST:,} calls deep here: the recursion does not end, or "
                "goes deeper than a thread's stack does in the emulator."
            )
            machine.report("stack", sentence, site, place)
            raise Fatal


def pop(R: list[Array], m: Mask, warps: WarpSet, kept: Kept) -> None:
    machine = warps.machine
    stacks = machine.state(Stacks)
    for row, place, lane in warps.each_lane(m):
        frame = stacks[32 * place + lane].pop()
        for slot, value in zip(kept.registers, frame.registers, strict=True):
            R[slot][row, lane] = value
        for span, data in zip(kept.spans, frame.bytes, strict=True):
            machine.local.data[_span(R, warps, row, lane, *span)] = data


def where(R: list[Array], m: Mask, warps: WarpSet, target: int) -> None:
    """The number of each thread's innermost call."""
    stacks = warps.machine.state(Stacks)
    for row, place, lane in warps.each_lane(m):
        R[target][row, lane] = stacks[32 * place + lane][-1].number


def find(
    R: list[Array],
    m: Mask,
    warps: WarpSet,
    target: int,
    pointer: int,
    addresses: tuple[int, ...],
    site: Site,
) -> None:
    """The index of the function at each thread's pointer."""
    every = np.stack([R[slot] for slot in addresses], axis=-1) == R[pointer][..., None]
    lost = ~every.any(axis=-1) & warps.active(m)
    if lost.any():
        row, lane = first_true(lost)
        sentence = f"a call of {int(R[pointer][row, lane]):#x}, where no such function begins."
        warps.machine.report("out-of-bounds", sentence, site, int(warps.warps[row]))
        raise Fatal
    np.copyto(R[target], every.argmax(axis=-1).astype(np.uint32), where=m)
