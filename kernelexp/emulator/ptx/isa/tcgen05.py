"""The fifth-generation tensor core: mma and commit."""

from __future__ import annotations

from kernelexp.emulator.machine import tensor_core
from kernelexp.emulator.machine.arrays import Array
from kernelexp.emulator.machine.asynchronous import Issuer
from kernelexp.emulator.machine.gates import Pointer
from kernelexp.emulator.machine.machine import Machine, Op, each_thread, each_warp
from kernelexp.emulator.machine.tensor_core import Mma, Shape
from kernelexp.emulator.ptx.decoder import Decoder
from kernelexp.emulator.ptx.registry import builder
from kernelexp.emulator.ptx.syntax import Address, Vector

_GROUP = "{g:cta_group::1|cta_group::2}"


@builder("tcgen05.fence::{w:before_thread_sync|after_thread_sync}")
def fence(d: Decoder) -> Op:
    """Orders tensor-memory accesses around what synchronises threads; if missing: a warning."""
    before = d.parts[1].endswith("before_thread_sync")
    return each_warp(lambda machine, warp: machine.clocks.fence_tensor_memory(warp, before=before))


@builder(
    f"tcgen05.mma.{_GROUP}.kind::{{k:f8f6f4|f16|tf32|i8}}{{c:|.collector::a::discard|.collector::a::fill|.collector::a::use|.collector::a::lastuse}}"
)
def mma(d: Decoder) -> Op:
    """Dense, one and two CTAs, A from shared or tensor memory, all swizzles, transposed operands;
    the tensor core's own precision. Sparse, block-scaled and .ws forms are rejected."""
    parts = d.parts
    kind, group = parts[3].removeprefix("kind::"), int(parts[2][-1])
    to = d.pointer(d.operands[0])
    # The address of A in tensor memory stands in brackets, a descriptor does not.
    a_in_tmem = isinstance(d.operands[1], Address)
    a = d.pointer(d.operands[1]) if a_in_tmem else Pointer(d.source(d.operands[1], "b64"), 0)
    b, descriptor = d.source(d.operands[2], "b64"), d.source(d.operands[3], "b32")
    enable, *rest = d.operands[4:]
    disabled: list[int] = []
    if isinstance(enable, Vector):
        disabled = d.sources(enable, "b32", 4 * group)
        enable, *rest = rest
    accumulates, flip = d.predicate(enable)
    if rest:
        raise d.refuse("scales its input, which the emulator does not model")

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        mma = Mma(
            shape=Shape(int(R[descriptor][row, lane]), kind, group),
            d=to.value(R, row, lane),
            a=a.value(R, row, lane),
            a_in_tmem=a_in_tmem,
            b=int(R[b][row, lane]),
            accumulate=bool(R[accumulates][row, lane]) != flip,
            disabled=tuple(int(R[slot][row, lane]) for slot in disabled),
        )
        tensor_core.issue(machine, issuer, mma)

    return each_thread(d.site, act)


@builder(
    f"tcgen05.commit.{_GROUP}.mbarrier::arrive::one{{s:|.shared::cluster}}{{m:|.multicast::cluster}}.b64"
)
def commit(d: Decoder) -> Op:
    """One arrival when the thread's MMAs so far have landed, in every CTA of the mask."""
    bar = d.pointer(d.operands[0])
    multicast = "multicast::cluster" in d.parts
    ranks = d.source(d.operands[1], "u16") if multicast else None

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        mask = None if ranks is None else int(R[ranks][row, lane])
        tensor_core.commit(machine, issuer, bar.value(R, row, lane), mask)

    return each_thread(d.site, act)
