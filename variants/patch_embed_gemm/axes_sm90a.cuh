// The axes of patch_embed_gemm on Hopper: what the command line must define, and the values that
// have a name.
#pragma once

#ifndef KX_STAGES
#error "KX_STAGES is missing (axis stages: 3, 4, 6, 7, 8, 12, 15; for instance -DKX_STAGES=4)"
#endif
#ifndef KX_TILE_M
#error "KX_TILE_M is missing (axis tile_m: 64, 128, 256)"
#endif
#ifndef KX_TILE_N
#error "KX_TILE_N is missing (axis tile_n: 128, 192, 256)"
#endif
#ifndef KX_OPERAND_B
#error "KX_OPERAND_B is missing (axis operand_b: streamed, resident, registers)"
#endif
#ifndef KX_SCHEDULE
#error "KX_SCHEDULE is missing (axis schedule: cooperative, pingpong, overlapping)"
#endif
#ifndef KX_STORE
#error "KX_STORE is missing (axis store: direct, staged, tma, tma_evict_first)"
#endif
#ifndef KX_BOXES
#error "KX_BOXES is missing (axis boxes: 1, 2)"
#endif
#ifndef KX_COMBINED
#error "KX_COMBINED is missing (axis combined: inline, blocked, registers, resident)"
#endif
#ifndef KX_REGISTERS
#error "KX_REGISTERS is missing (axis registers: equal, moved)"
#endif
#ifndef KX_CLUSTER
#error "KX_CLUSTER is missing (axis cluster: 1, 2)"
#endif
#ifndef KX_PREFETCH
#error "KX_PREFETCH is missing (axis prefetch: 0, 1, 2)"
#endif
#ifndef KX_ORDER
#error "KX_ORDER is missing (axis order: linear, snake, strided, period)"
#endif

// Whether B goes through the stages with A; or a CTA keeps its columns for all of its tiles, in
// shared memory; or each warpgroup keeps 64 of them in registers, as the operand that wgmma calls A.
enum class OperandB { streamed_, resident_, registers_ };
// The warpgroups share a tile; or multiply in turn, each when the MMAs of the one before are
// complete; or when they are issued.
enum class Schedule { cooperative_, pingpong_, overlapping_ };
// From the accumulator's fragments, 4 bytes a lane; whole rows by way of shared memory; TMA, with or
// without the hint that nobody reads the output.
enum class Store { direct_, staged_, tma_, tma_evict_first_ };
// Where the table is read: global memory, 4 bytes a lane; global memory laid out by fragments, 16
// bytes a lane; registers, which are filled when a tile's rows have another place in the table;
// shared memory, where the CTA's columns of it stay.
enum class Combined { inline_, blocked_, registers_, resident_ };
// Whether the load warp gives registers to the warps that multiply.
enum class Registers { equal_, moved_ };
// A cluster's tiles: in sequence, columns first; columns back and forth; every so many tiles; tiles
// with the same place in the table after each other.
enum class Order { linear_, snake_, strided_, period_ };
