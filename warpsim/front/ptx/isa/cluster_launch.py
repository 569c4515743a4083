"""clusterlaunchcontrol: launches that are cancelled, whose work a running cluster takes over."""

from __future__ import annotations

import numpy as np

from warpsim.front.ptx.decoder import PtxDecoder
from warpsim.front.ptx.registry import builder
from warpsim.machine.copies import cluster_launches
from warpsim.machine.core.arrays import Array, Mask
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.wave.machine import Machine, Op, WarpSet, each_thread

_QUERY = "clusterlaunchcontrol.query_cancel"


@builder(
    "clusterlaunchcontrol.try_cancel.async{s:|.shared::cta}.mbarrier::complete_tx::bytes"
    "{m:|.multicast::cluster::all}.b128"
)
def try_cancel(d: PtxDecoder) -> Op:
    """Cancels the last cluster of the grid that has not started. Of a kernel that has this
    instruction, two clusters are resident at a time."""
    to, barrier = d.pointer(d.operands[0]), d.pointer(d.operands[1])
    multicast = "multicast::cluster::all" in d.parts

    def act(machine: Machine, issuer: Issuer, R: list[Array], row: int, lane: int) -> None:
        at, bar = to.value(R, row, lane), barrier.value(R, row, lane)
        cluster_launches.try_cancel(machine, issuer, at, bar, multicast=multicast)

    return each_thread(d.site, act)


@builder(f"{_QUERY}.is_canceled.pred.b128")
def is_canceled(d: PtxDecoder) -> Op:
    low, high = d.halves(d.operands[1])
    target = d.destination(d.operands[0])

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        np.copyto(R[target], cluster_launches.cancelled(R[low], R[high]), where=m)

    return op


@builder(f"{_QUERY}.get_first_ctaid.v4.b32.b128")
def first_ctaid(d: PtxDecoder) -> Op:
    low, high = d.halves(d.operands[1])
    targets = d.destinations(d.operands[0], 4)[:3]

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        for target, value in zip(targets, cluster_launches.first_cta(R[low], R[high]), strict=True):
            np.copyto(R[target], value, where=m)

    return op


@builder(f"{_QUERY}.get_first_ctaid::{{d:x|y|z}}.b32.b128")
def one_of_first_ctaid(d: PtxDecoder) -> Op:
    low, high = d.halves(d.operands[1])
    target, axis = d.destination(d.operands[0]), "xyz".index(d.parts[2][-1])

    def op(R: list[Array], m: Mask, warps: WarpSet) -> None:
        np.copyto(R[target], cluster_launches.first_cta(R[low], R[high])[axis], where=m)

    return op
