// Loads, stores, copies and atomics in the forms that few kernels use.

#include "driver.cuh"
#include <cuda_fp16.h>
#include <cuda_bf16.h>

struct alignas(16) Particle {
  float mass;
  unsigned char kind;
  unsigned short id;
  double energy;
};

KERNEL(struct_with_holes_through_shared_memory) {
  __shared__ Particle s[32];
  const unsigned t = threadIdx.x;
  Particle p;
  p.mass = in[t] % 100;
  p.kind = t;
  p.id = 3 * t;
  p.energy = t * 0.5;
  s[t] = p;
  __syncwarp();
  const uint4 *words = reinterpret_cast<const uint4 *>(&s[31 - t]);
  uint4 a = words[0];
  const Particle q = s[31 - t];
  out[t] = static_cast<unsigned>(q.mass + q.kind + q.id + 2 * q.energy) + (a.x == __float_as_uint(q.mass));
}

KERNEL(struct_with_holes_copied_in_global_memory) {
  auto all = reinterpret_cast<Particle *>(scratch);
  const unsigned t = threadIdx.x;
  Particle p;
  p.mass = t;
  p.kind = 1;
  p.id = 2;
  p.energy = 4;
  all[t] = p;
  all[64 + t] = all[t];
  out[t] = static_cast<unsigned>(all[64 + t].mass) + all[64 + t].id;
}

KERNEL(read_past_the_logical_end) {
  // The tile has 50 columns of 64: the loads take all, the sum leaves the rest out.
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  if (t < 50) s[t] = in[t];
  __syncthreads();
  unsigned sum = 0;
  for (unsigned i = 0; i < 16; ++i) {
    const uint4 four = reinterpret_cast<const uint4 *>(s)[(t + i) % 16];
    const unsigned at = (t + i) % 16 * 4;
    sum += at < 50 ? four.x : 0;
    sum += at + 1 < 50 ? four.y : 0;
    sum += at + 2 < 50 ? four.z : 0;
    sum += at + 3 < 50 ? four.w : 0;
  }
  out[t] = sum;
}

KERNEL(shared_rows_with_padding) {
  __shared__ unsigned s[16][17];
  const unsigned t = threadIdx.x;
  for (unsigned i = t; i < 256; i += 64) s[i / 16][i % 16] = in[i];
  __syncthreads();
  for (unsigned i = t; i < 256; i += 64) out[i] = s[i % 16][i / 16];
}

KERNEL(one_buffer_of_two_types) {
  __shared__ union { unsigned words[64]; unsigned short halves[128]; unsigned char octets[256]; } s;
  const unsigned t = threadIdx.x;
  s.words[t] = in[t];
  __syncthreads();
  const unsigned a = s.octets[4 * (63 - t) + 1], b = s.halves[2 * (63 - t) + 1];
  __syncthreads();
  s.halves[t] = a + b;
  __syncthreads();
  out[t] = s.words[t / 2] >> 16 * (t % 2) & 0xffff;
}

KERNEL(bytes_of_one_word_by_several_warps) {
  __shared__ unsigned char s[256];
  const unsigned t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  out[t] = s[(t * 4 + t / 64) % 256];
}

KERNEL(local_array_with_a_dynamic_index) {
  unsigned own[16];
  const unsigned t = threadIdx.x;
  for (unsigned i = 0; i < 16; ++i) own[(i * 5 + t) % 16] = in[16 * (t % 8) + i];
  unsigned at = in[t] % 16, sum = 0;
  for (unsigned i = 0; i < 8; ++i) {
    sum = sum * 3 + own[at];
    own[at] ^= sum;
    at = sum % 16;
  }
  out[t] = sum;
}

KERNEL(pointer_to_a_local_variable) {
  unsigned a = in[threadIdx.x], b = a + 1;
  unsigned *p = a % 2 ? &a : &b;
  unsigned **pp = &p;
  **pp += 5;
  asm volatile("" ::"l"(pp) : "memory");
  out[threadIdx.x] = a * 2 + b;
}

