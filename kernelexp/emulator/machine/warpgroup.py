"""Hopper's warpgroup matrix multiplication: four warps' parts of one operation."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from kernelexp.emulator.arithmetic import fragments, sparse, tensor
from kernelexp.emulator.arithmetic.operands import is_finite
from kernelexp.emulator.machine.arrays import POISON, Array
from kernelexp.emulator.machine.asynchronous import Groups, Pending
from kernelexp.emulator.machine.clocks import SLOTS
from kernelexp.emulator.machine.gates import Fragment, PendingWait
from kernelexp.emulator.machine.machine import Machine, WarpSet
from kernelexp.emulator.machine.matrix_operands import K_BYTES, Matrix, fetch, span
from kernelexp.emulator.machine.products import METADATA, Sparsity, meaningless, metadata
from kernelexp.emulator.machine.site import Site, UnsupportedInstruction

ELEMENT = {"e4m3": 1, "e5m2": 1, "f16": 2, "bf16": 2, "tf32": 4, "s8": 1, "u8": 1}
_NO_ROWS = np.empty(0, np.intp)
WARPS = 4
ROWS = 64
A_REGISTERS = 4


class Wgmma(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one instruction computes, D = A * B or D + A * B; its operands as slots."""

    site: Site
    n: int
    d_type: str
    a_type: str
    b_type: str
    d: tuple[int, ...]
    a: tuple[int, ...]
    """Four registers; or a descriptor, as `b`."""
    b: tuple[int, ...]
    """A descriptor: one slot of 64 bits, or two of 32 with the lower half first."""
    scale: tuple[int, bool] | None = None
    """The predicate, and whether it is negated, of adding to D; None: always."""
    negate: tuple[bool, bool] = (False, False)
    transpose_a: bool = False
    transpose_b: bool = False
    saturate: bool = False
    sparsity: Sparsity | None = None

    commits: bool = False
    """Whether it also closes the warp's group."""

    @property
    def element(self) -> int:
        """Bytes of an element of A and B."""
        return ELEMENT[self.a_type]

    @property
    def b_row_bytes(self) -> int:
        """Of K: a sparse A holds half of it."""
        return K_BYTES if self.sparsity is None else 2 * K_BYTES

    @property
    def a_in_registers(self) -> bool:
        return len(self.a) == A_REGISTERS


class Destination:
    """Registers that operations write in each of their warps: one object for the same slots."""

    def __init__(self, slots: tuple[int, ...], rows: Array) -> None:
        self.slots = frozenset(slots)
        self.rows = rows
        """Of RegisterFile.words."""


@dataclass(slots=True, eq=False, kw_only=True)
class Multiplication(Pending):
    to: Destination


class Operands(NamedTuple):
    """What the first warp of a warpgroup asks for: what it does next may change the registers."""

    a: int | None
    """Descriptor; None where A is in registers."""
    b: int
    accumulate: bool


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
        self.operands: Operands | None = None


