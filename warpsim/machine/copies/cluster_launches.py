"""clusterlaunchcontrol: a cluster takes over the work of one that has not started.

The answer is 16 bytes as SASS takes it apart: a word with x of the first CTA, one with y and z, and
one that is 1 if a launch was cancelled. The last clusters of the grid are cancelled first.
"""

from __future__ import annotations

import numpy as np

from warpsim.machine.copies.copying import CopyDestination, Landing, issue_load, land, landings
from warpsim.machine.core.arrays import Array
from warpsim.machine.core.asynchronous import Issuer
from warpsim.machine.memory import tma
from warpsim.machine.wave.machine import Machine

BYTES = 16


def try_cancel(machine: Machine, issuer: Issuer, to: int, barrier: int, *, multicast: bool) -> None:
    """Asks for a cluster; the answer goes to the issuer's CTA, or to all of its cluster."""
    ranks = (1 << machine.cluster_size) - 1 if multicast else None
    places = landings(machine, issuer, CopyDestination(to, barrier, ranks), BYTES, BYTES)
    answer = np.zeros(4, np.uint32)
    index = machine.cancel()
    if index is not None:
        x, y, z = index
        answer[:3] = x, y | z << 16, 1

    def arrive(place: Landing) -> None:
        land(machine, issuer, place, answer.view(np.uint8), tma.LINEAR)

    what = "the answer to a clusterlaunchcontrol.try_cancel"
    issue_load(machine, issuer, places, BYTES, what, arrive)


def cancelled(low: Array, high: Array) -> Array:
    """Whether answers, as halves of 64 bits, say that a launch was cancelled."""
    return high & np.uint64(1) != 0


def first_cta(low: Array, high: Array) -> tuple[Array, Array, Array]:
    """x, y and z of the first CTA of the cluster."""
    y = low >> np.uint64(32) & np.uint64(0xFFFF)
    x, y, z = (value.astype(np.uint32) for value in (low, y, low >> np.uint64(48)))
    return x, y, z
