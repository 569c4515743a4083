// What sm_90 adds: clusters, mbarriers, bulk and tensor copies, register counts, elections.

#include "driver.cuh"
#include <cuda.h>

namespace {

__device__ void init(void *bar, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
}

__device__ void expect(void *bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes) : "memory");
}

__device__ void arrive(void *bar) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

__device__ void wait(void *bar, unsigned parity) {
  asm volatile(
      "{ .reg .pred p;\n"
      "AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], %1, 1000;\n"
      "@!p bra AGAIN; }" ::"r"(shared_address(bar)), "r"(parity)
      : "memory");
}

__device__ void fetch(void *to, const void *from, unsigned bytes, void *bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(bar))
               : "memory");
}

__device__ void fetch_box(void *to, const void *map, int x, int y, void *bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(shared_address(bar))
      : "memory");
}

__device__ unsigned rank_of_cta() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ unsigned map_to(const void *p, unsigned rank) {
  unsigned address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(p)), "r"(rank));
  return address;
}

__device__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace

KERNEL(bulk_copies_in_a_ring) {
  __shared__ alignas(128) unsigned s[3][64];
  __shared__ unsigned long long full[3], empty[3];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) {
      init(full + i, 1);
      init(empty + i, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (warp() == 2) {
    if (lane() == 0)
      for (unsigned i = 0; i < 8; ++i) {
        if (i >= 3) wait(empty + i % 3, (i / 3 - 1) % 2);
        expect(full + i % 3, 256);
        fetch(s[i % 3], in + 64 * i, 256, full + i % 3);
      }
    return;
  }
  unsigned sum = 0;
  for (unsigned i = 0; i < 8; ++i) {
    wait(full + i % 3, i / 3 % 2);
    sum = sum * 3 + s[i % 3][63 - threadIdx.x];
    __syncwarp();
    if (lane() == 0) arrive(empty + i % 3);
  }
  out[threadIdx.x] = sum;
}

KERNEL(transactions_expected_apart_from_the_arrival) {
  __shared__ alignas(16) unsigned s[64];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) init(&bar, 64);
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(shared_address(&bar)) : "memory");
    fetch(s, in, 128, &bar);
    fetch(s + 32, in + 32, 128, &bar);
  }
  arrive(&bar);
  wait(&bar, 0);
  out[threadIdx.x] = s[63 - threadIdx.x];
}

KERNEL(barrier_state_tested_with_work_between) {
  __shared__ unsigned long long bar;
  __shared__ unsigned s[64];
  if (threadIdx.x == 0) init(&bar, 64);
  __syncthreads();
  s[threadIdx.x] = in[threadIdx.x];
  unsigned long long state;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(shared_address(&bar)) : "memory");
  unsigned done = 0, turns = 0;
  while (!done) {
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(shared_address(&bar)), "l"(state) : "memory");
    ++turns;
  }
  out[threadIdx.x] = s[63 - threadIdx.x] + (turns == 0);
}

KERNEL(arrivals_that_do_not_complete) {
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) init(&bar, 128);
  __syncthreads();
  unsigned long long state;
  asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 1;" : "=l"(state) : "r"(shared_address(&bar)) : "memory");
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(shared_address(&bar)) : "memory");
  wait(&bar, 0);
  unsigned left;
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(left) : "l"(state));
  out[threadIdx.x] = left <= 128;
}

KERNEL(warps_with_roles_and_their_own_registers) {
  __shared__ alignas(16) unsigned s[2][128];
  __shared__ unsigned long long full[2], empty[2];
  if (threadIdx.x == 0)
    for (int i = 0; i < 2; ++i) {
      init(full + i, 1);
      init(empty + i, 128);
    }
  __syncthreads();
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0)
      for (unsigned i = 0; i < 4; ++i) {
        wait(empty + i % 2, i / 2 % 2 ^ 1);
        expect(full + i % 2, 512);
        fetch(s[i % 2], in + 128 * i, 512, full + i % 2);
      }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
    const unsigned t = threadIdx.x - 128;
    unsigned sum = 0;
    for (unsigned i = 0; i < 4; ++i) {
      wait(full + i % 2, i / 2 % 2);
      sum = sum * 3 + s[i % 2][127 - t];
      arrive(empty + i % 2);
    }
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[t] = sum;
  }
}

