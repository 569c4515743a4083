"""Who waits for what when nothing can go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from warpsim.machine.schedule.program import DecodedProgram
from warpsim.machine.sync.gates import Fragment
from warpsim.machine.wave.machine import Machine


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table of a hang."""

    cta: int
    warp: int
    lanes: int
    """Mask of the lanes that wait."""
    where: str
    waits_for: str


def ordered(machine: Machine, fragments: Iterable[Fragment]) -> list[Fragment]:
    """By CTA and warp."""
    return sorted(
        fragments, key=lambda each: (machine.cta_of(each.warp).number, machine.warp_of(each.warp))
    )


def describe_hang(waiters: Iterable[Waiter]) -> tuple[str, ...]:
    """A sentence, without its stop, for each set of warps of a CTA that wait for the same."""
    groups: dict[tuple[int, str, str], dict[int, None]] = {}
    for each in waiters:
        groups.setdefault((each.cta, each.where, each.waits_for), {})[each.warp] = None
    return tuple(
        f"CTA {cta}, {_spell_warps(list(warps))}, at {where}: {waits_for}"
        for (cta, where, waits_for), warps in groups.items()
    )


def _spell_warps(warps: Sequence[int]) -> str:
    first, last = warps[0], warps[-1]
    if len(warps) == 1:
        return f"warp {first}"
    if last - first + 1 == len(warps):
        return f"warps {first} to {last}"
    return f"warps {', '.join(map(str, warps))}"


def waiter(machine: Machine, program: DecodedProgram, fragment: Fragment) -> Waiter:
    block = program.blocks.get(fragment.pc)
    gate = block.gate if block else None
    return Waiter(
        cta=machine.cta_of(fragment.warp).number,
        warp=machine.warp_of(fragment.warp),
        lanes=fragment.mask,
        where=program.sites[fragment.pc].where(),
        waits_for=gate.describe(machine, fragment) if gate else "lanes of its own warp",
    )
