"""Named barriers of a CTA, and the barrier of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from warpsim.front.sass.decoder import SassDecoder, copyto
from warpsim.front.sass.registry import covers
from warpsim.front.sass.syntax import UNPACK, LiteralOperand, Operand, RegisterOperand
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.sync.barriers import (
    ClusterArrive,
    ClusterWait,
    CtaBarrier,
    Vote,
    VoteOperation,
)
from warpsim.machine.wave.machine import Op, WarpSet


def _numbers(d: SassDecoder, operands: list[Operand]) -> tuple[int, int]:
    """The slots of the barrier's number and of its threads."""
    if is_packed(operands):
        return d.scratch("barrier", 32), d.scratch("threads", 32)
    if len(operands) > 2 or not all(
        isinstance(operand, LiteralOperand) for operand in operands[1:]
    ):
        raise d.refuse("has a number of threads that is not covered")
    number, threads = [*operands, LiteralOperand(0)][:2]
    return d.words(d.unsigned(number), 1)[0], d.words(threads, 1)[0]


def is_packed(operands: Sequence[Operand]) -> bool:
    """Whether one register names both: the barrier in bits 0 to 3, the threads from bit 16 on."""
    named = [
        operand
        for operand in operands
        if isinstance(operand, RegisterOperand) and operand.file == "R"
    ]
    return len(named) == 2 and named[0].index == named[1].index


@covers(UNPACK)
def unpack(d: SassDecoder) -> Op:
    """Before a barrier that a register names: its number and its threads."""
    read = d.bits(d.operands[0])
    number, threads = d.scratch("barrier", 32), d.scratch("threads", 32)

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        packed = read(R)
        copyto(R[number], packed & np.uint32(15), where=m)
        copyto(R[threads], packed >> np.uint32(16) & np.uint32(0xFFF), where=m)

    return op


@covers("BAR.SYNC{:|.DEFER_BLOCKING}", "BAR.ARV")
def bar(d: SassDecoder) -> CtaBarrier:
    """A warp counts as 32 threads, once all its lanes that are left have come."""
    number, count = _numbers(d, list(d.operands))
    waits = "SYNC" in d.modifiers
    return CtaBarrier(d.site, number=number, count=count, aligned=False, waits=waits, vote=None)


@covers("BAR.RED.{:POPC|AND|OR}.DEFER_BLOCKING")
def bar_red(d: SassDecoder) -> CtaBarrier:
    """The same with a reduction of the threads' predicates."""
    *operands, source = d.operands
    number, count = _numbers(d, operands)
    name = d.instruction.modifiers[1].lower()
    operation = next(get_arg for get_arg in get_args(VoteOperation) if get_arg == name)
    predicate, negated = d.predicate_slot(source)
    vote = Vote(operation, predicate, negated, d.scratch("vote", 32))
    return CtaBarrier(d.site, number=number, count=count, aligned=False, waits=True, vote=vote)


@covers("B2R.RESULT")
def result(d: SassDecoder) -> Op:
    """What the last reduction gave."""
    target, *others = d.operands
    slot, source = d.to(target), d.scratch("vote", 32)
    predicates = [d.to_predicate(other) for other in others]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        copyto(R[slot], R[source], where=m)
        for predicate in predicates:
            copyto(R[predicate], R[source] != np.uint32(0), where=m)

    return op


@covers("UCGABAR_ARV")
def cluster_arrive(d: SassDecoder) -> ClusterArrive:
    """The lanes of a warp arrive at the barrier of the cluster."""
    d.take(d.operands, 0)
    return ClusterArrive(d.site, releases=True)


@covers("UCGABAR_WAIT")
def cluster_wait(d: SassDecoder) -> ClusterWait:
    """Waits for every thread of the cluster that has not exited."""
    d.take(d.operands, 0)
    return ClusterWait(d.site)
