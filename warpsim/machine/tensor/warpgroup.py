"""Hopper's warpgroup matrix multiplication: four warps' parts of one operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from warpsim.arithmetic.matrices import sparse
from warpsim.machine.core.accumulators import (
    WARPS,
    AccumulatorResult,
    Accumulators,
    AccumulatorSlots,
    places_of,
)
from warpsim.machine.core.arrays import POISON, Array
from warpsim.machine.core.asynchronous import CommitGroups, Pending
from warpsim.machine.core.clocks import SLOTS
from warpsim.machine.core.site import Site, UnsupportedInstruction
from warpsim.machine.sync.gates import Fragment, PendingWait
from warpsim.machine.tensor.matrix_operands import K_BYTES, Matrix, fetch, span
from warpsim.machine.tensor.products import METADATA, meaningless, metadata
from warpsim.machine.tensor.wgmma import ROWS, Wgmma, from_registers, product
from warpsim.machine.tensor.wgmma_registers import (
    EarlyReads,
    report_changed_a,
    report_early_read,
)
from warpsim.machine.wave.machine import Machine, WarpSet


@dataclass(slots=True, eq=False, kw_only=True)
class Multiplication(Pending):
    to: AccumulatorSlots


class WgmmaOperands(NamedTuple):
    """What the first warp of a warpgroup asks for: what it does next may change the registers."""

    a: int | None
    """Descriptor; None where A is in registers."""
    b: int
    accumulate: bool


Members: TypeAlias = tuple[int, list[tuple[int, int, Accumulators]]]


class Joining:
    """Warps of a group that have come to an instruction, until all have."""

    def __init__(self, operation: Multiplication) -> None:
        self.operation = operation
        self.places: dict[int, int] = {}
        """By the warp's index in the group."""
        self.a: dict[int, Array] = {}
        """Each warp's registers of A when it came, [4, 32]."""
        self.metadata: dict[int, Array] = {}
        """Each warp's words of metadata of a sparse A, [32]."""
        self.operands: WgmmaOperands | None = None


class Warpgroups:
    """What warpgroups have in flight, by the places of their warps."""

    def __init__(self) -> None:
        self.groups: CommitGroups[Multiplication] = CommitGroups()
        self.warps: dict[int, Accumulators] = {}
        self.fenced: set[int] = set()
        """Warps that have made a wgmma.fence since their last wait."""
        self.joining: dict[tuple[int, int], list[Joining]] = {}
        """By the place of the first warp, and instruction; a warp joins the first that it has not
        joined yet."""
        self.rows: dict[tuple[int, ...], Array] = {}
        """Of RegisterFile.words, by slots."""
        self.destinations: dict[tuple[int, ...], AccumulatorSlots] = {}
        """By slots."""
        self.targets: dict[Wgmma, AccumulatorSlots] = {}
        """The same, of each instruction."""
        self.behind: dict[Wgmma, bool] = {}
        """Whether its registers are computed behind the fence before it."""
        self.reads = EarlyReads()
        self.all_rows: Array | None = None
        """See `operands`, once it was called."""
        self._members: dict[WarpSet, list[Members]] = {}

    def members(self, warps: WarpSet) -> list[Members]:
        """A set's warpgroups: the place of the first warp; index, place and accumulators of those
        in the set."""
        known = self._members.get(warps)
        if known is None:
            groups: dict[int, list[tuple[int, int, Accumulators]]] = {}
            for place in warps.warps.tolist():
                first, index = _position(warps.machine, place)
                member = index, place, self.of(warps.machine, place)
                groups.setdefault(first, []).append(member)
            known = self._members[warps] = list(groups.items())
        return known

    def of(self, machine: Machine, place: int) -> Accumulators:
        accumulators = self.warps.get(place)
        if accumulators is None:
            accumulators = self.warps[place] = Accumulators(len(machine.registers.words))
        return accumulators

    def target(self, machine: Machine, wgmma: Wgmma) -> AccumulatorSlots:
        accumulator_slots = self.targets.get(wgmma)
        if accumulator_slots is None:
            slots, rows = wgmma.d, _rows(machine, wgmma.d, wgmma.site)
            accumulator_slots = self.destinations.setdefault(slots, AccumulatorSlots(slots, rows))
            self.targets[wgmma] = accumulator_slots
        return accumulator_slots

    def operands(self, machine: Machine) -> Array:
        """Where RegisterFile.words has what the program's operations read and write."""
        if self.all_rows is None:
            undefined, slots = machine.undefined, set[int]()
            for site, uses in zip(undefined.sites, undefined.uses, strict=True):
                if site.opcode.startswith("wgmma.mma_async"):
                    slots.update(uses.reads, uses.writes)
            rows = machine.registers.rows_of(sorted(slots))
            self.all_rows = rows[rows >= 0]
        return self.all_rows

    def behind_fence(self, machine: Machine, wgmma: Wgmma) -> bool:
        known = self.behind.get(wgmma)
        if known is None:
            known = self.behind[wgmma] = _computed_behind_fence(machine, wgmma)
        return known


