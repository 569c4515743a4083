"""Mutants of CUDA sources that do no harm, or only a formal one: a sentence each."""

from __future__ import annotations

from mutations.reviewed import Reviewed, equivalent, formal

_TWO_SLOTS = (
    "of two slots, the other one was used just before: who waits for it waits longer than it has "
    "to, and for its own one it has waited a turn ago"
)
_TOGETHER = (
    "the lanes are together here in all that ptxas makes of the kernel, so that what one of them "
    "waits for or signals counts for all"
)
_LATER = "the arrival comes later than it has to"
_BEYOND = "past the end of an array of registers there is nothing, to the compiler"
_SAME_VALUE = "all store the same value"
_ISSUER = "who issues the copy or the MMA makes the fence itself, after the barrier"
_WAITED = "the loads have been waited for, so that they are over"

REVIEWED: tuple[Reviewed, ...] = (
    # Bounds and lanes that change nothing
    equivalent(
        r"reduce_tree\.cu \| __syncthreads 2 \| before the last statement",
        "a barrier before each step separates the steps, and the last sum is the thread's own",
    ),
    equivalent(r"reduce_tree\.cu \| t \d+ \| every lane", _SAME_VALUE),
    equivalent(r"scan\.cu \| step 2 \| <= .*", "no thread is 64 or more to the right of another"),
    equivalent(
        r"(ring_of_tma\.cu \| t 9|patch_embed_gemm@sm_90a\.cu \| lane 6) \| every lane",
        "the other lanes have no copies to wait for",
    ),
    equivalent(
        r"ring_of_tma\.cu \| t 6 \| modulus \+ 1", "thread 33 arrives for warp 1, instead of 32"
    ),
    equivalent(r"multicast\.cu \| t 4 \| <= .*", "thread 32 has taken the other branch before"),
    equivalent(r"staged_multiply\.cu \| lane \d+ \| every lane", _SAME_VALUE),
    equivalent(
        r"multiply\.cu \| i 2 \| <= .*", "the tile after the last lies outside, and adds zeros"
    ),
    equivalent(r"multiply\.cu \| i 6 \| modulus \+ 1", "there are two tiles"),
    equivalent(
        r"patch_embed_gemm@sm_100a\.cu \| half \d+ \| every lane", "both halves wait for the loads"
    ),
    equivalent(r"patch_embed_gemm@sm_100a\.cu \| i 24 \| <= .*", _BEYOND),
    equivalent(r"flash_attention_hopper\.cu \| (half 14|i 4) \| <= .*", _BEYOND),
    equivalent(r"patch_embed_gemm@sm_90a\.cu \| box 2 \| <= .*", _BEYOND),
    equivalent(r"copies_ahead\.cu \| i 2 \| <= .*", "the third tile is copied twice"),
    equivalent(
        r"(flash_attention_hopper\.cu \| 1} 1|patch_embed_gemm@sm_90a\.cu \| 1} 3) \| a bit higher",
        "a swizzled operand whose rows lie along K has no leading offset",
    ),
    equivalent(r"flash_attention_hopper\.cu \| warp 5 \| modulus \+ 1", "another idle warp loads"),
    equivalent(
        r"patch_embed_gemm@sm_100a\.cu \| rank 10 \| > .*",
        "two warps store the same values to the left half",
    ),
    equivalent(
        r"patch_embed_gemm@sm_100a\.cu \| row_tile 2 \| modulus \+ 1", "tiles in another order"
    ),
    equivalent(
        r"patch_embed_gemm@sm_100a\.cu \| LEADING_OFFSET \d+ \| a bit higher",
        "a swizzled operand whose rows lie along K has no leading offset",
    ),
    equivalent(r"patch_embed_gemm@sm_90a\.cu \| ahead 2 \| <= .*", "it only warms the cache"),
    equivalent(
        r"patch_embed_gemm@sm_90a\.cu \| window 2 \| > .*",
        "one cluster per strip has all tiles, and either way in the same order",
    ),
    equivalent(
        r"patch_embed_gemm@sm_90a\.cu \| worker 8 \| one further",
        "tiles past the last row are loaded as zeros, and not stored",
    ),
    equivalent(
        r"flash_attention_hopper\.cu \| (warpgroup 13|keys 5|row 14) \| <= .*",
        "a turn that nobody waits for, a mask of no column, a box outside the array",
    ),
    equivalent(
        r"flash_attention_hopper\.cu \| threadIdx\.x 3 \| modulus \+ 1",
        "one lane of each of the eight warps, as before",
    ),
    # Stages and turns
    equivalent(
        r"(ring_of_stores|ring_of_tma|multicast)\.cu \| free [34] \| another stage", _TWO_SLOTS
    ),
    equivalent(r"five_tiles\.cu \| drained [34] \| another stage", _TWO_SLOTS),
    equivalent(
        r"patch_embed_gemm@sm_100a\.cu \| (cta\.epilogue_free 1 \| another stage"
        r"|kx::mbarrier_arrive_relaxed_cluster 1 \| after the next statement)",
        _TWO_SLOTS,
    ),
    equivalent(
        r"flash_attention_hopper\.cu \| cta\.(q_free [12]|free_k 3|free_v 2) \| another stage",
        _TWO_SLOTS,
    ),
    equivalent(
        r"patch_embed_gemm@sm_100a\.cu \| cta\.free 1 \| another stage",
        "the last waits are for all stages, in another order",
    ),
    equivalent(
        r"patch_embed_gemm@sm_90a\.cu \| block 24 \| one further",
        "the stages after the turn are filled again only when the last block has been waited for",
    ),
    equivalent(
        r"flash_attention_hopper\.cu \| kx::bar_sync 1 \| dropped",
        "the barrier says which warpgroup multiplies first, and hands over no data",
    ),
    # Order
    equivalent(
        r"multiply\.cu \| expect 1 \| after the next statement",
        "the phase cannot complete before the arrival, whenever the bytes come",
    ),
    equivalent(
        r"flash_attention_hopper\.cu \| (kx::mbarrier_arrive_expect_tx_relaxed_cluster 2 \| "
        r"before the last statement|kx::wait_for_copies 1 \| after the next statement)",
        "the last copies to that place have landed: the tiles between have been waited for",
    ),
    equivalent(
        r"multiply\.cu \| __syncthreads 2 \| dropped",
        "a wgmma group is the warpgroup's: who has waited for it knows that all of it is complete",
    ),
    equivalent(r"five_tiles\.cu \| arrive 1 \| after the next statement", _LATER),
    equivalent(
        r"flash_attention_hopper\.cu \| kx::wait_for_copies 4 \| before the last statement",
        "it waits sooner than it has to",
    ),
    equivalent(
        r"last_adds\.cu \| __threadfence 1 \| after the next statement",
        "the fence of the thread that takes the ticket covers what the barrier has shown it",
    ),
    equivalent(
        r"last_adds\.cu \| __threadfence 2 \| before the last statement",
        "the fence still comes between the ticket and the loads",
    ),
    equivalent(
        r"(staged_multiply|flash_attention_hopper|patch_embed_gemm@sm_90a)\.cu \| "
        r"kx::fence_proxy_async_shared_cta \d \| "
        r"after the next statement",
        _ISSUER,
    ),
    equivalent(
        r"(staged_multiply|flash_attention_hopper)\.cu \| __sync(warp|threads) 1 \| "
        r"before the last statement",
        _ISSUER,
    ),
    equivalent(
        r"patch_embed_gemm@sm_100a\.cu \| __syncwarp 4 \| .*",
        "the wait for the next accumulator has a __syncwarp of its own",
    ),
    equivalent(
        r"patch_embed_gemm@sm_100a\.cu \| (__syncwarp 2 \| after the next statement"
        r"|kx::tcgen05_fence_after_thread_sync 3 \| before the last statement)",
        "every lane waits for the mbarrier itself, and the fence comes after that",
    ),
    equivalent(
        r"patch_embed_gemm@sm_100a\.cu \| kx::tcgen05_fence_after_thread_sync 1 \| .*",
        "each K block has a fence of its own, before its MMAs",
    ),
    equivalent(
        r"patch_embed_gemm@sm_100a\.cu \| kx::wait_for_copies 1 \| after the next statement",
        "the wait is for copies to shared memory, and the fence is about tensor memory",
    ),
    # Formal
    formal(
        r"patch_embed_gemm@sm_100a\.cu \| kx::tcgen05_fence_before_thread_sync 2 \| .*",
        "what follows frees columns of which all uses have been waited for",
    ),
    formal(
        r"patch_embed_gemm@sm_100a\.cu \| ring 12 \| never advanced",
        "a later commit of the same thread is waited for, and commits have been seen to arrive in "
        "order; PTX does not promise it",
    ),
    formal(r"five_tiles\.cu \| arrive 1 \| before the last statement", _WAITED),
    formal(
        r"flash_attention_hopper\.cu \| threadIdx\.x 1 \| modulus \+ 1",
        "lane 0 has waited for the store, and another lane of its warp says so",
    ),
    formal(
        r"(ring_of_tma|multicast|five_tiles|flash_attention_hopper|patch_embed_gemm@sm_90a)\.cu \| "
        r"(__syncwarp \d \| (dropped|after the next statement)"
        r"|arrive\w* 1 \| before the last statement"
        r"|(__syncthreads 2|kx::barrier_cluster_arrive 1) \| before the last statement)",
        _TOGETHER,
    ),
)
