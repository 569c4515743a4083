"""Executes some CTAs of a launch and keeps what each warp did, for the replay.

A stream is the blocks that a warp ran, and figures: of an access the wavefronts or the sectors it
touched, of a barrier the token that it signals or waits for. A token is one phase of one barrier,
so that whoever waited for a phase in the emulation waits for the same arrivals in the replay.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from warpsim import compiled
from warpsim.front.sass import decode
from warpsim.front.sass.syntax import MachineInstruction
from warpsim.launch import Launch
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.findings import Fatal
from warpsim.machine.core.site import Site
from warpsim.machine.memory.execution import Execution
from warpsim.machine.memory.layout import GLOBAL_BASE
from warpsim.machine.memory.residents import Cta
from warpsim.machine.schedule.batches import Batch
from warpsim.machine.schedule.interpreter import Place
from warpsim.machine.schedule.program import BasicBlock, DecodedProgram
from warpsim.machine.schedule.scheduler import Scheduler
from warpsim.machine.sync.barriers import BARRIERS as BARRIERS
from warpsim.machine.sync.barriers import (
    Barrier,
    ClusterArrive,
    ClusterBarriers,
    ClusterWait,
    CtaBarrier,
    CtaBarriers,
)
from warpsim.machine.sync.gates import Fragment, scalar
from warpsim.machine.sync.phases import PhaseTest
from warpsim.machine.wave.machine import Machine
from warpsim.machine.wave.mbarrier import Mbarrier
from warpsim.schedule import Schedule
from warpsim.timing import footprints
from warpsim.timing.errors import NotModelled
from warpsim.timing.footprints import APART, AccessFootprint

Gate: TypeAlias = Literal["", "sync", "test"]
"""A barrier that holds the warp, a test of an mbarrier's phase that holds who needs the answer."""
_POINTER, _INT, _LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64