def _rows(machine: Machine, slots: tuple[int, ...], site: Site) -> Array:
    """Where the register file has these slots."""
    known = machine.state(Warpgroups).rows
    if slots not in known:
        known[slots] = machine.registers.rows_of(slots)
        if (known[slots] < 0).any():
            raise UnsupportedInstruction(
                f"{site.where()}: {site.opcode} with operands that are not registers of 32 bits."
            )
    return known[slots]


def join(warps: WarpSet, wgmma: Wgmma) -> None:
    """Warps come to the instruction; the last of each warpgroup issues it."""
    machine, number = warps.machine, wgmma.site.number
    state = machine.state(Warpgroups)
    to, words = state.target(machine, wgmma), machine.registers.words
    behind = state.behind_fence(machine, wgmma)
    early = state.reads.behind(machine, wgmma.site, [to.slots])
    fenced, groups, to_be_read = state.fenced, state.groups, wgmma.a_in_registers
    for first, members in state.members(warps):
        every = state.joining.setdefault((first, number), [])
        for index, place, mine in members:
            joining = _joined(every, index, wgmma, to)
            joining.places[index] = place
            if index == 0:
                joining.operands = _operands(machine, wgmma, place)
            if to_be_read:
                joining.a[index] = _a_registers(machine, wgmma, place)
            if wgmma.sparsity is not None:
                selector = np.broadcast_to(machine.value(wgmma.sparsity.slot, place), 32)
                joining.metadata[index] = selector.copy()
            is_taken = to in mine.taken
            if place not in fenced:
                if to_be_read or not is_taken:
                    _unfenced(machine, wgmma, place, mine)
            elif behind:
                sentence = "registers of this wgmma are computed behind the wgmma.fence before it."
                machine.report("wgmma-fence-before-write", sentence, wgmma.site, place)
            if not is_taken:
                mine.take(to, words, place)
            groups.add(place, joining.operation)
            report_early_read(machine, early, place)
            if wgmma.commits:
                groups.commit(place)
            if len(joining.places) == WARPS:
                every.remove(joining)
                _issue(machine, wgmma, joining)


def _joined(every: list[Joining], index: int, wgmma: Wgmma, to: AccumulatorSlots) -> Joining:
    """The operation that a warp joins: of its own, as warps of a set may be in different turns of a
    loop."""
    for joining in every:
        if index not in joining.places:
            return joining
    every.append(Joining(_operation(wgmma, to)))
    return every[-1]


def _position(machine: Machine, place: int) -> tuple[int, int]:
    """(place of the first warp of a warp's group, the warp's index in it)."""
    index = machine.warp_of(place) % WARPS
    return place - index * machine.resident, index


def _operands(machine: Machine, wgmma: Wgmma, place: int) -> WgmmaOperands:
    scale = wgmma.scale
    accumulate = scale is None or machine.registers.arrays[scale[0]].item(place, 0) != scale[1]
    a = None if wgmma.a_in_registers else _descriptor(machine, wgmma.a, place)
    return WgmmaOperands(a, _descriptor(machine, wgmma.b, place), accumulate)


def _descriptor(machine: Machine, slots: tuple[int, ...], place: int) -> int:
    arrays = machine.registers.arrays
    value: int = arrays[slots[0]].item(place, 0)
    return value if len(slots) == 1 else value | arrays[slots[1]].item(place, 0) << 32


