"""setmaxnreg: warps of a CTA that give registers back and take what others have given back."""

from __future__ import annotations

from dataclasses import dataclass

from warpsim.machine.core.site import Site
from warpsim.machine.memory.residents import Cta
from warpsim.machine.sync.gates import Fragment, WaitGate
from warpsim.machine.wave.machine import Machine

REGISTERS = 65_536
"""Of an SM."""
WARPGROUP = 4
"""Warps."""
STEP = 8
MOST_AT_LAUNCH = 255 // STEP * STEP


class Registers:
    """Registers per thread of each warp, and of each CTA those that no warp has."""

    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self.free: dict[int, int] = {}
        self.executed: dict[int, list[Site]] = {}
        """The setmaxnreg of each warp, by its place."""

    def of(self, machine: Machine, place: int) -> int:
        """What a warp has, per thread."""
        return self.held.setdefault(place, at_launch(machine))


def at_launch(machine: Machine) -> int:
    """Registers per thread that a CTA begins with: what ptxas may give by the launch bounds."""
    image, warps = machine.execution.image, machine.warps_per_cta
    if image.max_registers is not None:
        return image.max_registers // STEP * STEP
    share = REGISTERS // (32 * warps * image.min_ctas) // STEP * STEP
    return min(share, MOST_AT_LAUNCH)


def end(machine: Machine, cta: Cta) -> None:
    """A finding if of a warpgroup of a CTA that ends some warps have executed setmaxnreg and others
    have not."""
    executed = machine.state(Registers).executed
    if not executed:
        return
    places = range(cta.place, machine.resident * machine.warps_per_cta, machine.resident)
    done = [executed.pop(place, []) for place in places]
    for first in range(0, len(done), WARPGROUP):
        group = done[first : first + WARPGROUP]
        longest = max(group, key=len)
        short = [first + i for i, sites in enumerate(group) if len(sites) < len(longest)]
        if short:
            others = ", ".join(map(str, short))
            plural = "s" * (len(short) > 1)
            machine.report(
                "setmaxnreg",
                f"{longest[-1].opcode} executed here and not by warp{plural} {others} of the same "
                "warpgroup: all of its warps have to.",
                longest[-1],
                places[first + group.index(longest)],
            )


@dataclass(frozen=True, eq=False)
class SetRegisters(WaitGate):
    """A warp changes its registers per thread to `count`."""

    count: int
    increases: bool
    result: int | None = None
    """Slot of a predicate: that the warp has them."""

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        held = machine.state(Registers).of(machine, fragment.warp)
        if self.count % STEP or not 24 <= self.count <= 256:
            sentence = f"setmaxnreg of {self.count} registers: 24 to 256 in steps of 8 are allowed."
            machine.report("setmaxnreg", sentence, self.site, fragment.warp)
        elif not self.increases and self.count > held:
            sentence = f"setmaxnreg.dec to {self.count} registers of a warp that has {held}."
            machine.report("setmaxnreg", sentence, self.site, fragment.warp)
        return super().enter(machine, fragment)

    def _missing(self, machine: Machine, fragment: Fragment) -> int:
        state, cta = machine.state(Registers), machine.cta_of(fragment.warp).place
        wanted = 32 * (self.count - state.of(machine, fragment.warp))
        return wanted - state.free.get(cta, 0)

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        return not self.increases or self._missing(machine, fragment) <= 0

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        state, cta = machine.state(Registers), machine.cta_of(fragment.warp).place
        held = state.of(machine, fragment.warp)
        state.free[cta] = state.free.get(cta, 0) + 32 * (held - self.count)
        state.held[fragment.warp] = self.count
        state.executed.setdefault(fragment.warp, []).append(self.site)
        if self.result is not None:
            machine.value(self.result, fragment.warp)[...] = True

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        return (
            f"{self._missing(machine, fragment)} registers more than the warps of its CTA have "
            "given back"
        )
