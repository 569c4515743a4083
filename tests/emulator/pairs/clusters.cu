// Blocks of a cluster and their distributed shared memory.

#include "faults.cuh"
#include "hopper.cuh"

namespace {

__device__ void put(unsigned to, unsigned x) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}

__device__ unsigned get(unsigned from) {
  unsigned x;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
  return x;
}

__device__ void add(unsigned to, unsigned x) {
  asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}

}  // namespace

KERNEL_OF(__cluster_dims__(2), written_to_a_peer) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  meet_cluster();
  put(map_to(s + t, rank_of_cta() ^ 1), in[thread()]);
  RIGHT(meet_cluster());
  FAULT(__syncthreads());
  out[thread()] = s[63 - t];
  FAULT(meet_cluster());
}

KERNEL_OF(__cluster_dims__(2), peer_that_may_not_have_started) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  RIGHT(meet_cluster());
  put(map_to(s + t, rank_of_cta() ^ 1), in[thread()]);
  meet_cluster();
  out[thread()] = s[63 - t];
}

KERNEL_OF(__cluster_dims__(2), bins_of_a_cluster) {
  __shared__ unsigned bins[32];
  const unsigned t = threadIdx.x;
  if (t < 32) bins[t] = 0;
  RIGHT(meet_cluster());
  FAULT(__syncthreads());
  const unsigned bin = in[thread()] % 64;
  add(map_to(bins + bin % 32, bin / 32), 1);
  meet_cluster();
  if (t < 32) out[32 * rank_of_cta() + t] = bins[t];
}

KERNEL_OF(__cluster_dims__(2), read_between_arrival_and_wait) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[thread()];
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  RIGHT(asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"));
  const unsigned x = get(map_to(s + 63 - t, rank_of_cta() ^ 1));
  FAULT(asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"));
  meet_cluster();
  out[thread()] = x;
}

KERNEL_OF(__cluster_dims__(2), relaxed_arrival_of_a_cluster) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[thread()];
  RIGHT(asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"));
  FAULT(asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"));
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  out[thread()] = get(map_to(s + 63 - t, rank_of_cta() ^ 1));
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), stores_that_count_bytes) {
  __shared__ alignas(16) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x, other = rank_of_cta() ^ 1;
  if (t == 0) {
    init(&full, 1);
    RIGHT(expect(&full, 256));
    FAULT(expect(&full, 260));
  }
  meet_cluster();
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(map_to(s + t, other)),
               "r"(in[thread()]), "r"(map_to(&full, other))
               : "memory");
  wait(&full, 0);
  out[thread()] = s[63 - t];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), multicast_to_one_only) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  if (t == 0) {
    init(&full, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    expect(&full, 256);
  }
  meet_cluster();
  if (t == 0 && rank_of_cta() == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(
            shared_address(s)),
        "l"(in), "r"(shared_address(&full)), "h"(static_cast<unsigned short>(RIGHT(3) FAULT(1)))
        : "memory");
  wait(&full, 0);
  out[thread()] = s[63 - t];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(4), ring_of_a_cluster) {
  __shared__ unsigned s[2][64];
  const unsigned t = threadIdx.x, next = (rank_of_cta() + 1) % 4;
  s[0][t] = in[thread()];
  meet_cluster();
  for (unsigned i = 0; i < 3; ++i) {
    put(map_to(s[(i + 1) % 2] + t, next), s[i % 2][t] + i);
    RIGHT(meet_cluster());
    FAULT(if (i != 1) meet_cluster(); else __syncthreads());
  }
  FAULT(meet_cluster());
  out[thread()] = s[1][t];
}

KERNEL_OF(__cluster_dims__(2), flag_in_a_peer) {
  __shared__ unsigned value, flag;
  const unsigned t = threadIdx.x, other = rank_of_cta() ^ 1;
  if (t == 0) flag = 0;
  meet_cluster();
  if (t == 0) {
    put(map_to(&value, other), in[blockIdx.x]);
    RIGHT(asm volatile("st.release.cluster.shared::cluster.u32 [%0], 1;" ::"r"(map_to(&flag, other)) : "memory"));
    FAULT(asm volatile("st.relaxed.cluster.shared::cluster.u32 [%0], 1;" ::"r"(map_to(&flag, other)) : "memory"));
    unsigned ready;
    do asm volatile("ld.acquire.cluster.shared::cta.u32 %0, [%1];" : "=r"(ready) : "r"(shared_address(&flag)) : "memory");
    while (!ready);
    out[blockIdx.x] = value;
  }
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), peer_beyond_the_cluster) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = in[thread()];
  meet_cluster();
  const unsigned peer = rank_of_cta() RIGHT(^) FAULT(+) 1;
  out[thread()] = get(map_to(s + 63 - t, peer));
  meet_cluster();
}
