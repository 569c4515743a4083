// The axes of flash_attention: what the command line must define, and the values that have a name.
#pragma once

#include "axis.cuh"

#ifndef KX_PHASE
#error "KX_PHASE is missing (axis phase: minimal, 1, 3, 5, 6, 7; for instance -DKX_PHASE=3)"
#endif
#ifndef KX_BLOCK_M
#error "KX_BLOCK_M is missing (axis block_m: 32, 64, 128)"
#endif
#ifndef KX_BLOCK_N
#error "KX_BLOCK_N is missing (axis block_n: 64)"
#endif

#ifndef KX_NUM_WARPS
#error "KX_NUM_WARPS is missing (axis num_warps: 4, 8)"
#endif
#ifndef KX_VEC_WIDTH
#error "KX_VEC_WIDTH is missing (axis vec_width: 2, 4, 8)"
#endif
#ifndef KX_REDUCE
#error "KX_REDUCE is missing (axis reduce: serial, warp)"
#endif
#ifndef KX_SYNC_POLICY
#error "KX_SYNC_POLICY is missing (axis sync_policy: none, 2, 5, 10)"
#endif
#ifndef KX_LAYOUT
#error "KX_LAYOUT is missing (axis layout: plain, padded)"
#endif

// The number of a phase, for the preprocessor: each has its own picture of roles and barriers, and
// so its own header.
#define KX_PHASE_minimal 0
#define KX_PHASE_1 1
#define KX_PHASE_3 3
#define KX_PHASE_5 5
#define KX_PHASE_6 6
#define KX_PHASE_7 7
#define KX_NUMBER(define) KX_PASTE(KX_PHASE_, define)
#define KX_PHASE_NUMBER KX_NUMBER(KX_PHASE)

// Who finds a row's maximum and sum: a lane for each row, or the lanes of a warp together.
enum class Reduce { serial_, warp_ };
// Rows of K and of scores in shared memory: a power of two apart, or a bank further.
enum class Layout { plain_, padded_ };
// Barriers of the CTA for each tile of K and V, in phase 3.
enum class SyncPolicy { none_, s2_, s5_, s10_ };
#define KX_SYNC_none SyncPolicy::none_
#define KX_SYNC_2 SyncPolicy::s2_
#define KX_SYNC_5 SyncPolicy::s5_
#define KX_SYNC_10 SyncPolicy::s10_
#define KX_SYNC(define) KX_PASTE(KX_SYNC_, define)
