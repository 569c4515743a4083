"""Who waits for what when nothing can go on, who is missing, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized

import msgspec
import numpy as np

from warpsim.machine.core.site import Site
from warpsim.machine.core.warps import ALL, spell_warps
from warpsim.machine.schedule.program import DecodedProgram
from warpsim.machine.sync.gates import Fragment, WaitGate
from warpsim.machine.wave.machine import Machine

_SHOWN = 3
"""Sets of warps that the finding itself tells of; the table has all."""


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
        fragments,
        key=lambda fragment: (machine.cta_of(fragment.warp).number, machine.warp_of(fragment.warp)),
    )


def describe_hang(waiters: Iterable[Waiter]) -> tuple[str, ...]:
    """A sentence, without its stop, for each set of warps of a CTA that wait for the same; of CTAs
    that wait alike, the first has it."""
    groups: dict[tuple[int, str, str], dict[int, None]] = {}
    for waiter in waiters:
        groups.setdefault((waiter.cta, waiter.where, waiter.waits_for), {})[waiter.warp] = None
    alike: dict[tuple[str, str], list[str]] = {}
    for (cta, where, waits_for), warps in groups.items():
        words = f"{spell_warps(list(warps))} {_wait(warps)} at {where}, for "
        others = waits_for.replace(f" of CTA {cta}", "")
        alike.setdefault((words, others), []).append(f"CTA {cta}, {words}{waits_for}")
    return tuple(_first(every) for every in alike.values())


def _first(every: Sequence[str]) -> str:
    more = len(every) - 1
    return every[0] + (f"; in {more} more CTA{'s' * (more > 1)} likewise" if more else "")


def _wait(warps: Sized) -> str:
    return "waits" if len(warps) == 1 else "wait"


def sentence(why: str, waiters: Sequence[Waiter], cure: str) -> str:
    """What the finding says of a hang."""
    groups = describe_hang(waiters)
    rest = [f"and {len(groups) - _SHOWN} more"] if len(groups) > _SHOWN else []
    return f"{why}: {'; '.join([*groups[:_SHOWN], *rest])}.{cure}"


class HangTable:
    """What each fragment of a wave waits for when none can go on."""

    def __init__(
        self, machine: Machine, program: DecodedProgram, waiting: Sequence[Fragment]
    ) -> None:
        self._machine = machine
        self._program = program
        self._waiting = waiting
        self._held: set[tuple[int, int]] = set()
        """(warp that polls, warp that holds what it polls), by their places."""

    def waiters(self) -> tuple[Waiter, ...]:
        return tuple(self._waiter(fragment) for fragment in self._waiting)

    def cure(self) -> str:
        """A sentence on what would help, where that is known, with a space before it."""
        if any((holder, poller) in self._held for poller, holder in self._held if poller != holder):
            return " Each holds what another waits for: all have to take the locks in one order."
        if any(poller == holder for poller, holder in self._held):
            return " If such a word is a lock, a thread waits for what its own warp holds."
        gates = {self._gate(fragment) for fragment in self._waiting}
        if len(gates) > 1 and all(gate is not None and gate.joins_all for gate in gates):
            return " All threads that a barrier counts have to come to the same one."
        return ""

    def _gate(self, fragment: Fragment) -> WaitGate | None:
        block = self._program.blocks.get(fragment.pc)
        return block.gate if block else None

    def _site(self, fragment: Fragment) -> Site:
        """The instruction at which lanes wait: of a loop that polls, the poll."""
        polled = None
        if self._gate(fragment) is None and not fragment.gathering:
            polled = self._machine.polls.of(fragment.warp, fragment.mask)
        return polled.site if polled else self._program.sites[fragment.pc]

    def _waiter(self, fragment: Fragment) -> Waiter:
        machine, site = self._machine, self._site(fragment)
        if fragment.gathering:
            absent = ALL & ~fragment.mask & ~machine.exited[fragment.warp]
            what = f"{_spell_lanes(absent)} of its own warp{self._stand({fragment.warp: absent})}"
        elif gate := self._gate(fragment):
            what = gate.describe(machine, fragment)
            what += self._stand(gate.missing(machine, fragment))
        else:
            what = self._polled(fragment)
        return Waiter(
            cta=machine.cta_of(fragment.warp).number,
            warp=machine.warp_of(fragment.warp),
            lanes=fragment.mask,
            where=site.where(),
            waits_for=what,
        )

    def _stand(self, missing: dict[int, int]) -> str:
        """`; missing: warp 2 (at k.cu:50, PTX line 9)`: where those stand that have not come."""
        places: dict[str, list[int]] = {}
        for place, lanes in missing.items():
            here = {
                self._site(fragment).where()
                for fragment in self._waiting
                if fragment.warp == place and fragment.mask & lanes
            }
            for where in here or {"exited"}:
                places.setdefault(where, []).append(self._machine.warp_of(place))
        if not places:
            return ""
        parts = [
            f"{spell_warps(sorted(set(warps)))} ({'has' if len(warps) == 1 else 'have'} exited)"
            if where == "exited"
            else f"{spell_warps(sorted(set(warps)))} (at {where})"
            for where, warps in places.items()
        ]
        return f"; missing: {', '.join(parts)}"

    def _polled(self, fragment: Fragment) -> str:
        """The word that lanes poll, what it holds, and who made it so."""
        machine = self._machine
        polled = machine.polls.of(fragment.warp, fragment.mask)
        if polled is None:
            return "lanes of its own warp"
        races = machine.world_races if polled.space == "global" else machine.races
        octets = races.arena.data[polled.offset : polled.offset + polled.size]
        value = int.from_bytes(octets.tobytes(), "little")
        name = races.reports.name(polled.offset, polled.size)
        what = f"{name} to be other than {value:,}, polled by {machine.thread_name(polled.thread)}"
        if held := machine.polls.holder(polled):
            self._held.add((fragment.warp, held[0] >> 5))
            who = machine.thread_name(held[0], fragment.warp)
            return f"{what}; {who} set it at {held[1].where()}{self._now(held[0])}"
        epoch = int(races.history.writers(np.asarray(polled.offset // races.history.unit)))
        if epoch == 0:
            return f"{what}; nobody has written it in this launch"
        return f"{what}; last written by {races.reports.writer(epoch, polled.site)}"

    def _now(self, thread: int) -> str:
        """` and is at k.cu:9`: where a thread stands now."""
        place, lane = divmod(thread, 32)
        for fragment in self._waiting:
            if fragment.warp == place and fragment.mask >> lane & 1:
                return f" and is at {self._site(fragment).where()}"
        return " and has exited"


def _spell_lanes(mask: int) -> str:
    """`lanes 0 to 3` or, where they are no run, `lanes 0x0000a00f`."""
    first, count = (mask & -mask).bit_length() - 1, mask.bit_count()
    if count == 1:
        return f"lane {first}"
    if mask >> first == (1 << count) - 1:
        return f"lanes {first} to {first + count - 1}"
    return f"lanes {mask:#010x}"
