"""`tcgen05` and tensor memory."""

from __future__ import annotations

from correct.kernel import always, each

from pairs.pair import FaultyPair, horner

TENSOR_MEMORY = (
    FaultyPair(
        "other_parity_waited_for", "the parity that passes at once", always(16, 128), threads=128
    ),
    FaultyPair(
        "operand_refilled_while_it_is_multiplied",
        "an operand of an MMA in flight is written",
        always(112, 128),
        threads=128,
    ),
    FaultyPair(
        "accumulator_overwritten_before_it_was_loaded",
        "an accumulator is overwritten before it is loaded",
        always(horner([16 * i for i in range(1, 7)]), 128),
        threads=160,
    ),
    FaultyPair("columns_never_given_back", "no `tcgen05.dealloc`", always(16, 128), threads=128),
    FaultyPair(
        "columns_given_back_while_others_load",
        "no barrier before `tcgen05.dealloc`",
        always(16, 128),
        threads=128,
    ),
    FaultyPair(
        "first_product_added_to_nothing",
        "the first MMA adds to what nobody wrote",
        always(32, 128),
        threads=128,
    ),
    FaultyPair(
        "operands_written_without_a_proxy_fence",
        "no proxy fence between stores and an MMA",
        always(16, 128),
        threads=128,
    ),
    FaultyPair(
        "lanes_of_another_warp_loaded",
        "another warp's lanes of tensor memory",
        each(lambda t, x: 16 << t // 32, 128),
        threads=128,
    ),
    FaultyPair(
        "columns_of_the_product_not_those_loaded",
        "columns that no product wrote",
        always(16, 128),
        threads=128,
    ),
    FaultyPair(
        "second_accumulator_committed_with_the_first",
        "two commits to one barrier",
        always(32, 128),
        threads=128,
    ),
    FaultyPair(
        "tensor_memory_stored_and_not_waited_for",
        "no `tcgen05.wait::st` before others load",
        each(lambda t, x: t, 128),
        threads=256,
    ),
)