def _unfenced(machine: Machine, wgmma: Wgmma, place: int, mine: Accumulators) -> None:
    """A finding if registers were written that no wgmma.fence follows: "otherwise the behavior is
    undefined" (PTX ISA, "wgmma.fence"). ptxas makes the fences of SASS."""
    if not wgmma.site.opcode.startswith("wgmma"):
        return
    slots = (*wgmma.d, *wgmma.a) if wgmma.a_in_registers else wgmma.d
    rows = _rows(machine, slots, wgmma.site)
    rows = rows[~mine.held[rows]]
    if not len(rows):
        return
    changed = (machine.registers.words[rows, place] != mine.written[rows]).any(axis=1)
    if (changed | ~mine.given[rows]).any():
        sentence = "registers of this wgmma were written, and no wgmma.fence follows."
        machine.report("missing-wgmma-fence", sentence, wgmma.site, place)


def _computed_behind_fence(machine: Machine, wgmma: Wgmma) -> bool:
    """Whether an instruction between the last wgmma.fence and this one, in the text, computes one
    of its registers. Moves are left out: nvcc puts those of constants anywhere."""
    undefined = machine.undefined
    if not wgmma.site.opcode.startswith("wgmma"):
        return False
    slots = {*wgmma.d, *(wgmma.a if wgmma.a_in_registers else ())}
    computed = False
    for number in reversed(range(wgmma.site.number)):
        opcode = undefined.sites[number].opcode
        if opcode.startswith("wgmma.fence"):
            return computed
        if opcode.startswith(("bra", "wgmma.wait_group")):
            return False
        if not opcode.startswith(("mov", "wgmma")):
            computed = computed or not slots.isdisjoint(undefined.uses[number].writes)
    return False


def fence(machine: Machine, place: int) -> None:
    """wgmma.fence: what the warp has written to registers so far is what a wgmma finds there, and
    behind later waits, too, as long as nobody writes to them."""
    state = machine.state(Warpgroups)
    state.fenced.add(place)
    mine, rows = state.of(machine, place), state.operands(machine)
    mine.note(rows[~mine.held[rows]], machine.registers.words, place)


def _operation(wgmma: Wgmma, to: AccumulatorSlots) -> Multiplication:
    """Not issued yet: warps that come first wait for the others at their wait_group."""

    def land() -> None:
        raise AssertionError("landed before all four warps came")

    return Multiplication(what="a wgmma", land=land, site=wgmma.site, to=to)


def _issue(machine: Machine, wgmma: Wgmma, joining: Joining) -> None:
    places = [joining.places[index] for index in range(WARPS)]
    first, element, operation = places[0], wgmma.element, joining.operation
    cta, issuer = machine.cta_of(first).place, machine.issuer(first, 0, wgmma.site)
    operands = joining.operands
    assert operands is not None
    b = Matrix(
        *(operands.b, wgmma.n, element, wgmma.transpose_b),
        sm100=False,
        row_bytes=wgmma.b_row_bytes,
    )
    a = None
    if operands.a is not None:
        a = Matrix(operands.a, ROWS, element, wgmma.transpose_a, sm100=False)
    tally = machine.execution.tally(wgmma.site.number)
    read = wgmma.n * b.row_bytes + (0 if a is None else ROWS * a.row_bytes)
    tally.operand_wavefronts += read // 128
    where = _stored(machine, wgmma, joining) if joining.metadata else None

    def land() -> None:
        machine.clocks.tick()
        right = fetch(machine, issuer, cta, b)
        if a is not None:
            left = fetch(machine, issuer, cta, a)
        elif machine.late:  # so that a register changed before the wait shows
            now = [_a_registers(machine, wgmma, place) for place in places]
            for index, place in enumerate(places):
                if (now[index] != joining.a[index]).any():
                    report_changed_a(machine, wgmma, place)
            left = from_registers(wgmma, now)
        else:
            left = from_registers(wgmma, [joining.a[index] for index in range(WARPS)])
        _multiply(machine, wgmma, operation.to, places, left, right, operands.accumulate, where)
        operation.landed = machine.clocks.now

    operation.land = land
    operation.order = ("wgmma", cta, first)
    operation.cta = cta
    if machine.late:
        operation.touches = tuple(span(machine, cta, m) for m in (b, a) if m is not None)
    machine.engines.issue(operation)