__constant__ unsigned TABLE[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ unsigned variable = 17;
__device__ const unsigned *pointer_to_it = &variable;

KERNEL(constants_and_module_variables) {
  const unsigned t = threadIdx.x;
  out[t] = TABLE[in[t] % 8] + *pointer_to_it;
}

KERNEL(generic_pointers_to_any_memory) {
  __shared__ unsigned s[64];
  unsigned own = in[threadIdx.x];
  s[threadIdx.x] = own + 1;
  __syncthreads();
  const unsigned *p[3] = {&own, &s[63 - threadIdx.x], in + threadIdx.x};
  const unsigned *at = p[in[threadIdx.x] % 3];
  out[threadIdx.x] = *at + __isShared(at) + 2 * __isLocal(at) + 4 * __isGlobal(at);
}

KERNEL(loads_through_the_read_only_cache) {
  const unsigned t = threadIdx.x;
  const uint4 four = __ldg(reinterpret_cast<const uint4 *>(in) + t);
  out[t] = four.x + four.y + __ldcs(in + t) + __ldca(in + t) + __ldlu(in + t) + __ldcv(in + t);
  __stcs(out + 64 + t, four.z);
  __stwt(out + 128 + t, four.w);
}

KERNEL(cache_policies_and_hints) {
  const unsigned t = threadIdx.x;
  unsigned long long first, range;
  asm("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(first));
  asm volatile("createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %0, [%1], 1024, 4096;"
      : "=l"(range) : "l"(in));
  unsigned a, b, c;
  asm("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(a) : "l"(in + t), "l"(first));
  asm("ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.u32 %0, [%1], %2;"
      : "=r"(b) : "l"(in + 64 + t), "l"(range));
  asm("ld.global.L1::evict_last.L2::128B.u32 %0, [%1];" : "=r"(c) : "l"(in + 128 + t));
  asm volatile("st.global.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(out + t), "r"(a + b + c), "l"(first) : "memory");
  asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(in + t));
  asm volatile("prefetch.global.L1 [%0]; prefetchu.L1 [%0];" ::"l"(in + t));
  asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(in));
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], 256;" ::"l"(in));
}

KERNEL(discarded_lines_written_again) {
  const unsigned t = threadIdx.x;
  scratch[t] = 1;
  __syncthreads();
  if (t == 0) asm volatile("discard.global.L2 [%0], 128;" ::"l"(scratch) : "memory");
  __syncthreads();
  scratch[t] = in[t];
  __syncthreads();
  out[t] = scratch[63 - t];
}

KERNEL(vectors_of_every_width) {
  const unsigned t = threadIdx.x;
  auto *bytes = reinterpret_cast<const unsigned char *>(in);
  const uchar4 a = reinterpret_cast<const uchar4 *>(bytes)[t];
  const ushort2 b = reinterpret_cast<const ushort2 *>(in)[t];
  const double2 c = make_double2(t, 2 * t);
  const ulonglong2 d = reinterpret_cast<const ulonglong2 *>(in)[t];
  reinterpret_cast<double2 *>(scratch)[t] = c;
  const double e = reinterpret_cast<volatile double *>(scratch)[2 * t + 1];
  out[t] = a.x + a.w + b.y + static_cast<unsigned>(d.y >> 40) + static_cast<unsigned>(e);
}

KERNEL(atomics_of_16_bits) {
  __shared__ unsigned short s[2];
  if (threadIdx.x < 2) s[threadIdx.x] = 0;
  __syncthreads();
  unsigned short old = 0, seen;
  while (true) {
    seen = atomicCAS(s + 1, old, static_cast<unsigned short>(old + 3));
    if (seen == old) break;
    old = seen;
  }
  atomicAdd(reinterpret_cast<__half *>(out), __float2half(1));
  atomicAdd(reinterpret_cast<__half2 *>(out + 1), __floats2half2_rn(1, 2));
  atomicAdd(reinterpret_cast<__nv_bfloat162 *>(out + 2), __floats2bfloat162_rn(1, 2));
  __syncthreads();
  if (threadIdx.x == 0) out[3] = s[1] << 16 | s[0];
}

KERNEL(atomics_of_64_bits_and_doubles) {
  auto sum = reinterpret_cast<double *>(scratch);
  auto many = reinterpret_cast<unsigned long long *>(scratch) + 1;
  atomicAdd(sum, 0.5 * threadIdx.x);
  atomicAdd(many, 1ull << 33);
  atomicMax(reinterpret_cast<long long *>(many) + 1, static_cast<long long>(threadIdx.x) - 10);
  atomicXor(many + 2, 1ull << threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) {
    out[0] = static_cast<unsigned>(*reinterpret_cast<volatile double *>(sum));
    out[1] = static_cast<unsigned>(atomicAdd(many, 0) >> 32);
    out[2] = static_cast<unsigned>(atomicAdd(many + 1, 0));
    out[3] = static_cast<unsigned>(atomicAdd(many + 2, 0) >> 32);
  }
}

KERNEL(atomics_of_vectors) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %1, %2, %2};" ::"l"(out), "f"(1.0f), "f"(2.0f) : "memory");
  asm volatile("red.global.v2.f32.add [%0], {%1, %1};" ::"l"(out + 4), "f"(0.5f) : "memory");
  float a, b;
  asm volatile("atom.global.v2.f32.add {%0, %1}, [%2], {%3, %3};" : "=f"(a), "=f"(b) : "l"(out + 8), "f"(1.0f) : "memory");
  asm volatile("red.global.v4.bf16x2.add.noftz [%0], {%1, %1, %1, %1};" ::"l"(out + 12), "r"(0x3f803f80) : "memory");
  asm volatile("red.global.v2.f16x2.max.noftz [%0], {%1, %1};" ::"l"(out + 16), "r"(0x3c003c00 + threadIdx.x) : "memory");
  if (a != b) out[20] = 1;
}

