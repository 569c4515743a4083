"""Barriers of a CTA and of a cluster."""

from __future__ import annotations

from typing import get_args

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.front.ptx.syntax import Immediate
from warpsim.machine.sync.barriers import (
    ClusterArrive,
    ClusterWait,
    CtaBarrier,
    Vote,
    VoteOperation,
)


@builder("bar{c:|.cta}.sync", gate=True)
@builder("bar{c:|.cta}.arrive", gate=True)
@builder("bar{c:|.cta}.red.popc.u32", gate=True)
@builder("bar{c:|.cta}.red.{o:and|or}.pred", gate=True)
@builder("barrier{c:|.cta}.{m:sync|arrive}{a:|.aligned}", gate=True)
@builder("barrier{c:|.cta}.red.popc{a:|.aligned}.u32", gate=True)
@builder("barrier{c:|.cta}.red.{o:and|or}{a:|.aligned}.pred", gate=True)
def bar(d: PtxDecoder) -> CtaBarrier:
    """Named barriers 0 to 15, with and without a thread count."""
    parts, operands = d.parts, list(d.operands)
    vote = None
    if "red" in parts:
        operation = next(o for o in get_args(VoteOperation) if o in parts)
        target = d.destination(operands.pop(0))
        vote = Vote(operation, *d.predicate(operands.pop()), target)
    return CtaBarrier(
        d.site,
        number=d.source(operands[0], "u32"),
        count=d.source(operands[1] if len(operands) > 1 else Immediate(0), "u32"),
        aligned=parts[0] == "bar" or "aligned" in parts,
        waits="arrive" not in parts,
        vote=vote,
    )


@builder("barrier.cluster.arrive{o:|.release|.relaxed}{a:|.aligned}", gate=True)
def cluster_arrive(d: PtxDecoder) -> ClusterArrive:
    """Arrives; `.relaxed` orders what the warps of one CTA do, and nothing between CTAs."""
    return ClusterArrive(d.site, "relaxed" not in d.parts)


@builder("barrier.cluster.wait{o:|.acquire}{a:|.aligned}", gate=True)
def cluster_wait(d: PtxDecoder) -> ClusterWait:
    """Waits for every thread of the cluster."""
    return ClusterWait(d.site)
