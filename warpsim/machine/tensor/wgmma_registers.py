"""Which instruction reads registers that a wgmma in flight writes, by the text behind it."""

from __future__ import annotations

from collections.abc import Iterable

from warpsim.machine.core.site import Site
from warpsim.machine.tensor.wgmma import Wgmma
from warpsim.machine.wave.machine import Machine

_ENDS = ("wgmma.wait_group", "bra", "brx", "call", "ret", "exit", "trap")
"""Behind these, what is executed next, or what is pending then, is not known from the text."""


class EarlyReads:
    """Reads of accumulators before the wait for them: undefined (PTX ISA, "wgmma.mma_async").

    Only text that is executed in any case, once an instruction is, is looked at. A mov reads
    nothing yet: nvcc copies accumulators that it keeps in flight. What reads the copy does.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, frozenset[int]], Site | None] = {}

    def behind(self, machine: Machine, site: Site, slots: Iterable[frozenset[int]]) -> Site | None:
        """The first instruction behind a site that reads one of these registers."""
        if not site.opcode.startswith("wgmma"):
            return None
        key = site.number, frozenset().union(*slots)
        if key not in self._known:
            self._known[key] = _first_read(machine, *key)
        return self._known[key]


def _first_read(machine: Machine, number: int, slots: frozenset[int]) -> Site | None:
    pending, undefined = set(slots), machine.undefined
    for later in range(number + 1, len(undefined.sites)):
        site, uses = undefined.sites[later], undefined.uses[later]
        if site.opcode.startswith(_ENDS):
            return None
        if site.opcode.startswith("wgmma") or uses.guard is not None:
            continue
        if site.opcode.startswith("mov"):
            moved = not pending.isdisjoint(uses.reads)
            pending = pending.union(uses.writes) if moved else pending.difference(uses.writes)
            continue
        if not pending.isdisjoint((*uses.reads, *uses.decides)):
            return site
        pending.difference_update(uses.writes)
    return None


def report_early_read(machine: Machine, site: Site | None, place: int) -> None:
    """A finding, if there is such an instruction."""
    if site is not None:
        sentence = "an accumulator is read while a wgmma has it that no wait has covered."
        machine.report("wgmma-registers", sentence, site, place)


def report_changed_a(machine: Machine, wgmma: Wgmma, place: int) -> None:
    """A finding: a warp has written to registers of A before the wgmma was waited for."""
    if wgmma.site.opcode.startswith("wgmma"):
        sentence = "registers of A of this wgmma were written before a wgmma.wait_group covers it."
        machine.report("wgmma-registers", sentence, wgmma.site, place)
