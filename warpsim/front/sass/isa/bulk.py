"""Bulk copies: bytes between global memory and the shared memory of a cluster"""

from __future__ import annotations

from warpsim.arithmetic.reductions import reduction
from warpsim.front.sass.decoder import SassDecoder, once_per_warp
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import STORED, Operand
from warpsim.machine.copies import bulk, cluster_launches
from warpsim.machine.copies.copying import CopyDestination, Reduction
from warpsim.machine.copies.scoreboard import GroupsWait
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.wave.machine import Machine, Op

_CHUNK_BITS = 4
"""Sizes are counted in 16 bytes."""
_TYPES = {
    "": ("u32", 4), "S32": ("s32", 4), "U64": ("u64", 8), "S64": ("s64", 8), "F32": ("f32", 4),
    "F64": ("f64", 8), "F16": ("f16", 2), "BF16": ("bf16", 2),
}  # fmt: skip


def _reduction(d: SassDecoder) -> Reduction:
    name, *rest = d.instruction.modifiers[2:]
    kind, size = _TYPES[rest[0] if rest else ""]
    return Reduction(reduction(name.lower(), kind), size)


def _size(R: list[Array], slot: int, row: int) -> int:
    return (int(R[slot][row, 0]) & 0xFFFF) << _CHUNK_BITS


def _operands(d: SassDecoder) -> tuple[Operand, Operand, Operand]:
    """(to, from, size), with a cache hint or without."""
    to, source, size = d.take(d.without_hint(), 3)
    return to, source, size


@covers("UBLKCP.S.G{:|.MULTICAST}", "UBLKCP.S.S")
@covers("UBLKRED.S.S.{:ADD|MIN|MAX}{:|.S32}", "UBLKRED.S.S.{:INC|DEC|AND|OR|XOR}")
@covers("UBLKRED.S.S.ADD.U64")
def load(d: SassDecoder) -> Op:
    """To shared memory, from global memory or the CTA's own shared memory (`.S.S`). A pair of
    registers of the warp names the place and the mbarrier; the upper half of the size is the mask
    of CTAs for `.MULTICAST`."""
    to, source, size = _operands(d)
    place, barrier = d.uniform(to, 2)
    from_shared = d.instruction.modifiers[:2] == ("S", "S")
    address = d.uniform(source, 1 if from_shared else 2)
    (count,) = d.words(d.unsigned(size), 1)
    reduces = _reduction(d) if d.instruction.base == "UBLKRED" else None
    multicast = "MULTICAST" in d.modifiers

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        ranks = int(R[count][row, 0]) >> 16 if multicast else None
        destination = CopyDestination(int(R[place][row, 0]), int(R[barrier][row, 0]), ranks)
        first, length = d.joined(R, address, row), _size(R, count, row)
        bulk.load(machine, issuer, destination, first, length, from_shared, reduces)

    return once_per_warp(d, act)


@covers("UBLKCP.G.S", "UBLKRED.G.S.{:ADD|MIN|MAX}{:|.S32|.U64}", "UBLKRED.G.S.{:MIN|MAX}.S64")
@covers("UBLKRED.G.S.{:AND|OR|XOR}{:|.U64}", "UBLKRED.G.S.ADD.{:F32|F64}.RN")
@covers("UBLKRED.G.S.{:ADD|MIN|MAX}.{:F16|BF16}.RN")
def store(d: SassDecoder) -> Op:
    """From shared to global memory; belongs to the warp's open group."""
    to, source, size = _operands(d)
    address, (place,) = d.uniform(to, 2), d.uniform(source, 1)
    (count,) = d.words(d.unsigned(size), 1)
    reduces = _reduction(d) if d.instruction.base == "UBLKRED" else None

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        first, length = d.joined(R, address, row), _size(R, count, row)
        bulk.store(machine, issuer, first, int(R[place][row, 0]), length, reduces)

    return once_per_warp(d, act)


@covers("UGETNEXTWORKID.{:SELFCAST|BROADCAST}")
def try_cancel(d: SassDecoder) -> Op:
    """Cancels the last cluster of the grid that has not started; the answer comes as a copy does,
    with `.BROADCAST` to all CTAs of the cluster. Of a kernel that has this instruction, two
    clusters are resident at a time."""
    to, barrier = d.take(d.operands, 2)
    (at,), (signalled,) = d.uniform(to, 1), d.uniform(barrier, 1)
    multicast = "BROADCAST" in d.modifiers

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int) -> None:
        places = int(R[at][row, 0]), int(R[signalled][row, 0])
        cluster_launches.try_cancel(machine, issuer, *places, multicast=multicast)

    return once_per_warp(d, act)


@covers("UTMACMDFLUSH")
def flush(d: SassDecoder) -> Op:
    """Closes the warp's group of bulk stores."""
    d.take(d.operands, 0)
    return once_per_warp(d, lambda machine, issuer, *_: bulk.commit(machine, issuer.thread))


@covers(STORED)
def wait_for_stores(d: SassDecoder) -> GroupsWait:
    """Before an instruction whose control word waits for groups of bulk stores: for all of the
    warp's, those too that hold another scoreboard."""
    return GroupsWait(d.site, 0)