KERNEL(atomics_of_128_bits) {
  asm volatile(
      "{ .reg .b128 old, want, next; .reg .b64 lo, hi, one; .reg .pred p;\n"
      "mov.b64 one, 1;\n"
      "mov.b128 want, {%1, %1};\n"
      "mov.b128 next, {one, %2};\n"
      "atom.relaxed.gpu.global.cas.b128 old, [%0], want, next;\n"
      "mov.b128 {lo, hi}, old;\n"
      "st.global.b64 [%3], hi;\n"
      "atom.relaxed.gpu.global.exch.b128 old, [%0+16], next; }" ::"l"(scratch), "l"(0ull),
      "l"(static_cast<unsigned long long>(threadIdx.x)), "l"(scratch + 64 + 2 * threadIdx.x)
      : "memory");
  __syncthreads();
  if (threadIdx.x == 0) out[0] = scratch[0] + scratch[1];
}

KERNEL(atomics_that_wrap) {
  const unsigned mine = atomicInc(scratch, 9);
  atomicDec(scratch + 1, 20);
  atomicSub(scratch + 2, 1);
  out[thread()] = mine < 10;
  __threadfence();
  if (atomicAdd(scratch + 3, 1) == blockDim.x * gridDim.x - 1) {
    out[0] = atomicAdd(scratch, 0);
    out[1] = atomicAdd(scratch + 1, 0);
    out[2] = atomicAdd(scratch + 2, 0);
  }
}

KERNEL(histogram_in_shared_then_in_global) {
  __shared__ unsigned bins[64];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned i = thread(); i < 1024; i += gridDim.x * blockDim.x) atomicAdd(bins + in[i] % 64, 1);
  __syncthreads();
  if (bins[threadIdx.x]) atomicAdd(out + threadIdx.x, bins[threadIdx.x]);
}

