"""One launch being executed: what outlives its waves of resident CTAs."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Collection, Mapping, Sequence

import msgspec

from warpsim.launch import Launch, Residency
from warpsim.lineinfo import SourceLine
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.clocks import Clocks, Unordered
from warpsim.machine.core.findings import BadLanes, Fatal, Findings
from warpsim.machine.core.image import Image
from warpsim.machine.core.registers import RegisterFile
from warpsim.machine.core.site import Site
from warpsim.machine.counts.patterns import Patterns
from warpsim.machine.counts.tally import Tally
from warpsim.machine.memory.constants import fill
from warpsim.machine.memory.history import Beside, History
from warpsim.machine.memory.layout import (
    GLOBAL_BASE,
    GlobalLayout,
    LocalLayout,
    Parameters,
    SharedLayout,
)
from warpsim.schedule import Schedule

# Resident warps at once: bounds the register file (about 128 bytes per register and warp).
REGISTER_FILE_BYTES = 512 << 20
POLLING_REGISTER_FILE_BYTES = 4 << 30
"""The same where CTAs may wait for each other: those that a card holds at once have to be there."""
MAX_RESIDENT_WARPS = 2048
RESIDENT_WARPS = 256
"""The same where CTAs can't wait for each other: registers and clocks of more fit no cache, which
made SGEMM of 384 x 384 take 1.57 s with 2,048 and 0.80 s with 256."""
QUICK_WARPS, QUICK_BYTES, QUICK_WAVES = 1024, 8 << 20, 8
"""The same of launches that nobody judges, which have no clocks: a power of two whose registers
take at most so many bytes, in so many waves at least, for processes to share. What each wave costs
counts for more there than caches do: unjudged saxpy of 1 M takes 200 ms with 1,024 and 390 ms with
256. SGEMM of 384 x 384 takes 750 ms with 256, 640 ms with 512 and 1,010 ms with 312."""
DENSE = 256
"""Bytes of global memory per thread of a launch up to which it is taken to use most of it."""
AFTERMATH = 100_000
"""Warp instructions that a launch which has gone wrong may yet execute, besides as many as it had
executed by then: loaded poison may count a loop."""
MOST_FAULTS = 256
"""Accesses that a launch may do wrong before it is given up: each is looked at in Python, and lanes
whose loops poison counts do as many as there are instructions."""
FEW_CLUSTERS = 2
"""That are resident at once where a kernel cancels launches: others have to be left to cancel."""


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread printed."""

    cta: int
    thread: int
    """Of the CTA."""
    text: str


