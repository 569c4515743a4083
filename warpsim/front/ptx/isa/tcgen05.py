"""The fifth-generation tensor core: products, copies to tensor memory, shifts, and commit."""

from __future__ import annotations

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Address, Vector
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.core.instruction_descriptor import DescriptorFields, shape_of
from warpsim.machine.sync.gates import AddressSlot
from warpsim.machine.tensor import tensor_core, tmem_copies
from warpsim.machine.tensor.scale_factors import Factors
from warpsim.machine.tensor.tensor_core import Mma
from warpsim.machine.tensor.tmem_copies import TmemCopy
from warpsim.machine.wave.machine import Machine, Op, each_thread, each_warp

_GROUP = "{g:cta_group::1|cta_group::2}"


@builder("tcgen05.fence::{w:before_thread_sync|after_thread_sync}")
def fence(d: PtxDecoder) -> Op:
    """Orders tensor-memory accesses around what synchronises threads; if missing: a warning."""
    before = d.parts[1].endswith("before_thread_sync")
    return each_warp(lambda machine, warp: machine.clocks.fence_tensor_memory(warp, before=before))


_REUSE = "{c:|.collector::a::discard|.collector::a::fill|.collector::a::use|.collector::a::lastuse}"
_REUSE_B = ".collector::{b:b0|b1|b2|b3}::{u:discard|fill|use|lastuse}"
_PLAIN = "kind::{k:f8f6f4|f16|tf32|i8}"


class _MmaOperands:
    """D, A, B and the instruction descriptor, as all forms begin."""

    def __init__(self, d: PtxDecoder) -> None:
        self._to = d.pointer(d.operands[0])
        # The address of A in tensor memory stands in brackets, a descriptor does not.
        self.a_in_tmem = isinstance(d.operands[1], Address)
        self._a = (
            d.pointer(d.operands[1])
            if self.a_in_tmem
            else AddressSlot(d.source(d.operands[1], "b64"), 0)
        )
        self._b, self._descriptor = d.source(d.operands[2], "b64"), d.source(d.operands[3], "b32")

    def descriptor(self, R: list[Array], row: int, lane: int) -> int:
        return int(R[self._descriptor][row, lane])

    def mma(
        self, R: list[Array], row: int, lane: int, shape: DescriptorFields, accumulate: bool
    ) -> Mma:
        return Mma(
            shape=shape,
            d=self._to.value(R, row, lane),
            a=self._a.value(R, row, lane),
            a_in_tmem=self.a_in_tmem,
            b=int(R[self._b][row, lane]),
            accumulate=accumulate,
        )


@builder(f"tcgen05.mma.{_GROUP}.{_PLAIN}{_REUSE}")
def mma(d: PtxDecoder) -> Op:
    """Dense, one and two CTAs, A from shared or tensor memory, all swizzles, transposed operands;
    the tensor core's own precision. Sparse forms and `.ashift` are rejected."""
    kind, group, operands = d.parts[3].removeprefix("kind::"), int(d.parts[2][-1]), _MmaOperands(d)
    enable, *rest = d.operands[4:]
    disabled: list[int] = []
    if isinstance(enable, Vector):
        disabled = d.sources(enable, "b32", 4 * group)
        enable, *rest = rest
    accumulates, flip = d.predicate(enable)
    if rest:
        raise d.refuse("scales its input, which the emulator does not model")

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        shape = shape_of(operands.descriptor(R, row, lane), kind, group)
        mma = operands.mma(R, row, lane, shape, bool(R[accumulates][row, lane]) != flip)
        lanes = tuple(int(R[slot][row, lane]) for slot in disabled)
        tensor_core.issue(machine, issuer, mma._replace(disabled=lanes))

    return each_thread(d.site, act)