KERNEL(bulk_stores_and_reductions) {
  __shared__ alignas(16) unsigned s[64];
  s[threadIdx.x] = in[threadIdx.x] % 100;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"(shared_address(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 256;" ::"l"(out), "r"(shared_address(s)) : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%0], [%1], 256;" ::"l"(out + 64), "r"(shared_address(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
    s[5] = 9;
  }
}

KERNEL_OF(__cluster_dims__(2), reductions_into_the_shared_memory_of_another) {
  __shared__ alignas(16) unsigned s[64], sum[64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x, other = rank_of_cta() ^ 1;
  if (t == 0) {
    init(&bar, 1);
    expect(&bar, 256);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  s[t] = in[thread()];
  sum[t] = 1;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  meet_cluster();
  if (t == 0)
    asm volatile(
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], 256, [%2];" ::"r"(
            map_to(sum, other)), "r"(shared_address(s)), "r"(map_to(&bar, other))
        : "memory");
  wait(&bar, 0);
  out[thread()] = sum[t];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), remote_stores_and_reductions_that_signal) {
  __shared__ alignas(16) unsigned s[64], sum[4];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x, other = rank_of_cta() ^ 1;
  if (t < 4) sum[t] = 0;
  if (t == 0) {
    init(&bar, 1);
    expect(&bar, 256 + 256);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  meet_cluster();
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(map_to(s + t, other)),
               "r"(in[thread()]), "r"(map_to(&bar, other))
               : "memory");
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(
                   map_to(sum + t % 4, other)), "r"(t), "r"(map_to(&bar, other))
               : "memory");
  wait(&bar, 0);
  out[thread()] = s[63 - t] + sum[t % 4];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), arrivals_at_another_cta) {
  __shared__ unsigned s[64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x, other = rank_of_cta() ^ 1;
  if (t == 0) {
    init(&bar, 64);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  meet_cluster();
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(map_to(s + t, other)), "r"(in[thread()]) : "memory");
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(map_to(&bar, other)) : "memory");
  unsigned done;
  do asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0, 20; selp.u32 %0, 1, 0, p; }"
                  : "=r"(done) : "r"(shared_address(&bar)) : "memory");
  while (!done);
  out[thread()] = s[63 - t];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(4), cluster_sum_by_remote_atomics) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  meet_cluster();
  asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(map_to(&sum, 0)), "r"(in[thread()] % 100) : "memory");
  meet_cluster();
  if (rank_of_cta() == 0) out[threadIdx.x] = sum;
}

KERNEL_OF(__cluster_dims__(2), multicast_to_both) {
  __shared__ alignas(128) unsigned s[2][64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x, rank = rank_of_cta();
  if (t == 0) {
    init(&bar, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    expect(&bar, 512);
  }
  meet_cluster();
  if (t == 0)
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(
            shared_address(s[rank])), "l"(in + 64 * rank), "r"(shared_address(&bar)), "h"(static_cast<unsigned short>(3))
        : "memory");
  wait(&bar, 0);
  out[thread()] = s[0][t] + s[1][63 - t];
  meet_cluster();
}

KERNEL_OF(__cluster_dims__(2), copies_from_one_shared_memory_to_another) {
  __shared__ alignas(16) unsigned s[64], got[64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x, other = rank_of_cta() ^ 1;
  s[t] = in[thread()];
  if (t == 0) {
    init(&bar, 1);
    expect(&bar, 256);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  meet_cluster();
  if (t == 0)
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(
                     map_to(got, other)), "r"(shared_address(s)), "r"(map_to(&bar, other))
                 : "memory");
  wait(&bar, 0);
  out[thread()] = got[63 - t];
  meet_cluster();
}

KERNEL(launched_early_and_waiting_for_the_one_before) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const unsigned x = in[threadIdx.x];
  asm volatile("griddepcontrol.launch_dependents;");
  out[threadIdx.x] = x + 1;
}

KERNEL(clocks_that_only_rise) {
  const long long first = clock64();
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  __nanosleep(100);
  unsigned x = in[threadIdx.x];
  for (unsigned i = 0; i < x % 5; ++i) x = x * 3 + 1;
  unsigned long long later;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(later));
  out[threadIdx.x] = clock64() > first && later >= time && clock() != 0;
}

KERNEL(waiting_for_a_time) {
  const long long first = clock64();
  while (clock64() - first < 200) {
  }
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < 1000);
  out[threadIdx.x] = 1;
}

