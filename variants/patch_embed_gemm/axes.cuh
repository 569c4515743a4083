// The axes of patch_embed_gemm: what the command line must define, and the values that have a name.
#pragma once

#ifndef KX_STAGES
#error "KX_STAGES is missing (axis stages: 4, 5, 6; for instance -DKX_STAGES=4)"
#endif
#ifndef KX_TMEM_LOAD
#error "KX_TMEM_LOAD is missing (axis tmem_load: x16, x32, split)"
#endif
#ifndef KX_EPILOGUE_WARPS
#error "KX_EPILOGUE_WARPS is missing (axis epilogue_warps: 4, 5, 6)"
#endif
#ifndef KX_EPILOGUE_BOUNDS
#error "KX_EPILOGUE_BOUNDS is missing (axis epilogue_bounds: constant, runtime)"
#endif
#ifndef KX_STORE
#error "KX_STORE is missing (axis store: direct_v4, direct_v8, staged)"
#endif
#ifndef KX_PHASE2_UNROLL
#error "KX_PHASE2_UNROLL is missing (axis phase2_unroll: 4, 8)"
#endif
#ifndef KX_COMBINED
#error "KX_COMBINED is missing (axis combined: inline, smem_prefetch, prestage, blocked)"
#endif
#ifndef KX_MAINLOOP_WAIT
#error "KX_MAINLOOP_WAIT is missing (axis mainloop_wait: poll, broadcast)"
#endif
#ifndef KX_CTA_GROUP
#error "KX_CTA_GROUP is missing (axis cta_group: 1, 2)"
#endif
#ifndef KX_TILE_N
#error "KX_TILE_N is missing (axis tile_n: 128, 256)"
#endif

// When the accumulator is asked for: 16 columns at a time, 32, or 32 as two halves, the first one
// early.
enum class TmemLoad { x16_, x32_, split_ };
// Whether a warp's columns of the tile are known to the compiler.
enum class EpilogueBounds { constant_, runtime_ };
// A lane's own row, 16 or 32 bytes at a time, or whole rows by way of shared memory.
enum class Store { direct_v4_, direct_v8_, staged_ };
// Where phase 1 reads the table: global memory by rows; shared memory, filled before or after the
// wait for the accumulator; global memory in blocks of 32 rows by 32 columns.
enum class Combined { inline_, smem_prefetch_, prestage_, blocked_ };
// Whether each epilogue warp asks the barrier, or one asks and tells the others.
enum class MainloopWait { poll_, broadcast_ };
