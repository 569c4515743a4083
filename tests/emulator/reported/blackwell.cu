// Reported faults of code for sm_100, rebuilt as small kernels.

#include "faults.cuh"
#include "hopper.cuh"

namespace {

__device__ void clear(void *p) {
  asm volatile("st.bulk.weak.shared::cta [%0], 256, 0;" ::"l"(static_cast<unsigned long long>(shared_address(p))) : "memory");
}

__device__ unsigned allocate(unsigned *base) {
  if (warp() == 0)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(base)) : "memory");
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  return *base;
}

__device__ void release(unsigned base) {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (warp() == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(base));
}

__device__ void put(unsigned at, unsigned x) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(at), "r"(x) : "memory");
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

__device__ void meet() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

}  // namespace

KERNEL(bulk_clear_before_others_have_read) {
  __shared__ alignas(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  const unsigned x = s[63 - t];
  RIGHT(__syncthreads());
  if (t == 0) clear(s);
  __syncthreads();
  out[t] = x + s[t];
}

KERNEL(bulk_clear_and_fill) {
  __shared__ alignas(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  if (t == 0) clear(s);
  RIGHT(__syncthreads());
  if (t % 2) s[t] = in[t];
  __syncthreads();
  out[t] = s[63 - t];
}

// Warps 4 to 7 store to what warps 0 to 3 load.
KERNEL(tensor_memory_between_two_partitions) {
  __shared__ unsigned word;
  const unsigned t = threadIdx.x, base = allocate(&word), at = base + (warp() % 4 * 32 << 16);
  if (warp() >= 4) put(at, in[t - 128]);
  RIGHT(meet());
  if (warp() < 4) {
    unsigned x;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(x) : "r"(at) : "memory");
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    out[t] = x;
  }
  release(base);
}

// The load is in flight when the columns are given to the other warps.
KERNEL(tensor_memory_released_while_it_is_loaded) {
  __shared__ unsigned word;
  const unsigned t = threadIdx.x, base = allocate(&word), at = base + (warp() % 4 * 32 << 16);
  if (warp() < 4) put(at, in[t]);
  unsigned x = 0;
  if (warp() < 4) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(x) : "r"(at) : "memory");
    RIGHT(asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"));
  }
  meet();
  if (warp() >= 4) put(at, t);
  FAULT(if (warp() < 4) asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"));
  if (warp() < 4) out[t] = x;
  release(base);
}

// Its alias is overwritten while the other partition may still load it.
KERNEL(tensor_memory_overwritten_by_its_alias) {
  __shared__ unsigned word;
  const unsigned t = threadIdx.x, base = allocate(&word), at = base + (warp() % 4 * 32 << 16);
  if (warp() < 4) put(at, in[t]);
  if (warp() < 4) {
    unsigned x;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(x) : "r"(at) : "memory");
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    out[t] = x;
  }
  RIGHT(meet());
  if (warp() >= 4) put(at, t);
  release(base);
}

// Both CTAs of a pair have to be there when one of them allocates for both.
KERNEL_OF(__cluster_dims__(2), pair_allocates_before_its_peer_is_there) {
  __shared__ unsigned word;
  RIGHT(meet_cluster());
  if (warp() == 0) {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(&word)) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
  }
  __syncthreads();
  out[thread()] = word;
  meet_cluster();
  if (warp() == 0) asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 32;" ::"r"(word));
}

// Warp 0 allocates for all its tiles, and warp 1 hears of that with the first of them: there may be none.
KERNEL(address_of_tensor_memory_with_no_tile_to_announce_it) {
  __shared__ unsigned word;
  __shared__ unsigned long long done;
  const unsigned t = threadIdx.x, tiles = blockIdx.x;
  if (t == 0) init(&done, 32);
  __syncthreads();
  const bool allocates = tiles FAULT(|| true);
  if (warp() == 0) {
    if (allocates)
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(&word))
                   : "memory");
    for (unsigned i = 0; i < tiles; ++i) arrive(&done);
  } else {
    for (unsigned i = 0; i < tiles; ++i) wait(&done, i % 2);
    if (allocates) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(word));
  }
  out[thread()] = tiles;
}
