"""Barriers of a CTA and of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernelexp.emulator.decode import Decoder
from kernelexp.emulator.isa.gate import Gate, lanes_of, scalar
from kernelexp.emulator.isa.predicate import _predicate as predicate
from kernelexp.emulator.isa.registry import builder, modifiers
from kernelexp.emulator.ptx.syntax import Immediate, Instruction
from kernelexp.emulator.slots import Array

if TYPE_CHECKING:
    from kernelexp.emulator.machine.machine import Machine
    from kernelexp.emulator.machine.warps import Fragment

CTA_BARRIERS = 16


class _Named:
    """A named barrier of one CTA."""

    def __init__(self) -> None:
        self.generation = 0
        self.arrived: dict[int, int] = {}
        """Lanes that arrived, by warp."""
        self.votes: list[bool] = []
        self.result: dict[int, list[bool]] = {}
        self.row: Array | None = None
        self.rows: dict[int, Array] = {}


class CtaBarrier(Gate):
    """bar.sync, bar.red and bar.arrive; whole warps count, whatever lanes execute it."""

    def __init__(self, ins: Instruction, d: Decoder) -> None:
        super().__init__(ins)
        parts = modifiers(ins)
        self.mode = next(part for part in parts if part in ("sync", "arrive", "red"))
        self.aligned = parts[0] == "bar" or "aligned" in parts
        self.reduce = next((part for part in parts if part in ("popc", "and", "or")), "")
        operands = list(ins.operands)
        self.target = d.destination(operands.pop(0), ins) if self.mode == "red" else 0
        self.vote = predicate(d, ins, operands.pop()) if self.mode == "red" else (0, False)
        self.number = d.source(operands[0], "u32", ins)
        self.count = d.source(operands[1] if len(operands) > 1 else Immediate(0), "u32", ins)

    def _barrier(self, machine: Machine, fragment: Fragment) -> _Named:
        cta = machine.cta_of(fragment.warp).place
        key = ("bar", cta, scalar(machine, self.number, fragment))
        found: _Named = machine.groups.setdefault(key, _Named())
        return found

    def _wanted(self, machine: Machine, fragment: Fragment) -> int:
        """Threads that complete it; without a count, those of all warps that have not exited."""
        count = scalar(machine, self.count, fragment)
        return count or 32 * machine.cta_of(fragment.warp).live_warps

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        barrier = self._barrier(machine, fragment)
        if self.aligned and fragment.mask | machine.gone(fragment.warp) != 0xFFFF_FFFF:
            machine.found(
                "divergent-aligned",
                f"{self.instruction.opcode} executed by lanes {fragment.mask:#010x} only.",
                self.instruction,
                fragment.warp,
            )
        barrier.arrived[fragment.warp] = barrier.arrived.get(fragment.warp, 0) | fragment.mask
        row = machine.clocks.release(fragment.warp)
        barrier.row = row if barrier.row is None else np.maximum(barrier.row, row)
        if self.mode == "red":
            slot, flip = self.vote
            votes = machine.value(slot, fragment.warp)
            barrier.votes += [bool(votes[lane]) != flip for lane in lanes_of(fragment)]
        fragment.waiting = barrier.generation
        self._complete(machine, fragment, barrier)
        if self.mode == "arrive":
            return True
        if self.ready(machine, fragment):
            self.leave(machine, fragment)
            return True
        return False

    def _complete(self, machine: Machine, fragment: Fragment, barrier: _Named) -> None:
        # A warp counts as 32 threads, once all its lanes that are left have come.
        whole = sum(
            32
            for warp, lanes in barrier.arrived.items()
            if self.aligned or lanes | machine.gone(warp) == 0xFFFF_FFFF
        )
        if whole and whole >= self._wanted(machine, fragment):
            barrier.result = {barrier.generation: barrier.votes}
            assert barrier.row is not None
            barrier.rows = {barrier.generation: barrier.row}
            barrier.generation += 1
            barrier.arrived, barrier.votes, barrier.row = {}, [], None

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        barrier = self._barrier(machine, fragment)
        if barrier.generation == fragment.waiting:
            # Warps that have exited since may have been the ones that were missing.
            self._complete(machine, fragment, barrier)
        return bool(barrier.generation != fragment.waiting)

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        barrier = self._barrier(machine, fragment)
        row = barrier.rows.get(fragment.waiting)
        if row is not None:
            machine.clocks.acquire(fragment.warp, row)
        if self.mode != "red":
            return
        votes = barrier.result[fragment.waiting]
        result: int | bool = sum(votes)
        if self.reduce != "popc":
            result = all(votes) if self.reduce == "and" else any(votes)
        machine.value(self.target, fragment.warp)[lanes_of(fragment)] = result

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        barrier = self._barrier(machine, fragment)
        number = scalar(machine, self.number, fragment)
        warps = sorted(machine.warp_of(place) for place in barrier.arrived)
        return (
            f"barrier {number}: {32 * len(warps)} of {self._wanted(machine, fragment)} threads "
            f"arrived (warps {', '.join(map(str, warps))})"
        )


@builder("bar{c:|.cta}.sync", gate=True)
@builder("bar{c:|.cta}.arrive", gate=True)
@builder("bar{c:|.cta}.red.popc.u32", gate=True)
@builder("bar{c:|.cta}.red.{o:and|or}.pred", gate=True)
@builder("barrier{c:|.cta}.{m:sync|arrive}{a:|.aligned}", gate=True)
@builder("barrier{c:|.cta}.red.popc{a:|.aligned}.u32", gate=True)
@builder("barrier{c:|.cta}.red.{o:and|or}{a:|.aligned}.pred", gate=True)
def bar(ins: Instruction, d: Decoder) -> CtaBarrier:
    """Named barriers 0 to 15, with and without a thread count."""
    return CtaBarrier(ins, d)


class _Cluster:
    def __init__(self) -> None:
        self.phase = 0
        self.arrived: dict[int, int] = {}
        self.row: Array | None = None
        self.rows: dict[int, Array] = {}


def _cluster(machine: Machine, fragment: Fragment) -> _Cluster:
    key = ("cluster", machine.cta_of(fragment.warp).cluster)
    found: _Cluster = machine.groups.setdefault(key, _Cluster())
    return found


class ClusterArrive(Gate):
    """barrier.cluster.arrive: every thread of the cluster that has not exited."""

    def __init__(self, ins: Instruction) -> None:
        super().__init__(ins)
        self.releases = "relaxed" not in modifiers(ins)

    def enter(self, machine: Machine, fragment: Fragment) -> bool:
        barrier = _cluster(machine, fragment)
        if barrier.arrived.get(fragment.warp, 0) & fragment.mask:
            machine.found(
                "over-arrival",
                "a second barrier.cluster.arrive with no wait between.",
                self.instruction,
                fragment.warp,
            )
        barrier.arrived[fragment.warp] = barrier.arrived.get(fragment.warp, 0) | fragment.mask
        if self.releases:
            row = machine.clocks.release(fragment.warp)
            barrier.row = row if barrier.row is None else np.maximum(barrier.row, row)
        machine.groups["cluster wait", fragment.warp] = barrier.phase
        complete_cluster(machine, fragment, barrier)
        return True


def complete_cluster(machine: Machine, fragment: Fragment, barrier: _Cluster) -> None:
    cluster = machine.cta_of(fragment.warp).cluster
    for cta in machine.ctas:
        if cta.cluster != cluster:
            continue
        for warp in range(machine.warps_per_cta):
            place = machine.warp_place(cta.place, warp)
            if barrier.arrived.get(place, 0) | machine.gone(place) != 0xFFFF_FFFF:
                return
    if barrier.arrived:
        if barrier.row is not None:
            barrier.rows[barrier.phase] = barrier.row
        barrier.phase += 1
        barrier.arrived, barrier.row = {}, None


class ClusterWait(Gate):
    """barrier.cluster.wait"""

    def ready(self, machine: Machine, fragment: Fragment) -> bool:
        barrier = _cluster(machine, fragment)
        phase = machine.groups.get(("cluster wait", fragment.warp), -1)
        if barrier.phase <= phase:
            complete_cluster(machine, fragment, barrier)
        return bool(barrier.phase > phase)

    def leave(self, machine: Machine, fragment: Fragment) -> None:
        barrier = _cluster(machine, fragment)
        row = barrier.rows.get(machine.groups.get(("cluster wait", fragment.warp), -1))
        if row is not None:
            machine.clocks.acquire(fragment.warp, row)
            machine.clocks.converge(fragment.warp)

    def describe(self, machine: Machine, fragment: Fragment) -> str:
        barrier = _cluster(machine, fragment)
        warps = [
            f"{machine.cta_of(place).number}.{machine.warp_of(place)}" for place in barrier.arrived
        ]
        return f"the cluster barrier: arrived are (CTA.warp) {', '.join(sorted(warps)) or 'none'}"


@builder("barrier.cluster.arrive{o:|.release|.relaxed}{a:|.aligned}", gate=True)
def cluster_arrive(ins: Instruction, d: Decoder) -> ClusterArrive:
    """Arrives; `.relaxed` orders nothing."""
    return ClusterArrive(ins)


@builder("barrier.cluster.wait{o:|.acquire}{a:|.aligned}", gate=True)
def cluster_wait(ins: Instruction, d: Decoder) -> ClusterWait:
    """Waits for every thread of the cluster."""
    return ClusterWait(ins)
