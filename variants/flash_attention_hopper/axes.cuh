// The axes of flash_attention_hopper: what the command line must define, and the values that have a
// name.
#pragma once

#include "axis.cuh"

#ifndef KX_BLOCK_M
#error "KX_BLOCK_M is missing (axis block_m: 64, 128, 192; for instance -DKX_BLOCK_M=128)"
#endif
#ifndef KX_BLOCK_N
#error "KX_BLOCK_N is missing (axis block_n: 64, 96, 128, 176, 192)"
#endif
#ifndef KX_HEAD_DIM
#error "KX_HEAD_DIM is missing (axis head_dim: 64, 128)"
#endif
#ifndef KX_STAGES
#error "KX_STAGES is missing (axis stages: 2, 3, 4)"
#endif
#ifndef KX_SCHEDULE
#error "KX_SCHEDULE is missing (axis schedule: free, pingpong)"
#endif
#ifndef KX_OVERLAP
#error "KX_OVERLAP is missing (axis overlap: none, issued, pinned)"
#endif
#ifndef KX_POLYNOMIALS
#error "KX_POLYNOMIALS is missing (axis polynomials: 0, 1, 2)"
#endif
#ifndef KX_CTAS
#error "KX_CTAS is missing (axis ctas: per_block, persistent)"
#endif

// Whether the warpgroups multiply whenever they can, or in turn.
enum class Schedule { free_, pingpong_ };
// Of a warpgroup's MMAs with its softmax: none, each waits for the other; MMAs are issued before
// the softmax and waited for after it, as the source says, or also in the order of ptxas's code.
enum class Overlap { none_, issued_, pinned_ };
// Whether a CTA has one block of queries, or blocks until none is left.
enum class Ctas { per_block_, persistent_ };