def _a_registers(machine: Machine, wgmma: Wgmma, place: int) -> Array:
    """A warp's registers of A, [4, 32]."""
    rows = _rows(machine, wgmma.a, wgmma.site)
    values: Array = machine.registers.words[rows, place]
    return values


def _stored(machine: Machine, wgmma: Wgmma, joining: Joining) -> Array:
    """Where along K each stored element of a sparse A belongs, [64, K / 2]."""
    assert wgmma.sparsity is not None
    words = np.stack([joining.metadata[index] for index in range(WARPS)])
    width = 8 * wgmma.element
    array = metadata(words, K_BYTES // wgmma.element, width, wgmma.sparsity)
    for index, sentence in meaningless(array, width, wgmma.sparsity.ordered):
        machine.report(METADATA, sentence, wgmma.site, joining.places[index])
    return sparse.located(array, width).reshape(ROWS, -1)


def _multiply(
    machine: Machine,
    wgmma: Wgmma,
    to: AccumulatorSlots,
    places: list[int],
    a: Array,
    b: Array,
    accumulate: bool,
    where: Array | None,
) -> None:
    kind = "u2" if wgmma.d_type == "f16" else "u4"
    state = machine.state(Warpgroups)
    warps = [state.of(machine, place) for place in places]
    c = _addend(warps, wgmma.n, to, kind) if accumulate else None
    matrix = product(wgmma, a, b, c, where).astype(kind, copy=False)
    for index, mine in enumerate(warps):
        mine.write(to, AccumulatorResult(matrix, index))


def _addend(warps: list[Accumulators], n: int, to: AccumulatorSlots, kind: str) -> Array:
    """The accumulators of four warps, [64, n]."""
    known = [mine.results.get(to) for mine in warps]
    first = known[0]
    if first and first.matrix.dtype == kind and all(x and x.matrix is first.matrix for x in known):
        return first.matrix
    for mine in warps:
        mine.settle()
    words = np.stack([mine.values[to.rows] for mine in warps]).view(kind).reshape(WARPS, -1)
    _, in_registers = places_of(n, kind == "u2")
    return words.take(in_registers, axis=1).reshape(ROWS, n)


def commit(machine: Machine, place: int) -> None:
    """Closes the warp's group."""
    machine.state(Warpgroups).groups.commit(place)


@dataclass(frozen=True, eq=False)
class WgmmaWait(PendingWait):
    """At most `allowed` of the warp's groups are pending; the others' accumulators are there."""

    allowed: int

    what = "wgmma operations"

    def waited(self, machine: Machine, fragment: Fragment) -> Sequence[Pending]:
        return machine.state(Warpgroups).groups.due(fragment.warp, self.allowed)

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        place, state = fragment.warp, machine.state(Warpgroups)
        landed = max((operation.landed for operation in fragment.waited), default=0)
        state.groups.forget(place, self.allowed)
        pending = [*state.groups.opened(place), *state.groups.due(place, 0)]
        mine, words = state.of(machine, place), machine.registers.words
        writing = {operation.to for operation in pending}
        rows = mine.unused(writing)
        if len(rows):
            changed = words[rows, place] != POISON[32]
            if changed.any():
                self._report(machine, place, int(changed.any(axis=1).sum()))
            mine.give_back(rows, writing, words, place)
        if writing:
            slots = [to.slots for to in writing]
            report_early_read(machine, state.reads.behind(machine, self.site, slots), place)
        state.fenced.discard(place)
        # What the MMAs have read may be overwritten by whoever hears of this: they are the
        # warpgroup's. On an H100 the wait of one warp lasts until the last has issued them and
        # nothing is read any more, and CUTLASS lets one thread of a warpgroup free a stage.
        first, _ = _position(machine, place)
        machine.clocks.learn(place, machine.clocks.tensor + first % SLOTS, landed)

    def _report(self, machine: Machine, place: int, registers: int) -> None:
        for _ in range(registers):
            sentence = "a register was written while a wgmma had it for its accumulator."
            machine.report("wgmma-registers", sentence, self.site, place)
