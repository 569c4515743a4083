"""Whether the samples of a measurement belong to its arms, as they do unless a file was changed."""

from __future__ import annotations

from itertools import chain

from kernelexp.model.measurement import Measurement


def fault(taken: Measurement) -> str:
    """Says what is wrong with samples, as the end of a sentence; empty where nothing is."""
    names = {arm.name for arm in taken.arms}
    if len(names) < len(taken.arms):
        return "has two arms of one name"
    rows = (row for worker in taken.workers for block in worker.blocks for row in block.rows)
    peers = (row for worker in taken.workers for row in worker.peer_rows)
    arms = len(taken.arms)
    # Of thousands of rows, with one of a few orders.
    shapes = {(row.order, len(row.times_us)) for row in chain(rows, peers)}
    if any(len(order) != times or max(order, default=-1) >= arms for order, times in shapes):
        return "has a row of samples that are not of its arms"
    return ""