@functools.cache
def _places(n: int, half: bool) -> tuple[Array, Array]:
    """(place in a warp's 16 x n, by row, of each value of D in its registers; the inverse).

    Values are ordered by register, lane, and where there are two in a register, half.
    """
    per = 2 if half else 1
    lane, part = fragments.LANE[:, None], np.arange(per)
    value = np.arange(n // 2 // per)[:, None, None] * per + part
    group, within = value // 4, value % 4
    row = lane // 4 + 8 * (within // 2)
    column = 8 * group + 2 * (lane % 4) + within % 2
    places = (row * n + column).ravel()
    return places, np.argsort(places)


class Result(NamedTuple):
    """What an operation has written to the accumulators of one of its warps."""

    matrix: Array
    """[64, n], of all four."""
    warp: int

    def registers(self) -> Array:
        """The warp's values by register, [registers, 32]."""
        in_matrix, _ = _places(self.matrix.shape[1], self.matrix.dtype == np.uint16)
        own: Array = self.matrix.reshape(WARPS, -1)[self.warp]
        return own.take(in_matrix).view(np.uint32).reshape(-1, 32)


class Accumulators:
    """Accumulators of one warp in flight: by register, as RegisterFile.words has them."""

    def __init__(self, registers: int) -> None:
        self.values = np.zeros((registers, 32), np.uint32)
        """The engine's copy, until a wait writes it back, but for `results`."""
        self.results: dict[Destination, Result] = {}
        """No two of them with a register in common: the next operation mostly adds to one of these
        as it is."""
        self.held = np.zeros(registers, bool)
        self.taken: set[Destination] = set()
        """Those whose registers are all held."""
        self.written = np.zeros((registers, 32), np.uint32)
        """What waits have written back."""
        self.given = np.zeros(registers, bool)
        """To which registers they have."""

    def take(self, to: Destination, words: Array, place: int) -> None:
        """Takes the registers of an operation out of those of the warp at `place`."""
        if to in self.taken:
            return
        self.taken.add(to)
        new = to.rows[~self.held[to.rows]]
        if len(new):
            self.values[new] = words[new, place]
            self.held[new] = True
            words[new, place] = POISON[32]

    def write(self, to: Destination, result: Result) -> None:
        if to not in self.results and not all(to.slots.isdisjoint(x.slots) for x in self.results):
            self.settle()
        self.results[to] = result

    def settle(self) -> None:
        """Puts all results into `values`."""
        for to, result in self.results.items():
            self.values[to.rows] = result.registers()
        self.results.clear()

    def unused(self, pending: set[Destination]) -> Array:
        """Rows that are held and that no pending operation writes."""
        if self.taken <= pending:
            return _NO_ROWS
        free = self.held.copy()
        for to in pending:
            free[to.rows] = False
        return np.flatnonzero(free)

    def give_back(self, rows: Array, words: Array, place: int) -> None:
        self.settle()
        words[rows, place] = self.written[rows] = self.values[rows]
        self.held[rows], self.given[rows] = False, True
        self.taken = {to for to in self.taken if self.held[to.rows].all()}


class Warpgroups:
    """What warpgroups have in flight, by the places of their warps."""

    def __init__(self) -> None:
        self.groups: Groups[Multiplication] = Groups()
        self.warps: dict[int, Accumulators] = {}
        self.fenced: set[int] = set()
        """Warps that have made a wgmma.fence since their last wait."""
        self.turns: dict[tuple[int, int], int] = {}
        """How often a warp came to an instruction."""
        self.joining: dict[tuple[int, int, int], Joining] = {}
        """By the place of the first warp, instruction, and how often it was come to."""
        self.rows: dict[tuple[int, ...], Array] = {}
        """Of RegisterFile.words, by slots."""
        self.destinations: dict[tuple[int, ...], Destination] = {}
        """By slots."""
        self.targets: dict[Wgmma, Destination] = {}
        """The same, of each instruction."""

    def of(self, machine: Machine, place: int) -> Accumulators:
        found = self.warps.get(place)
        if found is None:
            found = self.warps[place] = Accumulators(len(machine.registers.words))
        return found

    def target(self, machine: Machine, wgmma: Wgmma) -> Destination:
        found = self.targets.get(wgmma)
        if found is None:
            slots, rows = wgmma.d, _rows(machine, wgmma.d, wgmma.site)
            found = self.destinations.setdefault(slots, Destination(slots, rows))
            self.targets[wgmma] = found
        return found


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
    for place in warps.warps.tolist():
        first, index = _position(machine, place)
        turn = state.turns[place, number] = state.turns.get((place, number), 0) + 1
        key = first, number, turn
        joining = state.joining.get(key)
        if joining is None:
            joining = state.joining[key] = Joining(_operation(wgmma, to))
        joining.places[index] = place
        if index == 0:
            joining.operands = _operands(machine, wgmma, place)
        if wgmma.a_in_registers:
            joining.a[index] = _a_registers(machine, wgmma, place).copy()
        if wgmma.sparsity is not None:
            found = np.broadcast_to(machine.value(wgmma.sparsity.slot, place), 32)
            joining.metadata[index] = found.copy()
        mine = state.of(machine, place)
        if place not in state.fenced:
            _unfenced(machine, wgmma, place, mine)
        mine.take(to, words, place)
        state.groups.add(place, joining.operation)
        if wgmma.commits:
            commit(machine, place)
        if len(joining.places) == WARPS:
            del state.joining[key]
            _issue(machine, wgmma, joining)


def _position(machine: Machine, place: int) -> tuple[int, int]:
    """(place of the first warp of a warp's group, the warp's index in it)."""
    index = machine.warp_of(place) % WARPS
    return place - index * machine.resident, index


def _operands(machine: Machine, wgmma: Wgmma, place: int) -> Operands:
    def scalar(slots: tuple[int, ...]) -> int:
        return sum(int(machine.value(slot, place)[0]) << 32 * i for i, slot in enumerate(slots))

    accumulate = wgmma.scale is None or bool(scalar(wgmma.scale[:1])) != wgmma.scale[1]
    a = None if wgmma.a_in_registers else scalar(wgmma.a)
    return Operands(a, scalar(wgmma.b), accumulate)


def _unfenced(machine: Machine, wgmma: Wgmma, place: int, mine: Accumulators) -> None:
    """A warning if registers were written that no wgmma.fence follows."""
    slots = (*wgmma.d, *wgmma.a) if wgmma.a_in_registers else wgmma.d
    rows = _rows(machine, slots, wgmma.site)
    rows = rows[~mine.held[rows]]
    if not len(rows):
        return
    changed = (machine.registers.words[rows, place] != mine.written[rows]).any(axis=1)
    if (changed | ~mine.given[rows]).any():
        sentence = "registers of this wgmma were written, and no wgmma.fence follows."
        machine.report("missing-wgmma-fence", sentence, wgmma.site, place)


def fence(machine: Machine, place: int) -> None:
    """wgmma.fence: what the warp has written to registers so far is what a wgmma finds there."""
    machine.state(Warpgroups).fenced.add(place)


def _operation(wgmma: Wgmma, to: Destination) -> Multiplication:
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
    b = Matrix(operands.b, wgmma.n, element, wgmma.transpose_b, False, wgmma.b_row_bytes)
    a = None
    if operands.a is not None:
        a = Matrix(operands.a, ROWS, element, wgmma.transpose_a, False)
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
            left = _matrix(wgmma, [_a_registers(machine, wgmma, place) for place in places])
        else:
            left = _matrix(wgmma, [joining.a[index] for index in range(WARPS)])
        _multiply(machine, wgmma, operation.to, places, left, right, operands.accumulate, where)
        operation.landed = machine.clocks.now

    operation.land = land
    operation.order = ("wgmma", cta, first)
    if machine.late:
        operation.touches = tuple(span(machine, cta, m) for m in (b, a) if m is not None)
    machine.engines.issue(operation)


def _a_registers(machine: Machine, wgmma: Wgmma, place: int) -> Array:
    """A warp's registers of A, [4, 32]."""
    rows = _rows(machine, wgmma.a, wgmma.site)
    values: Array = machine.registers.words[rows, place]
    return values


def _matrix(wgmma: Wgmma, warps: list[Array]) -> Array:
    """A from the registers of the four warps: [64, K] codes."""
    values = list(np.stack(warps, axis=1))
    return fragments.operand(values, 16, 8 * wgmma.element).reshape(ROWS, -1)


def _stored(machine: Machine, wgmma: Wgmma, joining: Joining) -> Array:
    """Where along K each stored element of a sparse A belongs, [64, K / 2]."""
    assert wgmma.sparsity is not None
    words = np.stack([joining.metadata[index] for index in range(WARPS)])
    width = 8 * wgmma.element
    found = metadata(words, K_BYTES // wgmma.element, width, wgmma.sparsity)
    for index, sentence in meaningless(found, width, wgmma.sparsity.ordered):
        machine.report(METADATA, sentence, wgmma.site, joining.places[index])
    return sparse.located(found, width).reshape(ROWS, -1)


def _multiply(
    machine: Machine,
    wgmma: Wgmma,
    to: Destination,
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
    matrix = _product(wgmma, a, b, c, where).astype(kind, copy=False)
    for index, mine in enumerate(warps):
        mine.write(to, Result(matrix, index))


def _addend(warps: list[Accumulators], n: int, to: Destination, kind: str) -> Array:
    """The accumulators of four warps, [64, n]."""
    known = [mine.results.get(to) for mine in warps]
    first = known[0]
    if first and first.matrix.dtype == kind and all(x and x.matrix is first.matrix for x in known):
        return first.matrix
    for mine in warps:
        mine.settle()
    words = np.stack([mine.values[to.rows] for mine in warps]).view(kind).reshape(WARPS, -1)
    _, in_registers = _places(n, kind == "u2")
    return words.take(in_registers, axis=1).reshape(ROWS, n)


def _product(wgmma: Wgmma, a: Array, b: Array, c: Array | None, where: Array | None) -> Array:
    if wgmma.d_type != "s32":
        for flag, codes in zip(wgmma.negate, (a, b), strict=True):
            if flag:
                codes ^= codes.dtype.type(1 << (8 * wgmma.element - 1))
    if where is None:
        return _dense(wgmma, a, b, c)
    addend = np.zeros((len(a), len(b)), np.uint16 if wgmma.d_type == "f16" else np.uint32)
    matrices = (a[None], b[None], addend[None] if c is None else c[None], where[None])
    by_row = not is_finite(b, wgmma.b_type)
    return sparse.product(*matrices, functools.partial(_each, wgmma), by_row=by_row).squeeze(0)


def _each(wgmma: Wgmma, a: Array, b: Array, c: Array) -> Array:
    return np.stack([_dense(wgmma, *matrices) for matrices in zip(a, b, c, strict=True)])


def _dense(wgmma: Wgmma, a: Array, b: Array, c: Array | None) -> Array:
    a_type, b_type = wgmma.a_type, wgmma.b_type
    if wgmma.d_type == "s32":
        signed = {"a_signed": a_type == "s8", "b_signed": b_type == "s8"}
        return tensor.mma_int8(a, b, c, **signed, satfinite=wgmma.saturate)
    precision = tensor.WGMMA_FP8 if wgmma.element == 1 else tensor.WGMMA
    function = tensor.mma_f16 if wgmma.d_type == "f16" else tensor.mma
    return function(a, b, c, a_type=a_type, b_type=b_type, precision=precision)


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
        rows = mine.unused({operation.to for operation in pending})
        if len(rows):
            changed = (words[rows, place] != POISON[32]).any(axis=1)
            for _ in range(np.count_nonzero(changed)):
                sentence = "a register was written while a wgmma had it for its accumulator."
                machine.report("wgmma-registers", sentence, self.site, place)
            mine.give_back(rows, words, place)
        state.fenced.discard(place)
        # What the MMAs have read may be overwritten by whoever hears of this.
        first, _ = _position(machine, place)
        machine.clocks.learn(place, machine.clocks.tensor + first % SLOTS, landed)
