"""Fragments of warps, and the instructions at which they may have to wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Pending
from warpsim.machine.core.forms import CompiledForm
from warpsim.machine.core.registers import Slot
from warpsim.machine.core.site import Site
from warpsim.machine.wave.machine import Machine, WarpSet
from warpsim.machine.wave.mbarrier import Mbarrier

ANYTHING = object()
"""The obstacle of a fragment that any change may let go."""


@dataclass(slots=True, eq=False)
class Meeting:
    """A place where the lanes of a divergent branch come together again (BSSY and BSYNC)."""

    pc: int
    expected: int
    arrived: int = 0


@dataclass(slots=True, eq=False)
class Fragment:
    """Lanes of one warp with a common program counter."""

    warp: int
    mask: int
    pc: int
    meetings: tuple[Meeting, ...] = ()
    generation: int = 0
    """Of the barrier that it waits at."""
    phases: tuple[tuple[Mbarrier | None, int, int], ...] = ()
    """(mbarrier, wanted phase or parity, lanes) of each group of lanes that wait for the same."""
    polls: dict[int, int] = field(default_factory=dict)
    """Phase last seen by a try_wait that returned false, by its PC."""
    waited: Sequence[Pending] = ()
    """What it waits for at a PendingWait."""
    gathered: int = -1
    """PC of a `.sync` instruction whose other lanes it need not wait for any more."""
    gathering: bool = False
    """Whether it is parked at a `.sync` instruction until its other lanes come."""
    group: int = 0
    """The mask of an instruction that lanes with another mask execute apart from these; 0: none."""
    rested: bool = False
    """Whether it has had no turn since everybody had one."""

    def same_place(self, other: Fragment) -> bool:
        mine = self.meetings, self.gathered, self.group
        return mine == (other.meetings, other.gathered, other.group)


@dataclass(frozen=True, eq=False)
class WaitGate:
    """Lets every fragment through; subclasses say what it waits for."""

    site: Site
    pending: ClassVar[bool] = False
    """Whether it waits for operations that the fragment's threads or warp issued."""

    joins_all: ClassVar[bool] = False
    """Whether it is a barrier."""

    unites: ClassVar[bool] = False
    """Whether fragments of a warp that it lets go at once go on as one."""

    def form(self, slots: Sequence[Slot]) -> CompiledForm | None:
        """The same in compiled code, which lets a set of warps through if none has to wait."""
        return None

    def parts(self, machine: Machine, fragment: Fragment) -> Sequence[Fragment]:
        """The fragment, or fragments of its lanes where not all of them wait for the same."""
        return (fragment,)

    def gathers(self, machine: Machine, fragment: Fragment) -> bool:
        """Whether warps that come are kept until nobody is ready who could come too: as one set
        they may pass together."""
        return False

    def pass_together(
        self, machine: Machine, warps: WarpSet, fragments: Sequence[Fragment]
    ) -> bool:
        """Lets a whole set of warps through at once that wait for each other only; if not, nothing
        has happened."""
        return False

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        """What happens on arrival; whether the fragment goes on at once."""
        if self.ready(machine, fragment):
            self.leave(machine, fragment)
            return True
        return False

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        return True

    def obstacle(self, machine: Machine, fragment: Fragment) -> object:
        """What has to change before a fragment that is not ready can be: an object that is added
        to the machine's `changed` then, or ANYTHING. Threads that exit may make any ready."""
        return ANYTHING

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        """What happens when the fragment goes on."""

    def waited(self, machine: Machine, fragment: Fragment) -> Sequence[Pending]:
        """The operations that have to land, if it is `pending`."""
        return []

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        """For the table of a hang: what is waited for."""
        return self.site.opcode

    def missing(self, machine: Machine, fragment: Fragment) -> dict[int, int]:
        """For the same table: lanes that have not come yet, by the place of their warp."""
        return {}


class PendingWait(WaitGate, ABC):
    """Waits until operations that the fragment's threads or warp issued have landed."""

    pending = True
    what: ClassVar[str]

    @abstractmethod
    def waited(self, machine: Machine, fragment: Fragment) -> Sequence[Pending]:
        """The operations that have to land."""

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        # Whom it stands for issues nothing more while it waits: this is looked up once.
        fragment.waited = self.waited(machine, fragment)
        return super().enter(machine, fragment)

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        # Backwards: what was issued last mostly lands last.
        for operation in reversed(fragment.waited):
            if not operation.done:
                return False
        return True

    def obstacle(self, machine: Machine, fragment: Fragment) -> object:
        return next(operation for operation in reversed(fragment.waited) if not operation.done)

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        pending = sum(not operation.done for operation in self.waited(machine, fragment))
        return f"{pending} {self.what}"


class AddressSlot(NamedTuple):
    """An address operand: a slot and what is added to it."""

    slot: int
    offset: int

    def value(self, R: list[Array], row: int, lane: int) -> int:
        return int(R[self.slot][row, lane]) + self.offset

    def scalar(self, machine: Machine, fragment: Fragment) -> int:
        return scalar(machine, self.slot, fragment) + self.offset


def scalar(machine: Machine, slot: int, fragment: Fragment) -> int:
    """The value of a slot in the fragment's first lane."""
    first = (fragment.mask & -fragment.mask).bit_length() - 1
    return int(machine.value(slot, fragment.warp)[first])
