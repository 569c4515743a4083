"""Tensor memory as warps reach it: allocation, loads and stores."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from warpsim.machine.core.arrays import Array
from warpsim.machine.core.site import Site
from warpsim.machine.core.tmem_areas import GRANULE, Area
from warpsim.machine.counts.access import AccessKind
from warpsim.machine.memory.arena import WRITTEN
from warpsim.machine.memory.layout import WINDOW
from warpsim.machine.sync.gates import AddressSlot, Fragment, WaitGate, scalar
from warpsim.machine.wave.machine import Machine, WarpSet


@dataclass(frozen=True, eq=False)
class Alloc(WaitGate):
    """One warp of each CTA allocates; waits until the columns are free."""

    to: AddressSlot
    """Where in shared memory the address goes."""
    count: int
    """Slot."""
    group: int
    """CTAs of its cta_group."""

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        machine.tmem.grouped(self.group, self.site, fragment.warp)
        machine.tmem.request(scalar(machine, self.count, fragment), self.site, fragment.warp)
        return super().enter(machine, fragment)

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        columns = scalar(machine, self.count, fragment)
        return machine.tmem.free_at(machine.cta_of(fragment.warp).place, columns) is not None

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        place, columns = fragment.warp, scalar(machine, self.count, fragment)
        first = machine.tmem.allocate(machine.cta_of(place).place, columns, self.site)
        assert first is not None
        address = self.to.scalar(machine, fragment) & WINDOW
        offset, _, _ = machine.shared_offset(place, address, self.site)
        one, leader = machine.warp_set(place, 1, 1), np.arange(32)[None, :] == 0
        offsets, values = np.full((1, 32), offset), np.full((1, 32), first, np.uint32)
        access = AccessKind(self.site, 4, 1, store=True)
        machine.races.write(one, offsets, values, access, leader)
        machine.shared.data[offset : offset + 4].view(np.uint32)[0] = first
        machine.shared.state[offset : offset + 4] = WRITTEN

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        columns = scalar(machine, self.count, fragment)
        held = machine.tmem.allocated.get(machine.cta_of(fragment.warp).place, {})
        return f"{columns} columns of tensor memory, {sum(held.values())} of them taken"


def take(machine: Machine, place: int, columns: int, group: int, site: Site) -> int | None:
    """Allocates columns of a CTA, or of both CTAs of a pair: the first one; None if none are free.

    Both have the same, as they always allocate together.
    """
    machine.tmem.grouped(group, site, place)
    machine.tmem.request(columns, site, place)
    own = machine.cta_of(place).place
    ctas = [own] if group == 1 else [own & ~1, own | 1]
    first = {machine.tmem.free_at(cta, columns) for cta in ctas}
    if first == {None}:
        return None
    for cta in ctas:
        machine.tmem.allocate(cta, columns, site)
    return first.pop()


EVERY = slice(None)
"""All threads of a warp."""


class TmemForm:
    """Which registers of a load or a store hold which lanes and columns."""

    def __init__(
        self,
        site: Site,
        shape: str,
        count: int,
        split: int = 0,
        threads: slice = EVERY,
    ) -> None:
        """split: columns from the first half of a 16x32bx2 to the second; threads: of the warp,
        those that take part."""
        self.site = site
        self.threads = threads
        self.registers = count * {"16x256b": 4, "16x128b": 2}.get(shape, 1)
        self.columns = count * {"16x256b": 8, "16x128b": 4, "16x64b": 2}.get(shape, 1) + split
        self.half = shape != "32x32b"
        """Whether it reaches 16 of the quarter's 32 lanes."""
        lane, register = np.arange(32)[:, None], np.arange(self.registers)[None, :]
        column = register
        if shape == "16x256b":
            lane, column = (
                lane // 4 + 8 * (register // 2 % 2),
                8 * (register // 4) + 2 * (lane % 4) + register % 2,
            )
        elif shape == "16x128b":
            lane, column = lane // 4 + 8 * (register % 2), 4 * (register // 2) + lane % 4
        elif shape == "16x64b":
            lane, column = lane // 4 + 8 * (lane % 2), 2 * register + lane // 2 % 2
        elif shape == "16x32bx2":
            lane, column = lane % 16, register + split * (lane // 16)
        self.lane, self.column = (x[threads] for x in np.broadcast_arrays(lane, column))
        self.whole = shape == "32x32b" and threads == EVERY
        """Whether a register holds a column of the quarter's lanes."""

    def window(self, machine: Machine, place: int, address: int) -> Window:
        """What a warp reaches at a tensor-memory address, checked."""
        cta, quarter = machine.cta_of(place).place, machine.warp_of(place) % 4
        lane, column = address >> 16 & 127, address & 0xFFFF
        if lane >> 5 != quarter:
            sentence = (
                f"warp {machine.warp_of(place)} addresses lane {lane}: a warp reaches lanes "
                f"{32 * quarter} to {32 * quarter + 31} only (its rank modulo 4)."
            )
            # Hardware takes the low bits only: DeepGEMM's warps all address the first quarter. The
            # number of another quarter would have had to mean something.
            name = "tmem-lanes" if lane >> 5 else "tmem-quarter"
            machine.report(name, sentence, self.site, place)
        machine.tmem.check(cta, column, self.columns, self.site, place)
        first = 32 * quarter + (lane & 31 & ~15 if self.half else 0)
        granule, count = first // GRANULE, 1 if self.half else 2
        area = Area(cta, (granule, granule + count, 1), column, column + self.columns)
        if self.whole:
            return Window(place, area, slice(first, first + 32), slice(column, area.end))
        return Window(place, area, first + self.lane, column + self.column, whole=False)


class Window(NamedTuple):
    """A warp's lanes and columns of tensor memory, as indices of [threads, registers]."""

    place: int
    area: Area
    lanes: Array | slice
    columns: Array | slice
    whole: bool = True
    """Whether these are all of the area."""


@dataclass(slots=True)
class Load:
    window: Window
    over: bool = False
    """Whether the tensor memory has been read for sure."""

    def end(self, machine: Machine) -> None:
        """The warp has waited, or has read a register, for which hardware waits by itself."""
        if not self.over:
            machine.tmem.races.loaded(self.window.area, self.window.place)
            self.over = True


class TmemTraffic:
    """Loads and stores of each warp that it has not waited for, by place."""

    def __init__(self) -> None:
        self.loads: dict[int, list[Load]] = {}
        self.stores: dict[int, list[tuple[Window, Array]]] = {}
        self.rows: dict[TmemForm, Array | slice | None] = {}
        """Of RegisterFile.words, the registers that a load fills; None if it fills them in part."""


def load(
    warps: WarpSet, addresses: list[int], form: TmemForm, targets: list[int], *, waits: bool = False
) -> None:
    """Issues each warp's load, and waits for it if it `waits`.

    ptxas has whoever reads the registers wait for them (a scoreboard of the LDTM), so they hold
    their values at once; PTX forbids reading them before the wait.
    """
    machine = warps.machine
    traffic = machine.state(TmemTraffic)
    if form not in traffic.rows:
        traffic.rows[form] = _rows(machine, form, targets)
    rows = traffic.rows[form]
    for place, address in zip(warps.warps.tolist(), addresses, strict=True):
        window = form.window(machine, place, address)
        machine.tmem.races.load(window.area, place, form.site)
        landed = _read(machine, form.site, window)
        if rows is not None:
            machine.registers.words[rows, place] = landed.T
        else:
            for index, slot in enumerate(targets):
                machine.value(slot, place)[form.threads] = landed[:, index]
        if waits:
            machine.tmem.races.loaded(window.area, place)
            continue
        issued = Load(window)
        machine.undefined.expect(form.site, targets, place, functools.partial(issued.end, machine))
        traffic.loads.setdefault(place, []).append(issued)


def _rows(machine: Machine, form: TmemForm, targets: list[int]) -> Array | slice | None:
    """See TmemTraffic.rows; a slice if they follow each other."""
    rows = machine.registers.rows_of(targets)
    if (
        form.threads != EVERY or (rows < 0).any()
    ):  # some threads take no part, or results go nowhere
        return None
    first, end = int(rows[0]), int(rows[0]) + len(rows)
    return slice(first, end) if (rows == np.arange(first, end)).all() else rows


def _read(machine: Machine, site: Site, window: Window) -> Array:
    tmem, (place, area, lanes, columns, whole) = machine.tmem, window
    cta, _, first, end = area
    if not (
        tmem.is_written(area, lanes, columns) if whole else tmem.written[cta, lanes, columns].all()
    ):
        sentence = (
            f"columns {first} to {end - 1} of tensor memory are read before they were written."
        )
        machine.report("tmem-uninitialised", sentence, site, place)
    return tmem.data[cta, lanes, columns]


def wait_loads(machine: Machine, place: int) -> None:
    """All loads of the warp so far are in their registers."""
    for issued in machine.state(TmemTraffic).loads.pop(place, ()):
        issued.end(machine)
    machine.undefined.arrived(place)


def store(machine: Machine, place: int, address: int, form: TmemForm, values: Array) -> None:
    """Issues a warp's store of [32, registers]: lands at the wait."""
    window, values = form.window(machine, place, address), values[form.threads]
    machine.tmem.races.store(window.area, place, form.site)
    if not machine.late:
        _write(machine, window, values)
    machine.state(TmemTraffic).stores.setdefault(place, []).append((window, values))


def _write(machine: Machine, window: Window, values: Array) -> None:
    _, area, lanes, columns, whole = window
    machine.tmem.data[area.cta, lanes, columns] = values
    if whole:
        machine.tmem.wrote(area, lanes, columns)
    else:
        machine.tmem.written[area.cta, lanes, columns] = True


def wait_stores(machine: Machine, place: int) -> None:
    """All stores of the warp so far are in tensor memory."""
    for window, values in machine.state(TmemTraffic).stores.pop(place, ()):
        if machine.late:
            _write(machine, window, values)
        machine.tmem.races.stored(window.area, place)
