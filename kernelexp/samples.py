"""Whether the samples of a measurement belong to its arms, as they do unless a file was changed."""

from __future__ import annotations

from kernelexp.measurement import Measurement, Row


def fault(taken: Measurement) -> str:
    """What is wrong with them, as the end of a sentence; empty where nothing is."""
    names = {arm.name for arm in taken.arms}
    if len(names) < len(taken.arms):
        return "has two arms of one name"
    rows = (row for worker in taken.workers for block in worker.blocks for row in block.rows)
    peers = (row for worker in taken.workers for row in worker.peer_rows)
    for row in (*rows, *peers):
        if not _fits(row, len(taken.arms)):
            return "has a row of samples that are not of its arms"
    return ""


def _fits(row: Row, arms: int) -> bool:
    return len(row.order) == len(row.times_us) and max(row.order, default=-1) < arms