KERNEL(cp_async_that_fills_with_zeros) {
  __shared__ __align__(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  if (t < 16) {
    const unsigned bytes = t < 10 ? 16 : t == 10 ? 8 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(s + 4 * t)),
                 "l"(in + 4 * t), "r"(bytes)
                 : "memory");
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[t] = s[63 - t];
}

KERNEL(cp_async_that_ignores_its_source) {
  __shared__ __align__(16) unsigned s[64];
  const unsigned t = threadIdx.x;
  asm volatile("{ .reg .pred p; setp.gt.u32 p, %2, 40; cp.async.ca.shared.global [%0], [%1], 4, p; }" ::"r"(
                   shared_address(s + t)), "l"(in + t), "r"(t)
               : "memory");
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  out[t] = s[63 - t];
}

KERNEL(cp_async_pipeline_of_three_stages) {
  __shared__ __align__(16) unsigned s[3][64];
  const unsigned t = threadIdx.x;
  auto fetch = [&](unsigned step) {
    if (step < 8)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&s[step % 3][t])),
                   "l"(in + 64 * step + t)
                   : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetch(0);
  fetch(1);
  unsigned sum = 0;
  for (unsigned step = 0; step < 8; ++step) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    fetch(step + 2);
    sum = sum * 3 + s[step % 3][63 - t];
  }
  out[t] = sum;
}

KERNEL(cp_async_that_arrives_at_an_mbarrier) {
  __shared__ __align__(16) unsigned s[64];
  __shared__ unsigned long long bar;
  const unsigned t = threadIdx.x, at = shared_address(&bar);
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at) : "memory");
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(s + t)), "l"(in + t) : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
  unsigned done;
  do asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                  : "=r"(done) : "r"(at) : "memory");
  while (!done);
  out[t] = s[63 - t];
}

KERNEL(matrices_loaded_stored_and_transposed) {
  __shared__ __align__(16) unsigned short a[64], b[64];
  const unsigned t = threadIdx.x;
  a[t] = in[t];
  a[t + 32] = in[t + 32];
  __syncwarp();
  unsigned x, y;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(x)
               : "r"(shared_address(a + t % 8 * 8)) : "memory");
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(shared_address(b + t % 8 * 8)),
               "r"(y) : "memory");
  __syncwarp();
  out[t] = b[t] << 16 | (x & 0xffff);
}

KERNEL(dynamic_stack) {
  const unsigned t = threadIdx.x, n = in[t] % 7 + 1;
  auto own = static_cast<unsigned *>(alloca(4 * n));
  for (unsigned i = 0; i < n; ++i) own[i] = in[t + i];
  unsigned sum = 0;
  for (unsigned i = n; i-- > 0;) sum = sum * 5 + own[i];
  out[t] = sum;
}

KERNEL(heap_blocks_handed_between_threads) {
  __shared__ unsigned *block;
  if (threadIdx.x == 0) block = static_cast<unsigned *>(malloc(64 * 4));
  __syncthreads();
  block[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = block[63 - threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 1) free(block);
}

KERNEL(memcpy_and_memset_of_the_device) {
  const unsigned t = threadIdx.x;
  unsigned own[5];
  memcpy(own, in + 5 * t, sizeof own);
  memset(scratch + 8 * t, 0x11, 12);
  out[t] = own[t % 5] + scratch[8 * t + 2] + scratch[8 * t + 3];
}

KERNEL(unaligned_pieces_put_together) {
  // Bytes from an odd address, as a parser reads them.
  auto bytes = reinterpret_cast<const unsigned char *>(in) + 3 * threadIdx.x + 1;
  unsigned word;
  memcpy(&word, bytes, 4);
  out[threadIdx.x] = word;
}

KERNEL(window_of_a_pointer_before_its_array) {
  // A pointer that is moved before the array's beginning, and only used inside.
  const unsigned *before = in - 64;
  out[threadIdx.x] = before[64 + threadIdx.x];
}
