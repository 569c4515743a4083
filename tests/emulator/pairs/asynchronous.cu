// Bulk copies, mbarriers, products in flight, stages of a cluster: what protocols get wrong, right and with a fault.

#include "faults.cuh"
#include "hopper.cuh"

namespace {

__device__ void ready(void *bar, unsigned count) {
  init(bar, count);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void send(void *to, const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)), "r"(bytes) : "memory");
}

__device__ void arrive_at(unsigned bar) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

// d (64 x 8) += ones (64 x 16) b (16 x 8), b in 256 bytes of shared memory.
__device__ void multiply(float (&d)[4], const unsigned *b) {
  const unsigned long long descriptor = shared_address(b) >> 4 | 8ull << 16 | 8ull << 32;
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %4, %4, %4}, %5, 1, 1, 1, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(0x3c003c00u), "l"(descriptor)
               : "memory");
}

}  // namespace

KERNEL(bulk_copy_of_a_length_that_is_no_multiple_of_16) {
  __shared__ alignas(16) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x, bytes = RIGHT(256) FAULT(248);
  if (t == 0) {
    ready(&full, 1);
    expect(&full, bytes);
    fetch(s, in, bytes, &full);
  }
  __syncthreads();
  wait(&full, 0);
  out[t] = s[63 - t];
}

KERNEL(barrier_at_an_odd_word) {
  __shared__ alignas(16) unsigned s[68];
  const unsigned t = threadIdx.x;
  void *const bar = s + 64 + RIGHT(0) FAULT(1);
  if (t == 0) ready(bar, 64);
  __syncthreads();
  s[t] = in[t];
  arrive(bar);
  wait(bar, 0);
  out[t] = s[63 - t];
}

KERNEL(bytes_expected_at_the_other_stage) {
  __shared__ alignas(16) unsigned s[2][64];
  __shared__ unsigned long long full[2];
  const unsigned t = threadIdx.x;
  if (t == 0) {
    ready(full, 1);
    ready(full + 1, 1);
    for (unsigned i = 0; i < 2; ++i) {
      expect(full + RIGHT(i) FAULT(0), 256);
      fetch(s[i], in + 64 * i, 256, full + i);
    }
  }
  __syncthreads();
  wait(full, 0);
  wait(full + 1, 0);
  out[t] = s[0][63 - t] * 3 + s[1][t];
}

KERNEL(consumer_begins_in_the_phase_of_the_producer) {
  __shared__ alignas(16) unsigned s[2][64];
  __shared__ unsigned long long full[2], empty[2];
  const unsigned t = threadIdx.x;
  if (t == 0)
    for (unsigned i = 0; i < 2; ++i) {
      ready(full + i, 1);
      ready(empty + i, 32);
    }
  __syncthreads();
  if (warp() == 0) {
    if (t == 0)
      for (unsigned i = 0; i < 6; ++i) {
        wait(empty + i % 2, i / 2 % 2 ^ 1);
        expect(full + i % 2, 256);
        fetch(s[i % 2], in + 64 * i, 256, full + i % 2);
      }
  } else {
    unsigned sum = 0;
    for (unsigned i = 0; i < 6; ++i) {
      wait(full + i % 2, i / 2 % 2 RIGHT() FAULT(^ 1));
      sum = sum * 3 + s[i % 2][t];
      arrive(empty + i % 2);
    }
    out[lane()] = sum;
  }
}

KERNEL(thread_that_arrives_twice) {
  __shared__ unsigned s[2][64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x;
  if (t == 0) ready(&bar, 64);
  __syncthreads();
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    s[i % 2][t] = in[64 * i + t];
    arrive(&bar);
    FAULT(if (t == 0 && i == 0) arrive(&bar));
    wait(&bar, i % 2);
    sum = sum * 3 + s[i % 2][63 - t];
  }
  out[t] = sum;
}

