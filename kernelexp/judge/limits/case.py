"""One variant with what is known of a launch of its full problem: what bounds and rules look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kernelexp.facts import widths
from kernelexp.facts.chips import Chip
from kernelexp.facts.counters import EXECUTED, PTX
from kernelexp.facts.metrics import Kind
from kernelexp.model.arm import Arm, EmulatedEvidence, EmulatedLine


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a launch that were all taken in the same way, so that they compare."""

    kind: Kind
    values: tuple[float, ...]
    """In the order in which they were asked for."""
    figures: dict[str, float]
    """By name: ncu's where it is profiled or counted on SASS, else that of the count on PTX."""

    @property
    def of_ptx(self) -> bool:
        return any(name.startswith(PTX) for name in self.figures)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One variant and all that is known of a launch; what is not known is None, empty or 0."""

    label: str
    arm: Arm
    chip: Chip | None = None
    """The card that it was measured on, else profiled, else the one that it is built for."""
    profiled_elsewhere: bool = False
    """On another card, or at another size, than it was measured: shares of the peaks there are none
    of those here."""
    size: str = "full"
    """Of the problem: what it was measured at."""
    extents: Mapping[str, int] = {}
    """The parameters of that size, by name."""
    axes: Mapping[str, str] = {}
    """What each axis of its kernel chooses, in a line."""
    flops: int = 0
    """Useful work of a launch of the full problem, as problem.py states it."""
    bytes: int = 0
    """Bytes that such a launch must move at least."""
    ctas: int = 0
    """Of its grid."""
    tiles: int = 0
    """Its output tiles."""
    counters: dict[str, int] = {}
    """Emulated, of a launch of the full problem: of PTX, and of SASS where that was executed."""
    scaled: str = ""
    """How these were scaled from the emulated sizes, as the end of a sentence."""
    unsolved: frozenset[str] = frozenset()
    """Those of `counters` that are in proportion although others were solved."""
    least: dict[str, int] = {}
    """What a launch counts of these, by what each tile adds."""
    larger: EmulatedEvidence | None = None
    """The larger of two small sizes that they were solved from."""
    ratios_of: str = ""
    """The emulated size that the counters are of, where they can't be scaled to the full problem:
    then only their ratios say something of it."""
    ratios_why: str = ""
    """Why they can't be, where problem.py says it."""
    clock_hz: float = 0.0
    """The SM's while it was measured."""
    power: str = ""
    """Power and throttling while all arms of the measurement ran, in words."""
    power_capped: bool = False
    """Whether power held the clock down for most of the measurement."""

    @property
    def time_s(self) -> float:
        """Seconds at this size: measured, else published; 0 where it is neither."""
        return self.time()[0]

    def time(self) -> tuple[float, Kind]:
        """Seconds of this size with their kind: measured, else published; 0 where it is neither."""
        measured, published = self.arm.measured, self.arm.published
        if measured and measured.time_us is not None and measured.size == self.size:
            return measured.time_us / 1e6, "measured"
        if published and published.time_ms:
            return published.time_ms / 1e3, "published"
        if published and published.tflops and self.flops:
            return self.flops / (published.tflops * 1e12), "published"
        return 0.0, "measured"

    def clock(self) -> tuple[float, str]:
        """The SM's clock in Hz with its source: as measured, else the chip's highest."""
        if self.clock_hz:
            return self.clock_hz, f"{self.clock_hz / 1e6:,.0f} MHz (measured)"
        if self.chip is None:
            return 0.0, ""
        return self.chip.clock.value, f"{self.chip.clock.value / 1e6:,.0f} MHz (the chip's highest)"

    @property
    def of_size(self) -> str:
        """The problem in words."""
        return "the full problem" if self.size == "full" else f"size '{self.size}'"

    def figure(self, *names: str) -> float | None:
        """The first of these that the profile has, each with ncu's suffix .sum or without."""
        result = self.arm.profiled.figures if self.arm.profiled else {}
        for name in names:
            for item in (name, f"{name}.sum"):
                value = result.get(item)
                if isinstance(value, int | float):
                    return float(value)
        return None

    def counts(self, *names: str) -> Counts | None:
        """These counters of ncu's: all profiled, else all counted on SASS, else all on PTX; None
        where none is."""
        profiled = {name: self.figure(name) for name in names}
        result = {name: value for name, value in profiled.items() if value is not None}
        if len(result) == len(names):
            return Counts(kind="profiled", values=tuple(result.values()), figures=result)
        if not self.counters:
            return None
        result = {self.named(name): float(self.counter(name)) for name in names}
        return Counts(kind="emulated", values=tuple(result.values()), figures=result)

    @property
    def counts_sass(self) -> bool:
        """Whether the counters have what was executed of SASS, which is then read."""
        return EXECUTED["sass"] in self.counters

    def named(self, counter: str) -> str:
        """Returns the name that the emulation in use gives a counter of ncu's."""
        return counter if self.counts_sass else PTX + counter

    def counter(self, name: str) -> int:
        """A counter of ncu's: as counted on SASS, else on PTX."""
        return self.counters.get(self.named(name), 0)

    @property
    def taken(self) -> EmulatedEvidence | None:
        """The emulation whose lines say most of the full problem: of the sizes that its counters
        are from, the larger. At another, what a CTA does once may cost most."""
        own = self.arm.counted if self.counts_sass else self.arm.emulated
        is_alike = self.larger and (self.larger.isa == "sass") == self.counts_sass
        return self.larger if is_alike else own

    @property
    def lines(self) -> Sequence[EmulatedLine]:
        """The dearest, with their counters as `named`."""
        return self.taken.lines if self.taken else ()

    def dearest(self, counter: str, ideal: str = "", per: float = 1.0) -> EmulatedLine | None:
        """The source line that counts most of a counter of ncu's, beyond `ideal` / `per` if given;
        None where none does."""
        name, least = self.named(counter), self.named(ideal)

        def cost(line: EmulatedLine) -> float:
            return line.counters.get(name, 0) - line.counters.get(least, 0) / per

        best = max(self.lines, key=cost, default=None)
        return best if best and cost(best) > 0 else None

    def polled(self, counter: str) -> float:
        """Returns the share of a counter in the source lines that wait at mbarriers, of 1: how
        often they look depends on timing."""
        return sum(self.part(line, counter) for line in self.lines if self.waits_at(line))

    def waits_at(self, line: EmulatedLine) -> bool:
        """Whether a source line waits at an mbarrier."""
        isa = "sass__" if self.counts_sass else PTX
        return bool(line.counters.get(f"{isa}inst_executed_mbarrier_wait"))

    def part(
        self, line: EmulatedLine | None, counter: str, ideal: str = "", per: float = 1.0
    ) -> float:
        """Returns the share of a counter in a source line, beyond `ideal` / `per`, of 1."""
        name, least = self.named(counter), self.named(ideal)
        every = self.taken.counters if self.taken else {}
        whole = every.get(name, 0) - every.get(least, 0) / per
        own = line.counters.get(name, 0) - line.counters.get(least, 0) / per if line else 0
        return own / whole if whole > 0 else 0.0

    @property
    def is_merged(self) -> bool:
        """Whether SASS accesses shared memory in other widths than PTX, on which wavefronts and
        bank conflicts were counted, so that these are not the card's."""
        return not self.counts_sass and widths.is_of_shared(self.arm.emulated)

    @property
    def is_persistent(self) -> bool:
        """Whether a CTA has several tiles in turn, and the grid is made for the chip: as many CTAs
        on each SM, and no more than fit at once. An attention kernel's 64 CTAs, which have 8 tiles
        of keys each, are those of its problem."""
        build, chip = self.arm.build, self.chip
        if build is None or chip is None or not self.tiles > self.ctas > 0:
            return False
        per_sm, rest = divmod(self.ctas, int(chip.sms.value))
        return not rest and per_sm <= build.occupancy.ctas_per_sm

    @property
    def is_specialised(self) -> bool:
        """Whether asynchronous copies feed it by mbarriers: warps with roles, most of which wait.

        By its SASS: TMA loads, and waits on mbarriers (SYNCS).
        """
        opcodes = self.arm.build.opcodes if self.arm.build else {}
        return "SYNCS" in opcodes and any(opcode.startswith("UTMALDG") for opcode in opcodes)