KERNEL(special_registers) {
  unsigned ctas, id, cluster, size, dynamic, total;
  asm("mov.u32 %0, %%nctaid.x;" : "=r"(ctas));
  asm("mov.u32 %0, %%ctaid.x;" : "=r"(id));
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(cluster));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic));
  asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(total));
  unsigned warps, sm, sms;
  asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(warps));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(sms));
  out[thread()] = ctas + 10 * id + 100 * (cluster == id) + 1000 * size + (dynamic <= total) + (sm < sms) + (warps > 0);
}

// Virtual functions, and what comes with them.

struct Shape {
  __device__ virtual unsigned area() const = 0;
  __device__ virtual ~Shape() {}
};

struct Square : Shape {
  unsigned side;
  __device__ explicit Square(unsigned side) : side(side) {}
  __device__ unsigned area() const override { return side * side; }
};

struct Oblong : Square {
  unsigned other;
  __device__ Oblong(unsigned a, unsigned b) : Square(a), other(b) {}
  __device__ unsigned area() const override { return side * other; }
};

KERNEL(virtual_functions) {
  const unsigned t = threadIdx.x;
  Shape *shape;
  if (in[t] % 2)
    shape = new Square(t);
  else
    shape = new Oblong(t, 3);
  out[t] = shape->area();
  delete shape;
}

KERNEL(lambda_called_through_a_pointer) {
  unsigned (*functions[3])(unsigned) = {[](unsigned x) { return x + 1; }, [](unsigned x) { return x * 2; },
                                        [](unsigned x) { return ~x; }};
  unsigned x = in[threadIdx.x];
  for (unsigned i = 0; i < 4; ++i) x = functions[x % 3](x);
  out[threadIdx.x] = x;
}

// Tensor maps.

extern "C" __global__ void boxes_by_a_parameter(unsigned *out, const unsigned *in, unsigned *scratch,
                                                const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(1024) unsigned s[8][32];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) {
    init(&bar, 1);
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    expect(&bar, 1024);
    fetch_box(s, &map, 16, -2, &bar);
  }
  __syncthreads();
  wait(&bar, 0);
  for (unsigned i = threadIdx.x; i < 256; i += 64) out[i] = s[i / 32][i % 32];
}

extern "C" __global__ void boxes_by_a_map_in_global_memory(unsigned *out, const unsigned *in, unsigned *scratch,
                                                           const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(1024) unsigned s[8][32];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x;
  unsigned *copy = scratch + 32;
  if (t < 32) copy[t] = reinterpret_cast<const unsigned *>(&map)[t];
  __syncwarp();
  if (t < 32)
    asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
  if (t == 0) {
    init(&bar, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (t < 32) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(copy) : "memory");
    if (t == 0) {
      expect(&bar, 1024);
      fetch_box(s, copy, 16, -2, &bar);
    }
  }
  wait(&bar, 0);
  for (unsigned i = t; i < 256; i += 64) out[i] = s[i / 32][i % 32];
}

extern "C" __global__ void boxes_by_a_map_made_on_the_device(unsigned *out, const unsigned *in, unsigned *scratch,
                                                             const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(1024) unsigned s[8][32];
  __shared__ alignas(128) unsigned copy[32];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x;
  if (t < 32) {
    copy[t] = reinterpret_cast<const unsigned *>(&map)[t];
    __syncwarp();
    if (t == 0) {
      asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(shared_address(copy)),
                   "l"(in + 256) : "memory");
      asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(shared_address(copy)),
                   "r"(6) : "memory");
    }
    __syncwarp();
    asm volatile(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
            scratch + 32), "r"(shared_address(copy))
        : "memory");
  }
  if (t == 0) {
    init(&bar, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (t == 0) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(scratch + 32) : "memory");
    expect(&bar, 1024);
    fetch_box(s, scratch + 32, 0, 0, &bar);
  }
  wait(&bar, 0);
  for (unsigned i = t; i < 256; i += 64) out[i] = s[i / 32][i % 32];
}

KERNEL(relaxed_cluster_barrier_within_a_cta) {
  // What the warps of one CTA hand over needs no release: one SM does it in order.
  __shared__ unsigned s[64];
  s[threadIdx.x] = in[threadIdx.x];
  asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire;" ::: "memory");
  out[64 * blockIdx.x + threadIdx.x] = s[63 - threadIdx.x];
}
