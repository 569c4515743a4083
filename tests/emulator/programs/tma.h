#pragma once
#include <cuda.h>
#include "check.h"
inline CUtensorMap tensor_map(CUtensorMapDataType type, int size, void *p, uint64_t w, uint64_t h, uint32_t bw, uint32_t bh,
                              CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
  void *f = nullptr; cudaDriverEntryPointQueryResult q;
  CK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &q));
  CUtensorMap m; cuuint64_t dim[2] = {w, h}, stride[1] = {w * size}; cuuint32_t box[2] = {bw, bh}, es[2] = {1, 1};
  auto r = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(f)(&m, type, 2, p, dim, stride, box, es,
      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r) { printf("cuTensorMapEncodeTiled: %d\n", int(r)); exit(2); }
  return m;
}
#ifdef __CUDACC__
#include "ptx.cuh"
__device__ inline void tma_load(void *dst, const CUtensorMap *m, int x, int y, uint64_t *b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(s32(dst)), "l"(m), "r"(x), "r"(y), "r"(s32(b)) : "memory");
}
__device__ inline void tma_store(const CUtensorMap *m, int x, int y, const void *src) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
               ::"l"(m), "r"(x), "r"(y), "r"(s32(src)) : "memory");
}
#endif
