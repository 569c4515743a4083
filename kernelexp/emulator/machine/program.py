"""A decoded entry: blocks of operations on register arrays, and where its lanes part and meet."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelexp.emulator.machine.gates import Gate
from kernelexp.emulator.machine.image import Image
from kernelexp.emulator.machine.machine import Op
from kernelexp.emulator.machine.site import Site
from kernelexp.emulator.machine.undefined import Uses


@dataclass(slots=True)
class Branch:
    """How a block ends: `guard` None is a plain jump."""

    targets: tuple[int, ...]
    following: int
    guard: int | None
    negated: bool
    index: int | None = None
    """Slot that picks the target."""


class Exit:
    """ret, exit."""


@dataclass(slots=True)
class Block:
    """Instructions that are executed together."""

    first: int
    last: int
    """The number after the last instruction's."""
    ops: list[Op] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """Of the instructions that `ops` execute."""
    loads: bool = False
    """Whether any of them may read memory that was never written."""
    gate: Gate | None = None
    sync: int | None = None
    """Slot of the member mask of a first instruction that needs its lanes together; -1: all."""
    anywhere: bool = False
    """Whether the lanes may stand at different instructions of that kind (__syncwarp)."""
    exclusive: bool = False
    """Whether lanes with different masks execute it one group after the other."""
    weight: int = 1
    """How much of a turn it takes: polls of memory are more than one."""
    end: Branch | Exit | None = None
    join: int | None = None
    """Where lanes that part at this block's end meet again."""
    joins: bool = False
    """Whether some block's lanes meet here."""


# Blocks that a batch may run before others get their turn: most batches stop at a barrier long
# before. A poll of memory counts as many, so that who polls does not keep off whom it waits for.
QUANTUM = 4000
POLL = QUANTUM // 8


class Program:
    """One entry. A pc is the number of an instruction; blocks go by their first one."""

    def __init__(
        self,
        image: Image,
        sites: list[Site],
        blocks: dict[int, Block],
        uses: list[Uses] | None = None,
    ) -> None:
        self.image = image
        self.sites = sites
        self.blocks = blocks
        self.uses = uses or []
        """What each instruction does with registers; none: not known."""
