"""Costs of LDGSTS and of tensor copies over an edge, compared with what ncu counted on an H200."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from warpsim.launch import TensorMap
from warpsim.machine.counts.copy_cost import copy_cost
from warpsim.machine.memory import tma

_FOLDER = Path(__file__).parent
_ONE_MORE = {1832, 3714}
"""Patterns of which ncu has a wavefront more, for no reason that is known."""
_TWO_WRITERS = {3590, 3709, 3718, 3751}
"""Two lanes write one place, one of them zeros."""


def test_patterns_of_copies_cost_what_ncu_counted() -> None:
    with np.load(_FOLDER / "copies.npz") as file:
        recorded = dict(file)
    to, source = (recorded[name].astype(np.int64) for name in ("to", "source"))
    active, read = (
        np.unpackbits(recorded[name], axis=1).astype(bool) for name in ("active", "read")
    )
    other = set()
    for i, counted in enumerate(recorded["counts"].tolist()):
        cost = copy_cost(
            to[i : i + 1],
            source[i : i + 1],
            int(recorded["width"][i]),
            active=active[i : i + 1],
            read=read[i : i + 1],
            bypasses=bool(recorded["bypasses"][i]),
            fills=bool(recorded["fills"][i]),
        )
        if list(cost[:5]) != counted:
            other.add(i)
    assert len(to) == 4309
    assert other == _ONE_MORE | _TWO_WRITERS


def test_boxes_over_every_edge_move_the_sectors_that_ncu_counted() -> None:
    with (_FOLDER / "boxes.csv").open(newline="") as file:
        lines = [{name: int(text) for name, text in row.items()} for row in csv.DictReader(file)]
    other = {}
    for line in lines:
        tensor = TensorMap(
            array="data",
            element="u8",
            shape=(line["columns"], line["rows"]),
            strides_bytes=(line["pitch"],),
            box=(line["box_columns"], line["box_rows"]),
        )
        sectors = tma.sectors(tensor, 0, (line["x"], line["y"]), load=True)
        if sectors != line["sectors"]:
            other[tuple(line.values())] = sectors
    assert len(lines) == 120
    assert other == {}


def test_a_whole_warp_has_the_cost_of_its_lanes_wherever_its_lines_lie() -> None:
    lanes = np.arange(32, dtype=np.int64)[None]
    every = np.ones((1, 32), bool)
    how = {"active": every, "read": every, "bypasses": True, "fills": False}
    here = copy_cost(16 * lanes + 16, 16 * lanes, 16, **how)
    moved = copy_cost(16 * lanes + 16 + 128 * 7, 16 * lanes + 128 * 3, 16, **how)
    assert here == moved
    assert (here.wavefronts, here.sectors, here.l1_sectors) == (12, 32, 20)


def test_two_warps_cost_the_sum_of_each() -> None:
    lanes = np.arange(32, dtype=np.int64)
    to, source = np.stack([4 * lanes, 128 * lanes]), np.stack([4 * lanes, 4 * lanes])
    every = np.ones((2, 32), bool)
    cost = copy_cost(to, source, 4, active=every, read=every, bypasses=False, fills=False)
    assert (cost.wavefronts, cost.sectors, cost.requests) == (1 + 32, 8, 2)