@builder(f"tcgen05.mma.{_GROUP}.kind::mxf8f6f4.block_scale{{v:|.scale_vec::1X|.block32}}{_REUSE}")
@builder(f"tcgen05.mma.{_GROUP}.kind::mxf4.block_scale{{v:|.scale_vec::2X|.block32}}{_REUSE}")
@builder(
    f"tcgen05.mma.{_GROUP}.kind::mxf4nvf4.block_scale"
    f"{{v:.scale_vec::2X|.scale_vec::4X|.block16|.block32}}{_REUSE}"
)
def mma_block_scale(d: PtxDecoder) -> Op:
    """Dense; the scale factors are the same in all four quarters of tensor memory's lanes, or it is
    a finding. Types of 4 and 6 bits are padded for mxf8f6f4, and in pairs for the others."""
    kind, group, operands = d.parts[3].removeprefix("kind::"), int(d.parts[2][-1]), _MmaOperands(d)
    few = 1 if kind == "mxf8f6f4" else 2
    scales = 4 if {"scale_vec::4X", "block16"} & set(d.parts) else few
    a_scales, b_scales = (d.pointer(operand) for operand in d.operands[4:6])
    accumulates, flip = d.predicate(d.operands[6])

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        shape = shape_of(operands.descriptor(R, row, lane), kind, group, scales=scales)
        mma = operands.mma(R, row, lane, shape, bool(R[accumulates][row, lane]) != flip)
        factors = (
            Factors(shape, a_scales.value(R, row, lane), of_b=False),
            Factors(shape, b_scales.value(R, row, lane), of_b=True),
        )
        tensor_core.issue(machine, issuer, mma._replace(factors=factors))

    return each_thread(d.site, act)


@builder(f"tcgen05.mma.ws.cta_group::1.{_PLAIN}{_REUSE_B}")
@builder(f"tcgen05.mma.ws.cta_group::1.{_PLAIN}")
def mma_ws(d: PtxDecoder) -> Op:
    """Dense, with M of 32, 64 and 128. A mask of zero columns is rejected, as is A in tensor memory
    with M below 128."""
    kind, operands = d.parts[4].removeprefix("kind::"), _MmaOperands(d)
    accumulates, flip = d.predicate(d.operands[4])
    mask = d.source(d.operands[5], "b64") if len(d.operands) > 5 else None

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        shape = shape_of(operands.descriptor(R, row, lane), kind, 1, stationary=True)
        zeros = 0 if mask is None else int(R[mask][row, lane])
        mma = operands.mma(R, row, lane, shape, bool(R[accumulates][row, lane]) != flip)
        tensor_core.issue_stationary(machine, issuer, mma, zeros)

    return each_thread(d.site, act)


_WIDENED = {"b4x16_p64": 4, "b6x16_p32": 6}


@builder(
    f"tcgen05.cp.{_GROUP}.{{s:{'|'.join(tmem_copies.SHAPES)}}}{{f:|.b8x16.b6x16_p32|.b8x16.b4x16_p64}}"
)
def cp(d: PtxDecoder) -> Op:
    """From the shared memory of each CTA of the group to its tensor memory; 4- and 6-bit codes
    widened to bytes."""
    group, bits = int(d.parts[2][-1]), _WIDENED.get(d.parts[-1], 0)
    shape = ".".join(part for part in d.parts[3:5] if not part.startswith("b8x16"))
    to, source = d.pointer(d.operands[0]), d.source(d.operands[1], "b64")

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        copy = TmemCopy(shape, group, to.value(R, row, lane), int(R[source][row, lane]), bits)
        tmem_copies.copy(machine, issuer, copy)

    return each_thread(d.site, act)


@builder(f"tcgen05.shift.{_GROUP}.down")
@builder(f"tcgen05.shift.down.{_GROUP}")
def shift(d: PtxDecoder) -> Op:
    """Each row of 32 bytes gets what the next one holds, but for the last of each 32 lanes."""
    group = next(int(part[-1]) for part in d.parts if part.startswith("cta_group"))
    at = d.pointer(d.operands[0])

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        tmem_copies.shift(machine, issuer, group, at.value(R, row, lane))

    return each_thread(d.site, act)


@builder(
    f"tcgen05.commit.{_GROUP}.mbarrier::arrive::one{{s:|.shared::cluster}}{{m:|.multicast::cluster}}.b64"
)
def commit(d: PtxDecoder) -> Op:
    """One arrival when what the thread has asked of the tensor core so far is done, in every CTA of
    the mask."""
    bar = d.pointer(d.operands[0])
    multicast = "multicast::cluster" in d.parts
    ranks = d.source(d.operands[1], "u16") if multicast else None

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        mask = None if ranks is None else int(R[ranks][row, lane])
        tensor_core.commit(machine, issuer, bar.value(R, row, lane), mask)

    return each_thread(d.site, act)
