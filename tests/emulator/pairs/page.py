"""Both tables of pairs, and what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pairs.algorithms import ALGORITHMS
from pairs.asynchronous import ASYNCHRONOUS
from pairs.blocks import BLOCKS
from pairs.clusters import CLUSTERS
from pairs.exchanges import EXCHANGES
from pairs.groups import GROUPS
from pairs.lanes import LANES
from pairs.order import ORDER
from pairs.pair import FaultyPair
from pairs.pipelines import PIPELINES
from pairs.roles import ROLES
from pairs.tensor_memory import TENSOR_MEMORY
from pairs.tensors import TENSORS
from pairs.tiles import TILES
from pairs.warps import WARPS

SOURCES = Path(__file__).parent
FIRST = {"blocks": BLOCKS, "warps": WARPS, "pipelines": PIPELINES, "clusters": CLUSTERS}
SECOND = {
    "groups": GROUPS,
    "roles": ROLES,
    "exchanges": EXCHANGES,
    "tiles": TILES,
    "tensors": TENSORS,
    "tensor_memory": TENSOR_MEMORY,
}
THIRD = {
    "order": ORDER,
    "algorithms": ALGORITHMS,
    "lanes": LANES,
    "asynchronous": ASYNCHRONOUS,
}
TABLES = {**FIRST, **SECOND, **THIRD}
TARGETS = {area: "sm_100a" if area == "tensor_memory" else "sm_90a" for area in TABLES}
TAUGHT = (
    "steps_of_a_warp_by_volatile_alone",
    "matrices_loaded_past_the_last_row",
    "accumulators_cleared_after_the_fence",
    "counter_reset_by_a_warp_that_has_not_seen_it",
    "word_stored_before_a_relaxed_one",
)
"""Of the later tables, those that were not found or whose right form was accused at first."""


def pairs() -> Iterator[tuple[str, FaultyPair]]:
    """(source, pair)."""
    for area, rows in TABLES.items():
        for pair in rows:
            yield area, pair


RESULTS = (
    "address_of_a_local_variable_shared",
    "mask_of_lanes_that_happen_to_be_there",
    "look_back_with_two_words",
    "look_back_with_a_packed_word",
    "snapshot_taken_while_it_changes",
    "sum_of_a_tile_wanted_by_all_its_lanes",
    "place_that_only_the_leader_has",
    "box_with_its_coordinates_exchanged",
    "rank_that_counts_the_lane_itself",
    "steps_of_a_warp_by_volatile_alone",
    "barrier_in_a_loop_of_as_many_trips_as_the_warp",
    "index_that_wraps_at_65536",
    "sums_of_clusters_kept_from_the_last_round",
    "maximum_of_the_own_warp_taken_for_all",
    "swizzled_on_one_side_only",
    "offset_that_overflows",
    "sum_of_lanes_before_the_first",
    "width_of_a_shuffle_forgotten",
    "floats_compared_as_integers",
    "rows_of_a_fragment_exchanged",
    "remainder_of_an_unrolled_loop",
    "three_of_four_bytes_written",
)
"""Found by a wrong result only."""
RARE = ("total_read_by_whoever_is_first", "any_producer_waited_for_instead_of_all")
"""Found in more than the usual three schedules."""
MISSED = {
    "mutual_exclusion_without_atomics": "each store is seen at once: no thread reads before its "
    "own earlier store has reached the others",
    "flag_of_another_warp": "the shared memory of a CTA is in order on the hardware; PTX asks for "
    "a fence",
    "sum_stored_instead_of_added": "only PTX tells a relaxed store from an atomic there: what was "
    "made visible for the first stays visible",
    "stores_of_lanes_announced_by_the_first": "the lanes of a warp have stored before one of them "
    "goes on alone, and its release counts for all of them",
}
"""Why those are not found that no schedule shows."""


def page() -> str:
    """What became of all pairs, as markdown."""
    lines = ["| kernels | pairs | found by name | by a wrong result | in 20 schedules | missed |"]
    lines += ["|---|---|---|---|---|---|"]
    for area, rows in (*TABLES.items(), ("**all**", tuple(pair for _, pair in pairs()))):
        names = [pair.name for pair in rows]
        by = [sum(name in kind for name in names) for kind in (RESULTS, RARE, MISSED)]
        lines.append(
            f"| {area} | {len(names)} | {len(names) - sum(by)} | {by[0]} | {by[1]} | {by[2]} |"
        )
    faults = {pair.name: pair.fault for _, pair in pairs()}
    lines += [
        "",
        *(f"- Missed: {faults[name]}. {why[0].upper()}{why[1:]}." for name, why in MISSED.items()),
    ]
    return "\n".join([*lines, ""])