class Execution:
    """The launch, its sizes, its global memory, and what was found and counted so far."""

    def __init__(
        self,
        image: Image,
        launch: Launch,
        arrays: Mapping[str, Array],
        unwritten: frozenset[str],
        schedule: Schedule,
        before: GlobalLayout | None = None,
        world: GlobalLayout | None = None,
        card: Residency | None = None,
        patterns: Patterns | None = None,
        *,
        judged: bool = True,
        benign: Collection[SourceLine] = (),
    ) -> None:
        """before: the global memory that an earlier launch of the same job left; world: memory that
        is there already, instead of `arrays`; card: where CTAs that wait for each other have to be
        resident; judged: False for a launch that only leads to others: order, reads of what nobody
        wrote and the costs of accesses are not looked at; benign: lines that may race with each
        other."""
        self.judged = judged and image.strict
        """Whether order is checked."""
        self.follows = judged
        """Whether reads of what nobody wrote are."""
        self.counted = judged
        """Whether the costs of accesses are."""
        self._first = schedule.first
        self._card = card
        self.image = image
        self.launch = launch
        self.chance = random.Random(schedule.seed)
        self.late = schedule.asynchrony == "late"
        """Whether asynchronous effects land as late as they may."""
        self.shuffle = schedule.seed != 0
        """Whether everything that the hardware leaves open is decided by chance."""
        self.chance_of_stop = schedule.chance_of_stop
        """Before an instruction by which threads meet in memory."""
        self.sites: Sequence[Site] = ()
        """Of the program that is executed, by number."""
        self._lines = frozenset(benign)
        self.findings = Findings()
        self.tallies: dict[int, Tally] = {}
        """Costs of memory instructions, by their number."""
        self.patterns = patterns
        """Where the dearest accesses are noted, if somebody wants to see them."""
        self.fills: dict[int, set[tuple[int, bool]]] = {}
        """By the number of a copy that signals mbarriers: their addresses in a CTA, and whether a
        phase of each came before."""
        self.contended = False
        """Whether flags or atomics have met in an order that nothing decides."""
        self.printed: list[Printed] = []
        self.ctas_begun = 0
        self.steps = 0
        """Warp instructions so far."""
        self.last_step: int | None = None
        """When a launch that a GPU would have ended is given up; None: it would not."""
        self._faults = 0
        """Accesses that have done so."""
        self.reads_clock = False
        """Whether anybody has looked at a clock, which counts these."""
        self.announced: frozenset[tuple[int, int]] = frozenset()
        """Words of global memory that earlier waves released something at, as Flags has them."""
        self.cluster_size = math.prod(launch.cluster)
        self.threads = math.prod(launch.block)
        self.warps_per_cta = -(-self.threads // 32)
        self.grid_ctas = math.prod(launch.grid)
        """CTAs that are launched: without the clusters that were cancelled, the last ones."""
        self.layout = SharedLayout(
            image.variables,
            launch.dynamic_smem_bytes,
            image.uses_reserved_shared,
            apart=image.strict,
        )
        self.local = LocalLayout(image.variables)
        self.world = world or GlobalLayout(
            image.variables, arrays, unwritten, image.heap_bytes, image.functions
        )
        if before:
            self.world.take_over(before)
        self.now = 1
        """When the next wave begins, as Clocks have it."""
        self.parameters = Parameters(image, launch, self.world)
        self.resident = self._resident()
        """CTAs that are resident at once, whole clusters."""
        self.banks = {
            number: fill(bank, launch, self.world, self.parameters, self.local, self.resident)
            for number, bank in image.banks.items()
        }
        """Constant banks, as bytes."""
        self.warps = self.resident * self.warps_per_cta
        size = len(self.world.arena.data)
        self.history = History(
            *(size, image.global_unit, 1, (self.warps, self.resident)),
            dense=size <= DENSE * self.threads * self.grid_ctas,
        )
        """Who wrote to global memory, and read from it."""
        self.registers = RegisterFile(image.table, self.warps)

    @functools.cached_property
    def benign(self) -> frozenset[int]:
        """Numbers of the instructions that may race with each other."""
        return frozenset(
            site.number
            for site in self.sites
            if site.source
            and any((frame.file, frame.line) in self._lines for frame in site.source.frames())
        )

    def clocks(self) -> Clocks:
        """Those of the next wave."""
        kind = Clocks if self.judged else Unordered
        return kind(self.warps, now=self.now)

    def begin_beside(self, beside: Beside) -> None:
        """Another launch, which does this, may still run."""
        agent = self.clocks().launched
        self.history.begin_beside(Beside(*(each - GLOBAL_BASE for each in beside)), agent)

    def fault(self, lanes: Array) -> Fatal:
        """What to raise when lanes of an access have done what ends a launch on a GPU."""
        if self.last_step is None:
            self.last_step = AFTERMATH + 2 * self.steps
        self._faults += 1
        self.findings.faulted = True
        return Fatal() if self._first or self._faults > MOST_FAULTS else BadLanes(lanes)

    def _resident(self) -> int:
        of_a_warp = max(1, len(self.image.slots) * 128)
        registers = of_a_warp * self.warps_per_cta
        warps = MAX_RESIDENT_WARPS if self.image.polls else RESIDENT_WARPS
        if not (self.image.polls or self.follows):
            every = self.grid_ctas * self.warps_per_cta
            most = min(QUICK_WARPS, QUICK_BYTES // of_a_warp, every // QUICK_WAVES)
            warps = max(warps, 1 << max(1, most).bit_length() - 1)
        most = warps // self.warps_per_cta
        if self._card is not None and self.image.polls:
            most = self._card.holds(self.warps_per_cta, self.layout.packed)
        room = POLLING_REGISTER_FILE_BYTES if self.image.polls else REGISTER_FILE_BYTES
        most = min(most, room // max(1, registers))
        clusters = max(1, most // self.cluster_size)
        if self.image.cancels_launches:
            clusters = min(clusters, FEW_CLUSTERS)
        return min(self.grid_ctas, clusters * self.cluster_size)

    def tally(self, number: int) -> Tally:
        tally = self.tallies.get(number)
        if tally is None:
            tally = self.tallies[number] = Tally()
        return tally
