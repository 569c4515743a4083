// out = softmax(q k^T * scale) v for each head, F16 in and out, F32 accumulation.
//
// One source for sm_80 to sm_90a; variants/flash_attention_hopper goes on from phase 7. Each phase of
// the road map with its own picture of roles and barriers has its own header:
//
//   phase        header        who computes                              barriers of the CTA
//   minimal      minimal.cuh   a thread has a row of queries             1 + 2 per tile of keys
//   1            phase1.cuh    elements strided over the CTA's threads   1 + 5 per tile
//   3            phase3.cuh    a warp has rows of queries                1 + 0, 2, 5 or 10 per tile
//   5, 6         mma.cuh       a warp has 16 rows, mma.sync              1 + 2 per tile
//   7            mma.cuh       the same, copies run ahead                1 per tile
#include "config.cuh"

#if KX_PHASE_NUMBER == 0
#include "minimal.cuh"
#elif KX_PHASE_NUMBER == 1
#include "phase1.cuh"
#elif KX_PHASE_NUMBER == 3
#include "phase3.cuh"
#else
#include "mma.cuh"
#endif
