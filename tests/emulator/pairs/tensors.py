"""`ldmatrix`, `mma.sync` and `wgmma`."""

from __future__ import annotations

from correct.kernel import always, each

from pairs.pair import FaultyPair

TENSORS = (
    FaultyPair(
        "matrix_loaded_before_the_barrier",
        "`ldmatrix` of what another warp stored, before the barrier",
        always(256),
    ),
    FaultyPair(
        "matrices_loaded_past_the_last_row",
        "a row past the last by `ldmatrix`",
        always(64, 32),
        threads=32,
    ),
    FaultyPair(
        "result_stored_as_matrices_and_read_by_others",
        "`__syncwarp` after `stmatrix` to another warp",
        each(lambda t, x: x[t ^ 32]),
    ),
    FaultyPair(
        "stage_released_with_its_product_in_flight",
        "the stage of a `wgmma` in flight is released",
        always(896, 128),
        threads=160,
    ),
    FaultyPair(
        "product_waited_for_without_a_commit",
        "`wgmma.wait_group` with no commit",
        always(64, 128),
        threads=128,
    ),
    FaultyPair(
        "accumulators_cleared_after_the_fence",
        "accumulators are written after `wgmma.fence`",
        each(lambda t, x: x[t] % 64 * 4 + 70, 128),
        threads=128,
    ),
    FaultyPair(
        "first_turn_that_nobody_gave", "nobody gives the first turn", always(192, 256), threads=256
    ),
)