KERNEL_OF(__cluster_dims__(2), arrival_at_the_own_barrier) {
  __shared__ unsigned s[64];
  __shared__ unsigned long long taken;
  const unsigned t = threadIdx.x, other = rank_of_cta() ^ 1;
  if (t == 0) ready(&taken, 64);
  s[t] = in[thread()];
  meet_cluster();
  unsigned x;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(map_to(s + 63 - t, other)) : "memory");
  RIGHT(arrive_at(map_to(&taken, other)));
  FAULT(arrive_at(map_to(&taken, other ^ 1)));
  asm volatile(
      "{ .reg .pred p;\n"
      "AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n"
      "@!p bra AGAIN; }" ::"r"(shared_address(&taken))
      : "memory");
  s[t] = x;
  __syncthreads();
  out[thread()] = s[63 - t];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), bytes_expected_by_one_of_two) {
  __shared__ alignas(128) unsigned s[64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x;
  if (t == 0) {
    ready(&full, 1);
    RIGHT(expect(&full, 256));
    FAULT(if (rank_of_cta() == 0) expect(&full, 512); else arrive(&full));
  }
  meet_cluster();
  if (t == 0 && rank_of_cta() == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(
            shared_address(s)),
        "l"(in), "r"(shared_address(&full)), "h"(static_cast<unsigned short>(3))
        : "memory");
  wait(&full, 0);
  out[thread()] = s[63 - t];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), stage_of_a_peer_overwritten_before_it_was_read) {
  __shared__ alignas(16) unsigned s[64];
  __shared__ unsigned long long full, empty;
  const unsigned t = threadIdx.x, other = rank_of_cta() ^ 1;
  if (t == 0) {
    ready(&full, 1);
    ready(&empty, 64);
    expect(&full, 256);
  }
  meet_cluster();
  unsigned sum = 0;
  for (unsigned i = 0; i < 3; ++i) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(map_to(s + t, other)),
                 "r"(in[128 * i + thread()]), "r"(map_to(&full, other))
                 : "memory");
    asm volatile(
        "{ .reg .pred p;\n"
        "AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
        "@!p bra AGAIN; }" ::"r"(shared_address(&full)), "r"(i % 2)
        : "memory");
    RIGHT(sum = sum * 3 + s[63 - t]);
    if (t == 0 && i < 2) expect(&full, 256);
    RIGHT(__syncthreads());
    arrive_at(map_to(&empty, other));
    asm volatile(
        "{ .reg .pred p;\n"
        "AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
        "@!p bra AGAIN; }" ::"r"(shared_address(&empty)), "r"(i % 2)
        : "memory");
    FAULT(sum = sum * 3 + s[63 - t]);
  }
  out[thread()] = sum;
  meet_cluster();
}

KERNEL(last_product_not_waited_for) {
  __shared__ alignas(16) unsigned s[2][64];
  const unsigned t = threadIdx.x;
  if (t < 64) s[0][t] = s[1][t] = 0x3c003c00;
  fence_async();
  __syncthreads();
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (unsigned i = 0; i < 2; ++i) {
    multiply(d, s[i]);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned %4;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "n"(RIGHT(0) FAULT(1)) : "memory");
  out[t] = static_cast<unsigned>(d[0] + d[1] + d[2] + d[3]);
}

KERNEL(store_waited_for_without_a_commit) {
  __shared__ alignas(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < 2; ++i) {
    s[t] = in[64 * i + t] + i;
    fence_async();
    __syncthreads();
    if (t == 0) {
      send(out + 64 * i, s, 256);
      RIGHT(asm volatile("cp.async.bulk.commit_group;" ::: "memory"));
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
  if (t == 0) {
    FAULT(asm volatile("cp.async.bulk.commit_group;" ::: "memory"));
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

KERNEL(refilled_between_the_barrier_and_the_wait) {
  __shared__ alignas(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < 3; ++i) {
    s[t] = in[64 * i + t] + i;
    fence_async();
    __syncthreads();
    if (t == 0) {
      send(out + 64 * i, s, 256);
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    RIGHT(if (t == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"));
    __syncthreads();
    FAULT(if (t == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"));
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

KERNEL(copy_longer_than_its_stage) {
  __shared__ alignas(16) unsigned s[2][64];
  __shared__ unsigned long long full;
  const unsigned t = threadIdx.x, bytes = RIGHT(256) FAULT(272);
  if (t == 0) ready(&full, 1);
  s[1][t] = in[64 + t] * 5;
  __syncthreads();
  if (t == 0) {
    expect(&full, bytes);
    fetch(s[0], in, bytes, &full);
  }
  const unsigned x = s[1][63 - t];
  wait(&full, 0);
  out[t] = s[0][63 - t] + x;
}