class Recorder:
    """Streams of warps, in compiled memory."""

    def __init__(self, warps: int) -> None:
        if not compiled.is_loaded():
            raise NotModelled("a modelled time needs the compiled part of the emulator.")
        address = ctypes.c_void_p()
        compiled.function("kx_record_open", _LONG, _POINTER)(warps, ctypes.addressof(address))
        self.address = address.value
        self.warps = warps
        self.tokens: dict[tuple[object, ...], int] = {}
        """By barrier and phase."""
        self.expected: list[int] = []
        """How often each is signalled."""
        self._block = compiled.function("kx_record_block", _POINTER, _POINTER, _LONG, _INT)
        self._figures = compiled.function("kx_record_figures", _POINTER, _LONG, _POINTER, _LONG)
        accesses = (_POINTER, _POINTER, _LONG, _POINTER, _POINTER, _INT)
        self._shared = compiled.function("kx_record_shared", *accesses, _INT)
        self._global = compiled.function("kx_record_global", *accesses, _INT)
        self._close = compiled.function("kx_record_close", _POINTER)

    def __del__(self) -> None:
        if compiled.is_loaded() and getattr(self, "address", None):
            self._close(self.address)

    def token(self, *key: object) -> int:
        """The number of a phase of a barrier."""
        number = self.tokens.setdefault(key, len(self.tokens))
        if number == len(self.expected):
            self.expected.append(0)
        return number

    def signal(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self.expected[token] += 1

    def block(self, places: Array, first: int) -> None:
        self._block(self.address, places.ctypes.data, len(places), first)

    def figures(self, place: int, *figures: int) -> None:
        content = np.array(figures, np.int64)
        self._figures(self.address, place, content.ctypes.data, len(content))

    def shared(
        self, places: Array, addresses: Array, on: Array | None, size: int, pairs: bool
    ) -> None:
        self._shared(self.address, *_access(places, addresses, on), size, pairs)

    def globally(
        self, places: Array, addresses: Array, on: Array | None, size: int, atomic: bool = False
    ) -> None:
        self._global(self.address, *_access(places, addresses, on), size, atomic)

    def sizes(self) -> Array:
        """Of each warp: blocks, figures."""
        sizes = np.zeros((self.warps, 2), np.int64)
        compiled.function("kx_record_sizes", _POINTER, _POINTER)(self.address, sizes.ctypes.data)
        return sizes

    def content(self) -> tuple[Array, Array]:
        """The blocks and the figures of all warps, one after the other."""
        blocks, figures = self.sizes().sum(axis=0)
        streams, numbers = np.zeros(blocks, np.int32), np.zeros(figures, np.int64)
        read = compiled.function("kx_record_read", _POINTER, _POINTER, _POINTER)
        read(self.address, streams.ctypes.data, numbers.ctypes.data)
        return streams, numbers


def _access(places: Array, addresses: Array, on: Array | None) -> tuple[int | None, ...]:
    _access.kept = places, addresses, on  # type: ignore[attr-defined]
    mask = None if on is None else on.ctypes.data
    return places.ctypes.data, len(places), addresses.ctypes.data, mask


class RecordedExtent(msgspec.Struct, frozen=True, kw_only=True):
    """Where an array of the launch lies."""

    name: str
    first: int
    end: int


class BlockShape(msgspec.Struct, frozen=True, kw_only=True):
    """What of a block is not in a stream."""

    last: int
    """The number after the last instruction's."""
    gate: Gate = ""
    """What its first instruction is, if it synchronises."""


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """What CTAs of a launch did."""

    sizes: Any
    """Blocks and figures of each warp; a warp's place is (warp of its CTA) * CTAs + CTA."""
    streams: Any
    """The blocks of all warps, one after the other: the number of the first instruction."""
    figures: Any
    """Of all warps."""
    signals: tuple[int, ...]
    """How often each token is signalled."""
    code: tuple[MachineInstruction, ...]
    """The instructions of the entry."""
    blocks: Mapping[int, BlockShape]
    """By their first instruction."""
    sm: int
    """The architecture as a number: 90 for sm_90a."""
    arrays: tuple[RecordedExtent, ...]
    shared_bytes: int
    """Of a CTA."""
    ctas: tuple[int, ...]
    """The CTAs, as numbers of the launch; whole clusters."""
    warps_per_cta: int
    cluster_size: int
    warp_instructions: int


class _TracedExecution(Execution):
    """As many CTAs resident as are recorded."""

    chosen: tuple[int, ...] = ()

    def _resident(self) -> int:
        return len(self.chosen)


class _TracedMachine(Machine):
    """The chosen CTAs as one wave."""

    def _cta(self, number: int, place: int) -> Cta:
        chosen = self.execution.chosen  # type: ignore[attr-defined]
        return super()._cta(chosen[place], place)


class _Recording(Scheduler):
    """A scheduler that records what it runs, block by block."""

    goes_on = False

    def __init__(
        self,
        machine: Machine,
        program: DecodedProgram,
        limit: int,
        recorder: Recorder,
        prints: Mapping[int, AccessFootprint],
    ) -> None:
        super().__init__(machine, program, limit)
        self.recorder = recorder
        self._prints = prints
        self._signals: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """(token, bytes) by the place of the warp that is the cause."""
        self._cause = 0
        self._watch(machine)

    def _watch(self, machine: Machine) -> None:
        """Notes what signals mbarriers."""
        barriers = machine.mbarriers
        find, aim = barriers.find, barriers.aim
        arrive, landed = barriers.arrive, barriers.landed

        def noted_find(place: int, address: int, site: Site) -> Mbarrier | None:
            self._cause = place
            return find(place, address, site)

        def noted_aim(place: int, *others: Any) -> None:
            self._cause = place
            aim(place, *others)

        def noted_arrive(barrier: Mbarrier, count: int, *others: Any, **named: Any) -> None:
            self._signals[self._cause].append((self._phase(barrier, barrier.phase), 0))
            arrive(barrier, count, *others, **named)

        def noted_landed(barrier: Mbarrier | None, size: int, issuer: Issuer) -> None:
            if barrier is not None:
                token = self._phase(barrier, barrier.phase)
                self._signals[issuer.place].append((token, size))
            landed(barrier, size, issuer)

        barriers.find = noted_find  # type: ignore[method-assign]
        barriers.aim = noted_aim  # type: ignore[assignment, method-assign]
        barriers.arrive = noted_arrive  # type: ignore[method-assign]
        barriers.landed = noted_landed  # type: ignore[method-assign]

    def _phase(self, barrier: Mbarrier, phase: int) -> int:
        return self.recorder.token("mbarrier", barrier.offset, phase)

    def _execute(self, batch: Batch, block: BasicBlock, turn: int, polls: int) -> Place:
        warps, recorder = batch.set, self.recorder
        places = np.ascontiguousarray(warps.warps, np.int64)
        recorder.block(places, block.first)
        footprint = self._prints.get(block.first)
        if footprint is None:
            return super()._execute(batch, block, turn, polls)
        footprint.before(recorder, batch, places)
        if not footprint.signals:
            return super()._execute(batch, block, turn, polls)
        self._signals.clear()
        after = super()._execute(batch, block, turn, polls)
        for row, place in enumerate(places.tolist()):
            footprint.after(recorder, batch, row, place, self._signals.get(place, ()))
        return after

    def _arrive(self, batch: Batch, block: BasicBlock) -> bool:
        places = np.ascontiguousarray(batch.set.warps, np.int64)
        self.recorder.block(places, block.first)
        for fragment in batch.fragments:
            self._gate(fragment, block)
        return super()._arrive(batch, block)

    def _gate(self, fragment: Fragment, block: BasicBlock) -> None:
        """The tokens that a fragment signals and waits for."""
        gate, machine, place = block.gate, self.machine, fragment.warp
        if isinstance(gate, CtaBarrier):
            cta = machine.cta_of(place).place
            number = scalar(machine, gate.number, fragment)
            meeting = machine.state(CtaBarriers).setdefault((cta, number), Barrier())
            token = self.recorder.token("barrier", cta, number, meeting.generation)
            self._sync(place, [token], [token] if gate.waits else [])
        elif isinstance(gate, ClusterArrive):
            generation = machine.state(ClusterBarriers).of(machine, fragment).generation
            self._sync(place, [self._cluster(place, generation)], [])
        elif isinstance(gate, ClusterWait):
            arrived = machine.state(ClusterBarriers).arrivals.get(place, -1)
            self._sync(place, [], [self._cluster(place, arrived)] if arrived >= 0 else [])
        elif isinstance(gate, PhaseTest):
            waits = []
            tests = gate._asked(machine, fragment)
            # A card's try_wait sleeps until its phase is over; the emulator's says no once before.
            phases = sum(barrier.phase for barrier, _, _ in tests if barrier is not None)
            fragment.polls[gate.site.number] = phases
            for barrier, wanted, _ in tests:
                if barrier is not None:
                    phase = barrier.phase - (barrier.phase & 1 != wanted)
                    waits += [self._phase(barrier, phase)] if phase >= 0 else []
            self._sync(place, [], waits)

    def _cluster(self, place: int, generation: int) -> int:
        return self.recorder.token("cluster", self.machine.cta_of(place).cluster, generation)

    def _sync(self, place: int, signalled: Sequence[int], waited: Sequence[int]) -> None:
        self.recorder.signal(signalled)
        self.recorder.figures(place, len(signalled), *signalled, len(waited), *waited)


def record(
    cubin: bytes,
    listing: str,
    launch: Launch,
    arrays: Mapping[str, Array],
    ctas: Sequence[int],
    limit: int = 20_000_000,
) -> Recording:
    """Executes these CTAs of the launch, numbered cluster by cluster, and no others.

    NotModelled where one of them waits for a CTA that is not among them, or comes to no end; what
    the emulator does not cover is refused as by load_cubin().
    """
    program, decoder = decode.decode_apart(cubin, listing, launch.entry, APART)
    prints = footprints.of(decoder)
    schedule = Schedule(seed=0, asynchrony="early")
    chosen = tuple(ctas)

    class Chosen(_TracedExecution):
        pass

    Chosen.chosen = chosen
    with np.errstate(all="ignore"):
        execution = Chosen(program.image, launch, arrays, frozenset(), schedule)
        execution.grid_ctas = len(chosen)
        machine = _TracedMachine(execution, 0)
        recorder = Recorder(execution.warps)
        scheduler = _Recording(machine, program, limit, recorder, prints)
        try:
            scheduler.run()
        except Fatal:
            pass
    ending = [f for f in execution.findings.all() if f.name in _ENDING and not f.survived]
    if scheduler.hang or ending:
        why = ending[0].sentence if ending else "warps wait for ever."
        raise NotModelled(f"{launch.entry}: the CTAs that were executed came to no end: {why}")
    streams, figures = recorder.content()
    return Recording(
        sizes=recorder.sizes(),
        streams=streams,
        figures=figures,
        signals=tuple(recorder.expected),
        code=tuple(decoder.code),
        blocks={x: BlockShape(last=b.last, gate=_gate_of(b)) for x, b in program.blocks.items()},
        sm=decoder.sm,
        arrays=tuple(
            RecordedExtent(name=name, first=GLOBAL_BASE + x.start, end=GLOBAL_BASE + x.stop)
            for name, x in footprints.extents(execution.world).items()
        ),
        shared_bytes=execution.layout.stride,
        ctas=chosen,
        warps_per_cta=execution.warps_per_cta,
        cluster_size=execution.cluster_size,
        warp_instructions=execution.steps,
    )


def _gate_of(block: BasicBlock) -> Gate:
    if isinstance(block.gate, CtaBarrier | ClusterArrive | ClusterWait):
        return "sync"
    return "test" if isinstance(block.gate, PhaseTest) else ""


_ENDING = frozenset(
    "hang trap assertion stack step-limit out-of-bounds misaligned read-only".split()
)
