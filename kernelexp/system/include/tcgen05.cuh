// Fifth-generation tensor core and tensor memory: PTX ISA 9.1, section 9.7.16.
//
// CTA_GROUP is the number of CTAs whose tensor cores and tensor memories act as one.
#pragma once

#include <cstdint>

namespace kx {

// Section 9.7.16.7. Whole warp, in each CTA of the group; the first column's address goes to shared
// memory. COLUMNS is a power of two from 32 to 512.
template <int CTA_GROUP, uint32_t COLUMNS>
__device__ __forceinline__ void tcgen05_alloc(uint32_t destination) {
  static_assert(CTA_GROUP == 1 || CTA_GROUP == 2, "tcgen05 has cta_group::1 and ::2");
  static_assert(COLUMNS >= 32 && COLUMNS <= 512 && (COLUMNS & (COLUMNS - 1)) == 0,
                "tensor memory is allocated in powers of two from 32 to 512 columns");
  asm volatile(
      "tcgen05.alloc.cta_group::%1.sync.aligned.shared::cta.b32 [%0], %2;" ::"r"(destination),
      "n"(CTA_GROUP), "n"(COLUMNS)
      : "memory");
}

// Section 9.7.16.7. Whole warp: this CTA allocates no more.
template <int CTA_GROUP>
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(CTA_GROUP)
               : "memory");
}

// Section 9.7.16.7. Whole warp, in each CTA of the group, while both CTAs are alive.
template <int CTA_GROUP, uint32_t COLUMNS>
__device__ __forceinline__ void tcgen05_dealloc(uint32_t tmem) {
  asm volatile("tcgen05.dealloc.cta_group::%1.sync.aligned.b32 %0, %2;" ::"r"(tmem), "n"(CTA_GROUP),
               "n"(COLUMNS)
               : "memory");
}

// Section 9.7.16.10.9.1. One thread: D (+)= A * B with both operands in shared memory, K = 32
// bytes.
template <int CTA_GROUP>
__device__ __forceinline__ void tcgen05_mma_f8f6f4(uint32_t d_tmem, uint64_t a, uint64_t b,
                                                   uint32_t instruction, bool accumulate) {
  asm volatile(
      "{\n\t"
      ".reg .pred accumulate;\n\t"
      "setp.ne.b32 accumulate, %4, 0;\n\t"
      "tcgen05.mma.cta_group::%5.kind::f8f6f4 [%0], %1, %2, %3, accumulate;\n\t"
      "}" ::"r"(d_tmem),
      "l"(a), "l"(b), "r"(instruction), "r"(uint32_t{accumulate}), "n"(CTA_GROUP)
      : "memory");
}

// Section 9.7.16.12. The thread that issued them: one arrival on `barrier` when its MMAs so far are
// complete. With CTA_GROUP 2 the arrival goes to the same barrier of every CTA in `ctas`.
template <int CTA_GROUP>
__device__ __forceinline__ void tcgen05_commit(uint32_t barrier, uint16_t ctas) {
  if constexpr (CTA_GROUP == 1) {
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
        : "memory");
  } else {
    asm volatile(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
        "[%0], %1;" ::"r"(barrier),
        "h"(ctas)
        : "memory");
  }
}

// Section 9.7.16.11: what comes before is ordered against tcgen05 operations of threads that are
// synchronized with afterwards, and the other way round.
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// Section 9.7.16.8.3. Whole warp: r[i] = column i of lane `laneid` of the warp's 32 lanes, from
// `tmem` (lane in bits 31:16, column in bits 15:0). The registers hold it after tcgen05_wait_ld.
__device__ __forceinline__ void tcgen05_ld_32x32b_x16(uint32_t* r, uint32_t tmem) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
        "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]),
        "=r"(r[14]), "=r"(r[15])
      : "r"(tmem)
      : "memory");
}

__device__ __forceinline__ void tcgen05_ld_32x32b_x32(uint32_t* r, uint32_t tmem) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
        "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]),
        "=r"(r[14]), "=r"(r[15]), "=r"(r[16]), "=r"(r[17]), "=r"(r[18]), "=r"(r[19]), "=r"(r[20]),
        "=r"(r[21]), "=r"(r[22]), "=r"(r[23]), "=r"(r[24]), "=r"(r[25]), "=r"(r[26]), "=r"(r[27]),
        "=r"(r[28]), "=r"(r[29]), "=r"(r[30]), "=r"(r[31])
      : "r"(tmem)
      : "memory");
}

// Section 9.7.16.8.5. Whole warp: waits for all of the thread's loads. r[0..COUNT) are operands so
// that the compiler can't move their use before the wait; the instruction itself has none.
template <int COUNT>
__device__ __forceinline__ void tcgen05_wait_ld(uint32_t* r) {
  static_assert(COUNT == 16 || COUNT == 32, "the registers of one x16 or x32 load");
  if constexpr (COUNT == 16) {
    asm volatile("tcgen05.wait::ld.sync.aligned;"
                 : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]),
                   "+r"(r[6]), "+r"(r[7]), "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]),
                   "+r"(r[12]), "+r"(r[13]), "+r"(r[14]), "+r"(r[15])
                 :
                 : "memory");
  } else {
    asm volatile("tcgen05.wait::ld.sync.aligned;"
                 : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]),
                   "+r"(r[6]), "+r"(r[7]), "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]),
                   "+r"(r[12]), "+r"(r[13]), "+r"(r[14]), "+r"(r[15]), "+r"(r[16]), "+r"(r[17]),
                   "+r"(r[18]), "+r"(r[19]), "+r"(r[20]), "+r"(r[21]), "+r"(r[22]), "+r"(r[23]),
                   "+r"(r[24]), "+r"(r[25]), "+r"(r[26]), "+r"(r[27]), "+r"(r[28]), "+r"(r[29]),
                   "+r"(r[30]), "+r"(r[31])
                 :
                 : "memory");
  }
}

}  // namespace kx
