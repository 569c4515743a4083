"""Where warps are stopped inside straight runs: before what they meet in memory by."""

from __future__ import annotations

from random import Random

from warpsim.machine.sync.gates import Fragment

MOST = 8
"""How often a warp is stopped before one instruction: who polls would be without end."""


class Stops:
    """Draws who is stopped; a stop lasts until all others have had their turn."""

    def __init__(self, chance: Random, probability: float) -> None:
        self._chance = chance
        self._probability = probability
        self._count: dict[tuple[int, int], int] = {}
        """By warp and instruction."""
        self._drawn: set[tuple[int, int]] = set()
        """Which go on there without another draw."""
        self._any = False

    def draw(self, fragments: list[Fragment], pc: int) -> list[Fragment]:
        """Those of the fragments at an instruction that are stopped. If any are, no fragment is
        drawn again when it comes back."""
        stopped = [fragment for fragment in fragments if self._draw(fragment.warp, pc)]
        if stopped:
            self._any = True
            self._drawn.update((fragment.warp, pc) for fragment in fragments)
        return stopped

    def _draw(self, warp: int, pc: int) -> bool:
        if (warp, pc) in self._drawn:
            self._drawn.remove((warp, pc))
            return False
        stops = self._count.get((warp, pc), 0)
        if stops == MOST or self._chance.random() >= self._probability:
            return False
        self._count[warp, pc] = stops + 1
        return True

    def end_turn(self) -> bool:
        """Whether anybody was stopped in this turn: then nothing follows from it."""
        stopped, self._any = self._any, False
        return stopped
