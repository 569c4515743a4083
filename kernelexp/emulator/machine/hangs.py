"""Who waits for what when nothing can go on."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kernelexp.emulator.machine.gates import Fragment
from kernelexp.emulator.machine.machine import Machine
from kernelexp.emulator.machine.program import Program


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table of a hang."""

    cta: int
    warp: int
    lanes: int
    """Mask of the lanes that wait."""
    where: str
    waits_for: str


def waiters(
    machine: Machine, program: Program, fragments: Iterable[Fragment]
) -> tuple[Waiter, ...]:
    """The table of a hang, by CTA and warp."""
    return tuple(sorted((_waiter(machine, program, f) for f in fragments), key=_order))


def _order(waiter: Waiter) -> tuple[int, int]:
    return waiter.cta, waiter.warp


def _waiter(machine: Machine, program: Program, fragment: Fragment) -> Waiter:
    block = program.blocks.get(fragment.pc)
    gate = block.gate if block else None
    return Waiter(
        cta=machine.cta_of(fragment.warp).number,
        warp=machine.warp_of(fragment.warp),
        lanes=fragment.mask,
        where=program.sites[fragment.pc].where(),
        waits_for=gate.describe(machine, fragment) if gate else "lanes of its own warp",
    )
