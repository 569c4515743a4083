// Measures an SM and its memory for the model of time: prints a line of JSON for each figure.
//
//   nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a microbenchmarks.cu -o micro && ./micro
//
// Needs 7 GiB of an sm_90a card for a minute. Figures of warpsim/timing/chips/ that are marked
// as measured are from it; clocks are left as they are, and were 1,980 MHz.
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cstdio>
#include <cstdint>
#include <vector>
#include <algorithm>
#include <string>

#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { \
  printf("{\"error\": \"%s at line %d\"}\n", cudaGetErrorString(e), __LINE__); fflush(stdout); exit(1);} } while (0)

static unsigned* out; static int sms; static int clock_khz;
static void say(const std::string& name, double value, const char* unit) {
  printf("{\"name\": \"%s\", \"value\": %.5g, \"unit\": \"%s\"}\n", name.c_str(), value, unit); fflush(stdout);
}
__device__ __forceinline__ unsigned tick() { unsigned t; asm volatile("mov.u32 %0, %%clock;" : "=r"(t) :: "memory"); return t; }
__device__ __forceinline__ uint32_t smem(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

template <class K, class... A>
static double cycles_of(K kernel, int grid, int block, size_t shared, A... args) {
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)));
  std::vector<double> all;
  for (int run = 0; run < 7; ++run) {
    kernel<<<grid, block, shared>>>(out, args...);
    CHECK(cudaDeviceSynchronize());
    unsigned value; CHECK(cudaMemcpy(&value, out, 4, cudaMemcpyDeviceToHost));
    all.push_back(value);
  }
  std::sort(all.begin(), all.end());
  return all[3];
}
template <class K, class... A>
static double ms_of(K kernel, int grid, int block, size_t shared, A... args) {
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)));
  cudaEvent_t a, b; CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b));
  std::vector<float> all;
  for (int run = 0; run < 9; ++run) {
    CHECK(cudaEventRecord(a)); kernel<<<grid, block, shared>>>(out, args...); CHECK(cudaEventRecord(b));
    CHECK(cudaEventSynchronize(b)); float ms; cudaEventElapsedTime(&ms, a, b); all.push_back(ms);
  }
  CHECK(cudaGetLastError()); std::sort(all.begin(), all.end());
  return all[4];
}

// ---- pipes: chains (1 warp) and streams (many warps, 8 independent) ----
enum Op { FFMA, IMAD, LOP3, IADD3, HFMA2, MUFU, POPC, SHFL, DFMA, SHF, FMNMX, F2I, REDUX, IMADWIDE, SELP, PRMT, FADD, VOTE, LOPFMA };
static const char* op_names[] = {"ffma","imad","lop3","iadd3","hfma2","mufu_ex2","popc","shfl","dfma","shf","fmnmx","f2i","redux","imad_wide","sel","prmt","fadd","vote","lop3_ffma"};
template <int OP> __device__ __forceinline__ void op(uint32_t& x, double& d, uint32_t y, uint32_t z) {
  if (OP == FFMA) asm volatile("{.reg .f32 a,b; mov.b32 a,%0; mov.b32 b,%1; fma.rn.f32 a,a,b,b; mov.b32 %0,a;}" : "+r"(x) : "r"(y));
  if (OP == FADD) asm volatile("{.reg .f32 a,b; mov.b32 a,%0; mov.b32 b,%1; add.f32 a,a,b; mov.b32 %0,a;}" : "+r"(x) : "r"(y));
  if (OP == IMAD) asm volatile("mad.lo.u32 %0,%0,%1,%2;" : "+r"(x) : "r"(y), "r"(z));
  if (OP == IMADWIDE) asm volatile("{.reg .u64 w; mad.wide.u32 w,%0,%1,0; mov.b64 {%0,_},w;}" : "+r"(x) : "r"(y));
  if (OP == LOP3) asm volatile("lop3.b32 %0,%0,%1,%2,0x96;" : "+r"(x) : "r"(y), "r"(z));
  if (OP == IADD3) asm volatile("{.reg .u32 t; add.u32 t,%0,%1; add.u32 %0,t,%2;}" : "+r"(x) : "r"(y), "r"(z));
  if (OP == HFMA2) asm volatile("fma.rn.f16x2 %0,%0,%1,%1;" : "+r"(x) : "r"(y));
  if (OP == MUFU) asm volatile("{.reg .f32 a; mov.b32 a,%0; ex2.approx.ftz.f32 a,a; mov.b32 %0,a;}" : "+r"(x));
  if (OP == POPC) asm volatile("popc.b32 %0,%0;" : "+r"(x));
  if (OP == SHFL) asm volatile("shfl.sync.bfly.b32 %0,%0,1,31,-1;" : "+r"(x));
  if (OP == DFMA) asm volatile("fma.rn.f64 %0,%0,%0,%0;" : "+d"(d));
  if (OP == SHF) asm volatile("shf.l.wrap.b32 %0,%0,%1,%2;" : "+r"(x) : "r"(y), "r"(z));
  if (OP == FMNMX) asm volatile("{.reg .f32 a,b; mov.b32 a,%0; mov.b32 b,%1; max.f32 a,a,b; mov.b32 %0,a;}" : "+r"(x) : "r"(y));
  if (OP == F2I) asm volatile("{.reg .f32 a; .reg .s32 b; mov.b32 a,%0; cvt.rni.s32.f32 b,a; mov.b32 %0,b;}" : "+r"(x));
  if (OP == REDUX) asm volatile("redux.sync.add.u32 %0,%0,-1;" : "+r"(x));
  if (OP == SELP) asm volatile("{.reg .pred p; setp.lt.u32 p,%0,%1; selp.b32 %0,%1,%0,p;}" : "+r"(x) : "r"(y));
  if (OP == PRMT) asm volatile("prmt.b32 %0,%0,%1,%2;" : "+r"(x) : "r"(y), "r"(z));
  if (OP == VOTE) asm volatile("{.reg .pred p; setp.lt.u32 p,%0,%1; vote.sync.ballot.b32 %0,p,-1;}" : "+r"(x) : "r"(y));
  if (OP == LOPFMA) { op<LOP3>(x, d, y, z); op<FFMA>(x, d, y, z); }
}
template <int OP, int ILP, int UNROLL> __global__ void pipe(unsigned* out, uint32_t y, uint32_t z) {
  uint32_t x[ILP]; double d[ILP];
  for (int i = 0; i < ILP; ++i) { x[i] = threadIdx.x + i + y; d[i] = x[i]; }
  unsigned best = ~0u;
  for (int repeat = 0; repeat < 4; ++repeat) {
    __syncthreads();
    unsigned start = tick();
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int k = 0; k < UNROLL; ++k)
#pragma unroll
        for (int i = 0; i < ILP; ++i) op<OP>(x[i], d[i], y, z);
    __syncthreads();
    best = min(best, tick() - start);
  }
  uint32_t sum = 0; for (int i = 0; i < ILP; ++i) sum += x[i] + uint32_t(d[i]);
  if (sum == 0x12345679) out[1] = sum;
  if (!threadIdx.x) out[0] = best;
}
template <int OP> static void pipes() {
  double one = cycles_of(pipe<OP, 1, 64>, 1, 32, 0, 3u, 5u), half = cycles_of(pipe<OP, 1, 32>, 1, 32, 0, 3u, 5u);
  say(std::string("chain_") + op_names[OP], (one - half) / (8 * 32), "cycles");
  for (int warps : {4, 16, 32}) {
    double a = cycles_of(pipe<OP, 8, 16>, 1, warps * 32, 0, 3u, 5u), b = cycles_of(pipe<OP, 8, 8>, 1, warps * 32, 0, 3u, 5u);
    say(std::string("rate_") + op_names[OP] + "_warps" + std::to_string(warps), 8.0 * 8 * 8 * warps / (a - b), "warp instructions per cycle and SM");
  }
}

// ---- shared memory ----
__global__ void lds_chase(unsigned* out) {
  extern __shared__ uint32_t s[];
  uint32_t at = smem(s) + 4 * threadIdx.x; s[threadIdx.x] = at; __syncthreads();
  unsigned start = 0;
  for (int r = 0; r < 2; ++r) { start = tick();
#pragma unroll
  for (int i = 0; i < 128; ++i) asm volatile("ld.shared.u32 %0,[%0];" : "+r"(at)); }
  unsigned end = tick(); if (at == 1) out[1] = at; out[0] = end - start;
}
// Eight accesses to registers of their own at a time; nothing else but loads' sums, as an access that no lane takes part in costs a cycle, too.
template <int WIDTH, int STORES> __global__ void shared_stream(unsigned* out, int same, int stride, int turns) {
  extern __shared__ uint32_t s[];
  const uint32_t at = smem(s) + (threadIdx.x % 32) / same * stride * 4; uint32_t sum = threadIdx.x, best = ~0u;
  for (int i = threadIdx.x; i < 16384; i += blockDim.x) s[i] = 0;
  for (int repeat = 0; repeat < 4; ++repeat) {
    __syncthreads(); unsigned start = tick();
#pragma unroll 1
    for (int r = 0; r < turns; ++r) {
      uint32_t v[8][4] = {};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const uint32_t p = at + i * 512;
        if (STORES && WIDTH == 1) asm volatile("st.shared.u32 [%0],%1;" :: "r"(p), "r"(sum) : "memory");
        if (STORES && WIDTH == 2) asm volatile("st.shared.v2.u32 [%0],{%1,%1};" :: "r"(p), "r"(sum) : "memory");
        if (STORES && WIDTH == 4) asm volatile("st.shared.v4.u32 [%0],{%1,%1,%1,%1};" :: "r"(p), "r"(sum) : "memory");
        if (!STORES && WIDTH == 1) asm volatile("ld.volatile.shared.u32 %0,[%1];" : "=r"(v[i][0]) : "r"(p) : "memory");
        if (!STORES && WIDTH == 2) asm volatile("ld.volatile.shared.v2.u32 {%0,%1},[%2];" : "=r"(v[i][0]), "=r"(v[i][1]) : "r"(p) : "memory");
        if (!STORES && WIDTH == 4) asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v[i][0]), "=r"(v[i][1]), "=r"(v[i][2]), "=r"(v[i][3]) : "r"(p) : "memory");
      }
#pragma unroll
      for (int i = 0; i < 8 && !STORES; ++i) sum += v[i][0];
    }
    __syncthreads(); best = min(best, tick() - start);
  }
  if (sum == 0x12345) out[1] = 1;
  if (!threadIdx.x) out[0] = best;
}
template <int WIDTH, int STORES> static void shared_streams_of(const char* of, int same, int factor) {
  for (int warps : {1, 4, 16}) {
    double a = cycles_of(shared_stream<WIDTH, STORES>, 1, warps * 32, 65536, same, WIDTH * factor, 64), b = cycles_of(shared_stream<WIDTH, STORES>, 1, warps * 32, 65536, same, WIDTH * factor, 32);
    say(std::string(of) + std::to_string(32 * WIDTH) + (same == 32 ? std::string("_same") : "_stride" + std::to_string(WIDTH * factor)) + "_warps" + std::to_string(warps), (a - b) / (32 * 8.0 * warps), "cycles per instruction and SM");
  }
}
template <int WIDTH> static void shared_streams() {
  for (int factor : {1, 2, 4, 8}) { shared_streams_of<WIDTH, 0>("lds", 1, factor); shared_streams_of<WIDTH, 1>("sts", 1, factor); }
  shared_streams_of<WIDTH, 0>("lds", 32, 1);
}
template <int ILP> __global__ void ldsm_stream(unsigned* out, int store) {
  extern __shared__ uint32_t s[];
  uint32_t at = smem(s) + threadIdx.x * 16 % 16384; uint32_t a = 1, b = 2, c = 3, d = 4; unsigned best = ~0u;
  for (int repeat = 0; repeat < 4; ++repeat) {
    __syncthreads(); unsigned start = tick();
    for (int r = 0; r < 16; ++r)
#pragma unroll
      for (int i = 0; i < ILP; ++i) {
        if (store) asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0],{%1,%2,%3,%4};" :: "r"(at), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
        else asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
      }
    __syncthreads(); best = min(best, tick() - start);
  }
  if (a + b + c + d == 0x12345) out[1] = 1;
  if (!threadIdx.x) out[0] = best;
}
template <int ILP> __global__ void atoms_stream(unsigned* out, int same) {
  __shared__ uint32_t s[1024];
  uint32_t at = smem(s) + (same ? 0 : threadIdx.x * 4); unsigned best = ~0u; uint32_t x = 0;
  for (int repeat = 0; repeat < 4; ++repeat) {
    __syncthreads(); unsigned start = tick();
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int i = 0; i < ILP; ++i) { uint32_t y; asm volatile("atom.shared.add.u32 %0,[%1],%2;" : "=r"(y) : "r"(at), "r"(x) : "memory"); if (same == 2) x = y; }
    __syncthreads(); best = min(best, tick() - start);
  }
  if (!threadIdx.x) out[0] = best; if (x == 99) out[1] = x;
}

// ---- barriers ----
template <int N> __global__ void bar(unsigned* out) {
  unsigned best = ~0u;
  for (int repeat = 0; repeat < 4; ++repeat) {
    unsigned start = tick();
#pragma unroll
    for (int i = 0; i < N; ++i) __syncthreads();
    best = min(best, tick() - start);
  }
  if (!threadIdx.x) out[0] = best;
}
__device__ __forceinline__ void mb_init(uint64_t* b, int n) { asm volatile("mbarrier.init.shared.b64 [%0],%1;" :: "r"(smem(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void mb_arrive(uint64_t* b) { asm volatile("{.reg .b64 t; mbarrier.arrive.shared.b64 t,[%0];}" :: "r"(smem(b)) : "memory"); }
__device__ __forceinline__ void mb_expect(uint64_t* b, int n) { asm volatile("{.reg .b64 t; mbarrier.arrive.expect_tx.shared.b64 t,[%0],%1;}" :: "r"(smem(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void mb_wait(uint64_t* b, int parity) {
  asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p,[%0],%1; @p bra D; bra L; D:}" :: "r"(smem(b)), "r"(parity) : "memory");
}
__global__ void mb_self(unsigned* out) {  // arrive and wait, one thread
  __shared__ uint64_t b; if (!threadIdx.x) mb_init(&b, 1); __syncthreads();
  if (threadIdx.x) return;
  unsigned start = 0;
  for (int i = 0; i < 72; ++i) { if (i == 8) start = tick(); mb_arrive(&b); mb_wait(&b, i & 1); }
  out[0] = tick() - start;
}
__global__ void mb_ring(unsigned* out) {  // two warps in turn
  __shared__ uint64_t b[2]; if (!threadIdx.x) { mb_init(&b[0], 1); mb_init(&b[1], 1); } __syncthreads();
  int w = threadIdx.x / 32; if (threadIdx.x % 32) return;
  unsigned start = 0;
  for (int i = 0; i < 72; ++i) {
    if (i == 8) start = tick();
    if (w == 0) { mb_arrive(&b[0]); mb_wait(&b[1], i & 1); } else { mb_wait(&b[0], i & 1); mb_arrive(&b[1]); }
  }
  if (!w) out[0] = tick() - start;
}

// ---- global latency: pointer chase ----
__global__ void fill_chase(uint32_t* p, uint32_t count, uint32_t step) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) p[size_t(i) * step] = uint32_t((uint64_t(i) * 1 + 1237) % count) * step;
}
template <int CACHED> __global__ void chase(unsigned* out, const uint32_t* p, int warm, int hops) {
  uint32_t at = 0;
  for (int i = 0; i < warm; ++i) { if (CACHED) asm volatile("ld.global.ca.u32 %0,[%1];" : "=r"(at) : "l"(p + at)); else asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(at) : "l"(p + at)); }
  unsigned start = tick();
#pragma unroll 16
  for (int i = 0; i < hops; ++i) { if (CACHED) asm volatile("ld.global.ca.u32 %0,[%1];" : "=r"(at) : "l"(p + at)); else asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(at) : "l"(p + at)); }
  unsigned end = tick(); if (at == 0xffffffff) out[1] = at; out[0] = (end - start);
}
// ---- bandwidth: every SM reads (or writes) `bytes` of a set, `turns` times ----
__global__ void read_set(unsigned* out, const uint4* p, size_t count, int turns, int shift) {
  unsigned start = tick(); uint32_t sum = 0; size_t width = size_t(gridDim.x) * blockDim.x;
  for (int turn = 0; turn < turns; ++turn) {
    size_t i = (blockIdx.x + turn * size_t(shift)) % gridDim.x * blockDim.x + threadIdx.x;
    for (; i + 7 * width < count; i += 8 * width) {
      uint4 v[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w) : "l"(p + i + k * width));
#pragma unroll
      for (int k = 0; k < 8; ++k) sum += v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
  }
  if (sum == 0x12345) out[1] = sum; __syncthreads();
  if (!threadIdx.x && !blockIdx.x) out[0] = tick() - start;
}
__global__ void write_set(unsigned* out, uint4* p, size_t count, int turns, int lanes) {
  unsigned start = tick(); size_t width = size_t(gridDim.x) * blockDim.x;
  for (int turn = 0; turn < turns; ++turn)
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += width)
      if (int(threadIdx.x % 8) < lanes) p[i] = make_uint4(turn, 2, 3, 4);
  __syncthreads(); if (!threadIdx.x && !blockIdx.x) out[0] = tick() - start;
}
__global__ void copy_set(unsigned* out, const uint4* p, uint4* q, size_t count) {
  size_t width = size_t(gridDim.x) * blockDim.x; size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * width < count; i += 4 * width) {
    uint4 v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = p[i + k * width];
#pragma unroll
    for (int k = 0; k < 4; ++k) q[i + k * width] = v[k];
  }
}
__global__ void copy_words(unsigned* out, const uint32_t* p, uint32_t* q, size_t count) {  // one word per thread
  size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; if (i < count) q[i] = p[i];
}
__global__ void write_columns(unsigned* out, uint32_t* q, int rows, int columns) {  // a word in each of 32 rows per warp
  int row = blockIdx.x * 32 + threadIdx.x % 32, column = blockIdx.y * 32 + threadIdx.x / 32;
  q[size_t(row) * columns + column] = row;
}
__global__ void read_columns(unsigned* out, const uint32_t* q, int rows, int columns) {
  int row = blockIdx.x * 32 + threadIdx.x % 32, column = blockIdx.y * 32 + threadIdx.x / 32;
  if (q[size_t(row) * columns + column] == 0x12345) out[1] = 1;
}
__global__ void empty(unsigned* out) {}
__global__ void ends(unsigned* out, int spin) {
  unsigned start = tick(); while (tick() - start < unsigned(spin)) {}
}

// ---- bulk copies (TMA unit) ----
__global__ void bulk_latency(unsigned* out, const char* p, int bytes, int warm, size_t step) {
  extern __shared__ __align__(128) char buffer[]; __shared__ uint64_t b;
  if (threadIdx.x) return; mb_init(&b, 1); asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  unsigned sum = 0;
  for (int i = 0; i < 33; ++i) {
    unsigned start = tick();
    mb_expect(&b, bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" :: "r"(smem(buffer)), "l"(p + (warm ? 0 : i * step)), "r"(bytes), "r"(smem(&b)) : "memory");
    mb_wait(&b, i & 1);
    if (i) sum += tick() - start;
  }
  out[0] = sum / 32;
}
__global__ void bulk_stream(unsigned* out, const char* p, int bytes, int stages, int turns, size_t set) {
  extern __shared__ __align__(128) char buffer[]; __shared__ uint64_t b[16];
  if (threadIdx.x) return;
  for (int s = 0; s < stages; ++s) mb_init(&b[s], 1);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  unsigned start = tick(); size_t at = size_t(blockIdx.x) * bytes;
  for (int i = 0; i < turns + stages; ++i) {
    int s = i % stages;
    if (i >= stages) mb_wait(&b[s], (i / stages - 1) & 1);
    if (i >= turns) continue;
    mb_expect(&b[s], bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" :: "r"(smem(buffer + s * bytes)), "l"(p + at), "r"(bytes), "r"(smem(&b[s])) : "memory");
    at += size_t(gridDim.x) * bytes; if (at + bytes > set) at = size_t(blockIdx.x) * bytes;
  }
  if (!blockIdx.x) out[0] = tick() - start;
}
__global__ void bulk_store(unsigned* out, char* p, int bytes, int turns, size_t set) {
  extern __shared__ __align__(128) char buffer[];
  if (threadIdx.x) return;
  unsigned start = tick(); size_t at = size_t(blockIdx.x) * bytes;
  for (int i = 0; i < turns; ++i) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0],[%1],%2;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 1;" :: "l"(p + at), "r"(smem(buffer + (i & 1) * bytes)), "r"(bytes) : "memory");
    at += size_t(gridDim.x) * bytes; if (at + bytes > set) at = size_t(blockIdx.x) * bytes;
  }
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  if (!blockIdx.x) out[0] = tick() - start;
}
template <int ILP> __global__ void ldgsts(unsigned* out, const char* p) {
  extern __shared__ __align__(128) char buffer[]; unsigned best = ~0u, t = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    __syncthreads(); unsigned start = tick();
#pragma unroll
    for (int i = 0; i < ILP; ++i) asm volatile("cp.async.cg.shared.global [%0],[%1],16;" :: "r"(smem(buffer) + threadIdx.x * 16 + i * blockDim.x * 16), "l"(p + threadIdx.x * 16 + i * blockDim.x * 16) : "memory");
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    __syncthreads(); t = tick() - start; best = min(best, t);
  }
  if (!threadIdx.x) out[0] = best;
}

// ---- tensor cores ----
template <int ILP, int UNROLL> __global__ void hmma(unsigned* out) {
  float c[ILP][4] = {}; uint32_t a = threadIdx.x; unsigned best = ~0u;
  for (int repeat = 0; repeat < 4; ++repeat) {
    __syncthreads(); unsigned start = tick();
    for (int r = 0; r < 8; ++r)
#pragma unroll
      for (int k = 0; k < UNROLL; ++k)
#pragma unroll
        for (int i = 0; i < ILP; ++i)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%0,%1,%2,%3};" : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3]) : "r"(a));
    __syncthreads(); best = min(best, tick() - start);
  }
  float sum = 0; for (int i = 0; i < ILP; ++i) sum += c[i][0]; if (sum == 1.5f) out[1] = 1;
  if (!threadIdx.x) out[0] = best;
}
__device__ __forceinline__ void fence_() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wait_() { asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory"); }
// Commits and waits for the products; true in all four warps where one of them has seen `stop`, which they
// agree on while the products run: a warp that multiplies without the others is an illegal instruction.
__device__ __forceinline__ bool finish_(volatile int& stop) {
  commit_();
  int any;
  asm volatile("{.reg .pred p, q; setp.ne.s32 p, %1, 0; barrier.cta.red.or.pred q, 2, 128, p; selp.s32 %0, 1, 0, q;}" : "=r"(any) : "r"(stop) : "memory");
  wait_<0>();
  return any;
}
#define R8(i) "+f"(c[i]), "+f"(c[i+1]), "+f"(c[i+2]), "+f"(c[i+3]), "+f"(c[i+4]), "+f"(c[i+5]), "+f"(c[i+6]), "+f"(c[i+7])
#define W32(TYPES, KIND, TAIL) asm volatile("{wgmma.mma_async.sync.aligned.m64n64" KIND "." TYPES " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1" TAIL ";}" : R8(0), R8(8), R8(16), R8(24) : "l"(a), "l"(b))
#define W64(TYPES, KIND, TAIL) asm volatile("{wgmma.mma_async.sync.aligned.m64n128" KIND "." TYPES " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, 1, 1, 1" TAIL ";}" : R8(0), R8(8), R8(16), R8(24), R8(32), R8(40), R8(48), R8(56) : "l"(a), "l"(b))
#define W128(TYPES, KIND, TAIL) asm volatile("{wgmma.mma_async.sync.aligned.m64n256" KIND "." TYPES " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, %128, %129, 1, 1, 1" TAIL ";}" : R8(0), R8(8), R8(16), R8(24), R8(32), R8(40), R8(48), R8(56), R8(64), R8(72), R8(80), R8(88), R8(96), R8(104), R8(112), R8(120) : "l"(a), "l"(b))
#define A32(TYPES, KIND, TAIL) asm volatile("{wgmma.mma_async.sync.aligned.m64n64" KIND "." TYPES " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%32,%32,%32}, %33, 1, 1, 1" TAIL ";}" : R8(0), R8(8), R8(16), R8(24) : "r"(ra), "l"(b))
template <int N, int FP8, int COUNT, int REGS> __global__ void wgmma(unsigned* out) {
  extern __shared__ __align__(1024) char buffer[];
  for (int i = threadIdx.x; i < 65536 / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(buffer)[i] = 0;
  asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();
  float c[N / 2] = {}; uint32_t ra = 0;
  uint32_t base = (smem(buffer) + 1023) & ~1023u;
  uint64_t a = uint64_t(base >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);  // 128-byte swizzle
  uint64_t b = uint64_t((base + 16384) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
  unsigned best = ~0u;
  for (int repeat = 0; repeat < 4; ++repeat) {
    __syncthreads(); unsigned start = tick(); fence_();
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (REGS) { A32("f32.bf16.bf16", "k16", ", 0"); }
      else if (FP8) { if (N == 64) { W32("f32.e4m3.e4m3", "k32", ""); } else if (N == 128) { W64("f32.e4m3.e4m3", "k32", ""); } else { W128("f32.e4m3.e4m3", "k32", ""); } }
      else { if (N == 64) { W32("f32.bf16.bf16", "k16", ", 0, 0"); } else if (N == 128) { W64("f32.bf16.bf16", "k16", ", 0, 0"); } else { W128("f32.bf16.bf16", "k16", ", 0, 0"); } }
    }
    commit_(); wait_<0>(); best = min(best, tick() - start);
  }
  float sum = 0; for (int i = 0; i < N / 2; ++i) sum += c[i]; if (sum == 1.5f) out[1] = 1;
  if (!threadIdx.x) out[0] = best;
}
template <int N, int FP8, int REGS> static void wgmmas(const char* name) {
  for (int groups : {1, 2}) {
    double a = cycles_of(wgmma<N, FP8, 1, REGS>, 1, 128 * groups, 66560), b = cycles_of(wgmma<N, FP8, 4, REGS>, 1, 128 * groups, 66560), c = cycles_of(wgmma<N, FP8, 16, REGS>, 1, 128 * groups, 66560);
    std::string of = std::string("wgmma_") + name + "_n" + std::to_string(N) + "_groups" + std::to_string(groups);
    say(of + "_first", a, "cycles"); say(of + "_4", b, "cycles"); say(of + "_each", (c - b) / 12, "cycles");
  }
}
// ---- branch and instruction supply ----
__global__ void loop(unsigned* out, int turns) {
  unsigned start = tick(), x = 0;
#pragma unroll 1
  for (int i = 0; i < turns; ++i) asm volatile("lop3.b32 %0,%0,%1,%1,0x96;" : "+r"(x) : "r"(i));
  unsigned end = tick(); if (x == 1) out[1] = x; out[0] = end - start;
}
template <int COUNT> __global__ void straight(unsigned* out, uint32_t y) {
  uint32_t x[4] = {y, y + 1, y + 2, y + 3}; unsigned last = 0, first = 0; double d = 0;
#pragma unroll 1
  for (int r = 0; r < 5; ++r) {
    unsigned start = tick();
#pragma unroll
    for (int i = 0; i < COUNT; ++i) op<IMAD>(x[i % 4], d, y, y);
    last = tick() - start; if (!r) first = last;
  }
  if (x[0] + x[1] + x[2] + x[3] == 0x12345) out[1] = 1;
  if (!threadIdx.x) { out[0] = last; out[2] = first; }
}
template <int COUNT> static void straights() {
  for (int warps : {1, 4, 16}) {
    double value = cycles_of(straight<COUNT>, 1, 32 * warps, 0, 3u);
    say("straight_imad_" + std::to_string(COUNT) + "_warps" + std::to_string(warps), value / COUNT, "cycles per instruction of a warp");
  }
}

// One warpgroup multiplies until the other is done with its own instructions: what pipes have left.
template <int OP, int N, int FP8, int REGS> __global__ void __launch_bounds__(256) mix(unsigned* out, int multiply, uint32_t y, uint32_t z) {
  extern __shared__ __align__(1024) char buffer[]; __shared__ volatile int stop;
  for (int i = threadIdx.x; i < 65536 / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(buffer)[i] = 0;
  if (!threadIdx.x) stop = 0;
  asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();
  if (threadIdx.x < 128) {
    if (!multiply) return;
    float c[N / 2] = {}; uint32_t ra = 0, base = (smem(buffer) + 1023) & ~1023u;
    uint64_t a = uint64_t(base >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62), b = uint64_t((base + 16384) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
    unsigned start = tick(), count = 0, end = 0; bool is_over;
    do {
      fence_();
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (REGS) { A32("f32.bf16.bf16", "k16", ", 0"); }
        else if (N == 64) { W32("f32.bf16.bf16", "k16", ", 0, 0"); } else if (N == 128) { W64("f32.bf16.bf16", "k16", ", 0, 0"); } else { W128("f32.bf16.bf16", "k16", ", 0, 0"); }
      }
      is_over = finish_(stop); count += 8; end = tick();
    } while (!is_over);
    float sum = 0; for (int i = 0; i < N / 2; ++i) sum += c[i]; if (sum == 1.5f) out[9] = 1;
    if (!threadIdx.x) { out[1] = end - start; out[2] = count; }
  } else {
    uint32_t x[8]; double d[8]; for (int i = 0; i < 8; ++i) { x[i] = threadIdx.x + i + y; d[i] = x[i]; }
    unsigned start = tick();
    for (int r = 0; r < 200; ++r)
#pragma unroll
      for (int k = 0; k < 16; ++k)
#pragma unroll
        for (int i = 0; i < 8; ++i) op<OP>(x[i], d[i], y, z);
    unsigned end = tick();
    uint32_t sum = 0; for (int i = 0; i < 8; ++i) sum += x[i] + uint32_t(d[i]); if (sum == 0x12345679) out[9] = sum;
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 128) { out[0] = end - start; stop = 1; }
  }
}
template <int OP, int N, int FP8, int REGS> static void mixed(const char* of) {
  for (int multiply = 0; multiply < 2; ++multiply) {
    double v = cycles_of(mix<OP, N, FP8, REGS>, 1, 256, 66560, multiply, 3u, 5u);
    unsigned r[3]; CHECK(cudaMemcpy(r, out, 12, cudaMemcpyDeviceToHost));
    std::string name = std::string("mix_") + of + "_n" + std::to_string(N) + "_" + op_names[OP];
    say(name + (multiply ? "_beside" : "_alone"), v / (200 * 128), "cycles per instruction of a warp");
    if (multiply) say(name + "_wgmma", double(r[1]) / r[2], "cycles per wgmma, in groups of 8");
  }
}
template <int OP> static void mixes() { mixed<OP, 64, 0, 0>("ss"); mixed<OP, 128, 0, 0>("ss"); mixed<OP, 256, 0, 0>("ss"); mixed<OP, 64, 0, 1>("rs"); }

// Two warpgroups issue COUNT wgmmas each at once: are the groups served one after the other, or in turn?
template <int COUNT> __global__ void __launch_bounds__(256) pair_(unsigned* out) {
  extern __shared__ __align__(1024) char buffer[];
  for (int i = threadIdx.x; i < 65536 / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(buffer)[i] = 0;
  asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();
  constexpr int N = 128; float c[N / 2] = {}; uint32_t base = (smem(buffer) + 1023) & ~1023u;
  uint64_t a = uint64_t(base >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62), b = uint64_t((base + 16384) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
  unsigned issued = 0, done = 0, start = 0;
  for (int repeat = 0; repeat < 4; ++repeat) {
    __syncthreads(); start = tick(); fence_();
#pragma unroll
    for (int i = 0; i < COUNT; ++i) W64("f32.bf16.bf16", "k16", ", 0, 0");
    commit_(); issued = tick(); wait_<0>(); done = tick();
  }
  float sum = 0; for (int i = 0; i < N / 2; ++i) sum += c[i]; if (sum == 1.5f) out[9] = 1;
  if (threadIdx.x % 128 == 0) { int g = threadIdx.x / 128; out[3 * g] = start; out[3 * g + 1] = issued; out[3 * g + 2] = done; }
}
template <int COUNT> static void pairs() {
  cycles_of(pair_<COUNT>, 1, 256, 66560); unsigned r[6]; CHECK(cudaMemcpy(r, out, 24, cudaMemcpyDeviceToHost));
  std::string of = "pair_of_" + std::to_string(COUNT) + "_";
  say(of + "group0_issued", r[1] - r[0], "cycles"); say(of + "group0_done", r[2] - r[0], "cycles");
  say(of + "group1_started", double(int(r[3] - r[0])), "cycles after group 0"); say(of + "group1_issued", r[4] - r[0], "cycles"); say(of + "group1_done", r[5] - r[0], "cycles");
}
// Warpgroups that multiply, then compute, with nothing that keeps them apart or together.
template <int ALU> __global__ void __launch_bounds__(384) drift(unsigned* out, int turns, uint32_t y, uint32_t z) {
  extern __shared__ __align__(1024) char buffer[];
  for (int i = threadIdx.x; i < 65536 / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(buffer)[i] = 0;
  asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();
  constexpr int N = 128; float c[N / 2] = {}; uint32_t base = (smem(buffer) + 1023) & ~1023u;
  uint64_t a = uint64_t(base >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62), b = uint64_t((base + 16384) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
  uint32_t x[8]; double d[8] = {}; for (int i = 0; i < 8; ++i) x[i] = threadIdx.x + i + y;
  __syncthreads(); unsigned start = tick();
  for (int t = 0; t < turns; ++t) {
    fence_();
#pragma unroll
    for (int i = 0; i < 8; ++i) W64("f32.bf16.bf16", "k16", ", 0, 0");
    commit_(); wait_<0>();
#pragma unroll
    for (int k = 0; k < ALU / 8; ++k)
#pragma unroll
      for (int i = 0; i < 8; ++i) op<FMNMX>(x[i], d[i], y, z);
  }
  unsigned end = tick(); uint32_t sum = 0; for (int i = 0; i < 8; ++i) sum += x[i]; float s = 0; for (int i = 0; i < N / 2; ++i) s += c[i];
  if (sum == 0x12345679 || s == 1.5f) out[9] = 1;
  if (!threadIdx.x) out[0] = end - start;
}
template <int ALU> static void drifts() {
  for (int groups : {1, 2, 3}) say("drift_alu" + std::to_string(ALU) + "_groups" + std::to_string(groups), (cycles_of(drift<ALU>, 1, 128 * groups, 66560, 200, 3u, 5u) - cycles_of(drift<ALU>, 1, 128 * groups, 66560, 100, 3u, 5u)) / 100, "cycles per turn of 8 m64n128k16");
}
// DRAM with reads and writes side by side.
template <int READS, int WRITES> __global__ void traffic(unsigned* out, const uint4* p, uint4* q, size_t rows) {
  size_t width = size_t(gridDim.x) * blockDim.x, at = size_t(blockIdx.x) * blockDim.x + threadIdx.x; uint32_t sum = 0;
  for (size_t r = 0; r < rows; ++r) {
    uint4 v[READS ? READS : 1];
#pragma unroll
    for (int k = 0; k < READS; ++k) asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w) : "l"(p + (r * READS + k) * width + at));
#pragma unroll
    for (int k = 0; k < READS; ++k) sum += v[k].x ^ v[k].w;
#pragma unroll
    for (int k = 0; k < WRITES; ++k) q[(r * WRITES + k) * width + at] = make_uint4(sum, r, k, 4);
  }
  if (sum == 0x12345) out[1] = sum;
}
template <int READS, int WRITES> static void mixture(const char* big, char* to) {
  const size_t GIB = size_t(1) << 30, width = size_t(264) * 1024 * 16, rows = 3 * GIB / width / (READS > WRITES ? READS : WRITES);
  double ms = ms_of(traffic<READS, WRITES>, 264, 1024, 0, (const uint4*)big, (uint4*)to, rows);
  say("dram_" + std::to_string(READS) + "_reads_" + std::to_string(WRITES) + "_writes", double(rows) * width * (READS + WRITES) / ms / 1e9, "TB/s");
}
// Constants that lanes read at WAYS addresses of their own.
__constant__ uint32_t table[1024];
template <int ILP, int COUNT> __global__ void constants(unsigned* out, int ways, int apart) {
  uint32_t x[ILP]; for (int i = 0; i < ILP; ++i) x[i] = (threadIdx.x % ways) * apart % 1024;
  unsigned best = ~0u;
  for (int repeat = 0; repeat < 4; ++repeat) {
    __syncthreads(); unsigned start = tick();
#pragma unroll
    for (int k = 0; k < COUNT; ++k)
#pragma unroll
      for (int i = 0; i < ILP; ++i) x[i] = table[x[i]];
    __syncthreads(); best = min(best, tick() - start);
  }
  uint32_t sum = 0; for (int i = 0; i < ILP; ++i) sum += x[i]; if (sum == 0x12345679) out[1] = sum;
  if (!threadIdx.x) out[0] = best;
}
static void constant_ways() {
  std::vector<uint32_t> same(1024); for (int i = 0; i < 1024; ++i) same[i] = i;
  CHECK(cudaMemcpyToSymbol(table, same.data(), 4096));
  for (int ways : {1, 2, 4, 8, 16, 32}) {
    std::string of = "_ways" + std::to_string(ways);
    say("ldc_chain" + of, (cycles_of(constants<1, 64>, 1, 32, 0, ways, 1) - cycles_of(constants<1, 32>, 1, 32, 0, ways, 1)) / 32, "cycles");
    for (int warps : {1, 4, 16}) say("ldc_warps" + std::to_string(warps) + of, (cycles_of(constants<8, 16>, 1, 32 * warps, 0, ways, 1) - cycles_of(constants<8, 8>, 1, 32 * warps, 0, ways, 1)) / (64.0 * warps), "cycles per instruction and SM");
  }
  say("ldc_warps4_ways32_apart16", (cycles_of(constants<8, 16>, 1, 128, 0, 32, 16) - cycles_of(constants<8, 8>, 1, 128, 0, 32, 16)) / (64.0 * 4), "cycles per instruction and SM, 64 bytes apart");
}
// A row of 16 KiB for each lane, word by word: 32 lines per load, of which L1 keeps what it can.
template <int ILP> __global__ void own_rows(unsigned* out, const uint32_t* p, int words) {
  size_t row = (size_t(blockIdx.x) * blockDim.x + threadIdx.x) * 4096; uint32_t sum = 0;
  for (int i = 0; i < words; i += ILP) {
    uint32_t v[ILP];
#pragma unroll
    for (int k = 0; k < ILP; ++k) v[k] = __ldg(p + row + i + k);
#pragma unroll
    for (int k = 0; k < ILP; ++k) sum = sum * 3 + v[k];
  }
  if (sum == 0x12345) out[1] = sum;
}
// Atomics of a whole grid: lanes name so many words side by side, which all warps share, or each has its own.
enum Atomic { kAdd, kAddF, kAddF64, kCas };
template <int OP> __device__ __forceinline__ void atomic(uint64_t p, unsigned x) {
  if (OP == kAdd) asm volatile("red.global.add.u32 [%0],%1;" :: "l"(p), "r"(x) : "memory");
  if (OP == kAddF) asm volatile("red.global.add.f32 [%0],%1;" :: "l"(p), "f"(1.0f) : "memory");
  if (OP == kAddF64) asm volatile("red.global.add.f64 [%0],%1;" :: "l"(p), "d"(1.0) : "memory");
  if (OP == kCas) { unsigned r; asm volatile("atom.global.cas.b32 %0,[%1],%2,%3;" : "=r"(r) : "l"(p), "r"(x), "r"(x + 1) : "memory"); }
}
template <int OP> __global__ void __launch_bounds__(1024) atomics(unsigned* out, char* p, int turns, int lanes, int words, int lines, int apart) {
  const unsigned lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const uint64_t at = uint64_t(p) + lane % words * (OP == kAddF64 ? 8 : 4) + size_t(warp % lines) * apart;
  if (lane < lanes)
    for (int i = 0; i < turns; i += 4)
#pragma unroll
      for (int k = 0; k < 4; ++k) atomic<OP>(at, lane + i);
}
template <int OP> static void atomics_of(const char* of, char* p) {
  constexpr int W = OP == kAddF64 ? 8 : 4, all = 1 << 20;
  struct { const char* name; int lanes, words, lines, apart, ctas, threads; } const patterns[] = {
    {"word_lanes1", 1, 1, 1, 0, 1, 256}, {"word_lanes32", 32, 1, 1, 0, 1, 256}, {"sector_lanes8", 32 / W, 32 / W, 1, 0, 1, 256}, {"side_by_side", 32, 32, 1, 0, 1, 256},
    {"side_of_lines8", 128 / W, 128 / W, 8, 128, 1, 512}, {"side_of_lines32", 128 / W, 128 / W, 32, 128, 1, 512}, {"side_by_warp_full", 32, 32, all, 32 * W, 2, 1024}};
  for (auto& n : patterns) {
    double a = ms_of(atomics<OP>, sms * n.ctas, n.threads, 0, p, 64, n.lanes, n.words, n.lines, n.apart), b = ms_of(atomics<OP>, sms * n.ctas, n.threads, 0, p, 32, n.lanes, n.words, n.lines, n.apart);
    say(std::string(of) + "_" + n.name, 1e6 * (a - b) / 32 / (double(sms) * n.ctas * n.threads / 32), "ns of the card per warp instruction");
  }
}
// Eight times the same at once: global memory by lanes that are `apart`, shared memory, shuffles.
enum Access { kNone, kLdg, kStg, kLds, kSts, kShfl };
template <int OP, int W> __device__ __forceinline__ unsigned eight(uint64_t at, unsigned shared, int apart, unsigned zero, unsigned sum) {
  unsigned v[8][4] = {};
  at += sum & zero; shared += sum & zero;  // or ptxas loads once
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const uint64_t p = at + (apart < 128 ? k * 4096 : (k * 4 * W) % 128);
    if (OP == kLdg && W == 1) asm volatile("ld.global.u32 %0,[%1];" : "=r"(v[k][0]) : "l"(p));
    if (OP == kLdg && W == 4) asm volatile("ld.global.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v[k][0]), "=r"(v[k][1]), "=r"(v[k][2]), "=r"(v[k][3]) : "l"(p));
    if (OP == kStg && W == 1) asm volatile("st.global.u32 [%0],%1;" :: "l"(p), "r"(sum) : "memory");
    if (OP == kStg && W == 4) asm volatile("st.global.v4.u32 [%0],{%1,%1,%1,%1};" :: "l"(p), "r"(sum) : "memory");
    if (OP == kLds) asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(v[k][0]), "=r"(v[k][1]), "=r"(v[k][2]), "=r"(v[k][3]) : "r"(shared + 512 * k));
    if (OP == kSts) asm volatile("st.shared.v4.u32 [%0],{%1,%1,%1,%1};" :: "r"(shared + 512 * k), "r"(sum) : "memory");
    if (OP == kShfl) asm volatile("shfl.sync.bfly.b32 %0,%1,1,31,-1;" : "=r"(v[k][0]) : "r"(sum + k));
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) sum += (v[k][0] ^ v[k][1]) + (v[k][2] ^ v[k][3]);
  return sum;
}
// Four warps access global memory, hits of L1, four others read shared memory until those are done: do tags and data pass one by one?
template <int A, int W> __global__ void __launch_bounds__(256) accesses(unsigned* out, char* p, int apart, int turns, int beside, unsigned zero) {
  __shared__ volatile int stop; __shared__ uint4 room[512];
  if (!threadIdx.x) stop = 0;
  for (int i = threadIdx.x; i < 512; i += blockDim.x) room[i] = make_uint4(i, 0, 0, 0);
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, shared = smem(room) + 16 * lane, sum = 1;
  uint64_t at = uint64_t(p) + lane * apart + (A == kStg ? warp * 65536 : 0);
  sum = eight<A == kStg ? kNone : A, W>(at, shared, apart, zero, sum);
  __syncthreads();
  if (warp < 4) {
    unsigned start = tick();
    for (int r = 0; r < turns; ++r) sum = eight<A, W>(at, shared, apart, zero, sum);
    unsigned end = tick(); asm volatile("bar.sync 1, 128;" ::: "memory");
    if (!threadIdx.x) { out[0] = end - start; stop = 1; }
  } else if (beside) {
    unsigned start = tick(), count = 0;
    do { sum = eight<kLds, 4>(at, shared, apart, zero, sum); count += 8; } while (!stop);
    unsigned end = tick();
    if (threadIdx.x == 128) { out[1] = end - start; out[2] = count; }
  }
  if (sum == 0x12345679) out[9] = sum;
}
template <int A, int W> static void accesses_apart(const char* of, char* p) {
  for (int apart : {4 * W, 32, 64, 128}) for (int beside : {0, 1}) {
    double v = cycles_of(accesses<A, W>, 1, 256, 0, p, apart, 400, beside, 0u);
    unsigned r[3]; CHECK(cudaMemcpy(r, out, 12, cudaMemcpyDeviceToHost));
    std::string name = std::string(of) + std::to_string(4 * W) + "_apart" + std::to_string(apart);
    say(name + (beside ? "_beside_lds128" : ""), v / (400 * 8 * 4), "cycles per instruction and SM");
    if (beside) say(name + "_lds128", double(r[1]) / r[2] / 4, "cycles per LDS.128 and SM");
  }
}
// The same of shared memory and shuffles beside a warpgroup that multiplies.
template <int OP, int N> __global__ void __launch_bounds__(256) shared_mix(unsigned* out, int multiply, uint32_t zero) {
  extern __shared__ __align__(1024) char buffer[]; __shared__ volatile int stop;
  for (int i = threadIdx.x; i < 65536 / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(buffer)[i] = 0;
  if (!threadIdx.x) stop = 0;
  asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();
  uint32_t base = (smem(buffer) + 1023) & ~1023u;
  if (threadIdx.x < 128) {
    if (!multiply) return;
    float c[N / 2] = {};
    uint64_t a = uint64_t(base >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62), b = uint64_t((base + 16384) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
    unsigned start = tick(), count = 0, end = 0; bool is_over;
    do {
      fence_();
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (N == 64) { W32("f32.bf16.bf16", "k16", ", 0, 0"); } else if (N == 128) { W64("f32.bf16.bf16", "k16", ", 0, 0"); } else { W128("f32.bf16.bf16", "k16", ", 0, 0"); }
      }
      is_over = finish_(stop); count += 8; end = tick();
    } while (!is_over);
    float sum = 0; for (int i = 0; i < N / 2; ++i) sum += c[i]; if (sum == 1.5f) out[9] = 1;
    if (!threadIdx.x) { out[1] = end - start; out[2] = count; }
  } else {
    uint32_t sum = threadIdx.x & 1, at = base + 49152 + 16 * (threadIdx.x % 32);
    unsigned start = tick();
    for (int r = 0; r < 400; ++r) sum = eight<OP, 4>(0, at, 0, zero, sum);
    unsigned end = tick();
    if (sum == 0x12345679) out[9] = sum;
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 128) { out[0] = end - start; stop = 1; }
  }
}
template <int OP, int N> static void shared_mixed(const char* op) {
  for (int multiply : {0, 1}) {
    double v = cycles_of(shared_mix<OP, N>, 1, 256, 66560, multiply, 0u);
    unsigned r[3]; CHECK(cudaMemcpy(r, out, 12, cudaMemcpyDeviceToHost));
    std::string name = std::string("mix_ss_n") + std::to_string(N) + "_" + op;
    say(name + (multiply ? "_beside" : "_alone"), v / (400 * 8), "cycles per instruction of a warp");
    if (multiply) say(name + "_wgmma", double(r[1]) / r[2], "cycles per wgmma, in groups of 8");
  }
}
template <int OP> static void shared_mixes(const char* op) { shared_mixed<OP, 64>(op); shared_mixed<OP, 128>(op); shared_mixed<OP, 256>(op); }
// Launches that need not wait for the CPU: an empty kernel between two events behind another one, and more of them in a graph.
static void launches_behind(const uint4* p) {
  cudaStream_t s; CHECK(cudaStreamCreate(&s)); cudaEvent_t a, b; CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b));
  double us[3];
  for (int place = 0; place < 3; ++place) {
    const int count = place == 0 ? 0 : place == 1 ? 8 : 32; cudaGraph_t graph; cudaGraphExec_t exec = nullptr;
    if (count) {
      CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
      for (int i = 0; i < count; ++i) empty<<<132, 128, 0, s>>>(out);
      CHECK(cudaStreamEndCapture(s, &graph)); CHECK(cudaGraphInstantiate(&exec, graph, 0ull));
    }
    std::vector<float> all;
    for (int run = 0; run < 31; ++run) {
      read_set<<<sms, 1024, 0, s>>>(out, p, size_t(1) << 24, 1, 0);
      CHECK(cudaEventRecord(a, s)); if (count) CHECK(cudaGraphLaunch(exec, s)); else empty<<<132, 128, 0, s>>>(out); CHECK(cudaEventRecord(b, s));
      CHECK(cudaEventSynchronize(b)); float ms; cudaEventElapsedTime(&ms, a, b); all.push_back(1e3f * ms);
    }
    std::sort(all.begin(), all.end()); us[place] = all[15];
  }
  say("launch_behind_another", us[0], "us between two events"); say("launch_in_a_graph", (us[2] - us[1]) / 24, "us for each further one");
}
// As `drift`, with a softmax of COUNT elements; OVERLAP: beside a second group of wgmmas.
template <int COUNT, int OVERLAP> __global__ void __launch_bounds__(384) softmaxes(unsigned* out, int turns, uint32_t y, uint32_t z) {
  extern __shared__ __align__(1024) char buffer[];
  for (int i = threadIdx.x; i < 65536 / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(buffer)[i] = 0;
  asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();
  constexpr int N = 64; uint32_t base = (smem(buffer) + 1023) & ~1023u;
  uint64_t a = uint64_t(base >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62), b = uint64_t((base + 16384) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
  float c[N / 2] = {}, e[N / 2] = {}; uint32_t x[16], m = y, t = z; double d = 0; for (int i = 0; i < 16; ++i) x[i] = threadIdx.x + i + y;
  __syncthreads(); unsigned start = tick();
  for (int turn = 0; turn < turns; ++turn) {
    fence_();
#pragma unroll
    for (int i = 0; i < 8; ++i) W32("f32.bf16.bf16", "k16", ", 0, 0");
    commit_();
    if (OVERLAP) {
      fence_();
#pragma unroll
      for (int i = 0; i < 8; ++i) { float(&c)[N / 2] = e; W32("f32.bf16.bf16", "k16", ", 0, 0"); }
      commit_(); wait_<1>();
    } else wait_<0>();
#pragma unroll
    for (int i = 0; i < COUNT; ++i) op<FMNMX>(m, d, x[i % 16], z);
    op<SHFL>(m, d, y, z); op<SHFL>(m, d, y, z);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) { op<FFMA>(x[i % 16], d, m, z); op<MUFU>(x[i % 16], d, y, z); op<FADD>(t, d, x[(i + 12) % 16], z); }
    if (OVERLAP) wait_<0>();
  }
  unsigned end = tick(); uint32_t sum = m + t; for (int i = 0; i < 16; ++i) sum += x[i]; float s = 0; for (int i = 0; i < N / 2; ++i) s += c[i] + e[i];
  if (sum == 0x12345679 || s == 1.5f) out[9] = 1;
  if (!threadIdx.x) out[0] = end - start;
}
template <int COUNT, int OVERLAP> static void softmaxed() {
  for (int groups : {1, 2, 3}) say("softmax" + std::to_string(COUNT) + (OVERLAP ? "_overlap" : "_alone") + "_groups" + std::to_string(groups), (cycles_of(softmaxes<COUNT, OVERLAP>, 1, 128 * groups, 66560, 200, 3u, 5u) - cycles_of(softmaxes<COUNT, OVERLAP>, 1, 128 * groups, 66560, 100, 3u, 5u)) / 100, "cycles per turn");
}
// Warps of a sub-core that want the same pipe: when each is done with 512 operations.
template <int OP> __global__ void fair(unsigned* out, uint32_t y, uint32_t z) {
  uint32_t x[8]; double d = 0; for (int i = 0; i < 8; ++i) x[i] = threadIdx.x + i + y;
  __syncthreads(); unsigned start = tick();
#pragma unroll
  for (int k = 0; k < 64; ++k)
#pragma unroll
    for (int i = 0; i < 8; ++i) op<OP>(x[i], d, y, z);
  unsigned end = tick() - start; uint32_t sum = 0; for (int i = 0; i < 8; ++i) sum += x[i];
  if (sum == 0x12345679) out[9] = sum;
  if (threadIdx.x % 128 == 0) out[threadIdx.x / 128] = end;
}
template <int OP> static void fairs() {
  for (int warps : {1, 2, 4}) {
    cycles_of(fair<OP>, 1, 128 * warps, 0, 3u, 5u); unsigned r[4]; CHECK(cudaMemcpy(r, out, 16, cudaMemcpyDeviceToHost));
    std::string n = std::string("fair_") + op_names[OP] + "_warps" + std::to_string(warps);
    say(n + "_first", *std::min_element(r, r + warps), "cycles"); say(n + "_last", *std::max_element(r, r + warps), "cycles");
  }
}
// When each of 16 accesses of a warp issues, of `warps` that begin at once: how many the queues before L1 hold.
enum Accepted { kLdsWays, kLdgLines, kLdgFills, kStgLines, kLdgThenStg };
template <int OP> __global__ void accepted(unsigned* out, char* p, int ways, unsigned zero) {
  extern __shared__ uint32_t s[]; unsigned times[17], v[16], sum = 0, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned shared = smem(s) + lane % ways * 4 * 32 + lane / ways * 4; char* at = p + lane % ways * 128 + lane / ways * 4;
  for (int i = threadIdx.x; i < 8192; i += blockDim.x) s[i] = 0;
  for (int turn = 0; turn < 2; ++turn) {
    if (OP == kLdgFills || OP == kStgLines) at += (warp + 1) * 65536 + (OP == kLdgFills && turn ? 1 << 22 : 0);
    for (int k = 0; k < 16; ++k) v[k] = 0;
    __syncthreads(); times[0] = tick();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      if (OP == kLdsWays) asm volatile("ld.shared.u32 %0,[%1];" : "=r"(v[k]) : "r"(shared + 4 * k) : "memory");
      if (OP == kLdgLines) asm volatile("ld.global.ca.u32 %0,[%1];" : "=r"(v[k]) : "l"(at + 4 * k) : "memory");
      if (OP == kLdgFills) asm volatile("ld.global.ca.u32 %0,[%1];" : "=r"(v[k]) : "l"(at + k * 4096) : "memory");
      if (OP == kStgLines || (OP == kLdgThenStg && k % 2)) asm volatile("st.global.u32 [%0],%1;" :: "l"(at + (OP == kStgLines ? k * 4096 : 1 << 20)), "r"(zero) : "memory");
      if (OP == kLdgThenStg && k % 2 == 0) asm volatile("ld.global.ca.u32 %0,[%1];" : "=r"(v[k]) : "l"(at + 4 * k) : "memory");
      times[k + 1] = tick();
    }
    for (int k = 0; k < 16; ++k) sum += v[k];
    __syncthreads();
  }
  if (sum == 0x12345679) out[1000] = sum;
  if (!lane) for (int k = 0; k <= 16; ++k) out[17 * warp + k] = times[k];
}
template <int OP> static void accepted_by(const char* of, char* p) {
  for (int ways : {8, 32}) for (int warps : {1, 4, 16, 32}) {
    cycles_of(accepted<OP>, 1, 32 * warps, 32768, p, ways, 0u);
    std::vector<unsigned> r(17 * warps); std::vector<int> all; CHECK(cudaMemcpy(r.data(), out, r.size() * 4, cudaMemcpyDeviceToHost));
    for (int w = 0; w < warps; w += 4) for (int k = 1; k <= 16; ++k) all.push_back(int(r[17 * w + k] - r[0]));  // of one sub-core
    std::sort(all.begin(), all.end());
    for (size_t k : {1, 2, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64}) if (k <= all.size()) say(std::string("accepted_") + of + "_ways" + std::to_string(ways) + "_warps" + std::to_string(warps) + "_" + std::to_string(k), all[k - 1], "cycles until so many have issued in a sub-core");
  }
}
// Eight conditions per turn that lanes below `limit` meet, around code that is not predicated: BSSY, a branch, BSYNC.
__global__ void __launch_bounds__(1024) conditions(unsigned* out, int turns, unsigned limit) {
  unsigned x = threadIdx.x % 32, best = ~0u;
  for (int repeat = 0; repeat < 3; ++repeat) {
    __syncthreads(); unsigned start = tick();
#pragma unroll 1
    for (int t = 0; t < turns; ++t)
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        asm volatile("lop3.b32 %0,%0,%1,%1,0x96;" : "+r"(x) : "r"(t));
        if (x + k < limit) asm volatile("{.reg .pred q; setp.eq.u32 q,%0,0xfffffff0; @q trap; @q trap; @q trap; @q trap; @q trap; @q trap; @q trap; @q trap; @q trap;}" :: "r"(x));
      }
    __syncthreads(); best = min(best, tick() - start);
  }
  if (x == 0x12345679) out[9] = 1;
  if (!threadIdx.x) out[0] = best;
}
static void branches() {
  struct { const char* name; unsigned limit; } const all[] = {{"none", 0}, {"all", 0x7fffffff}, {"half", 16}};
  for (auto& c : all) for (int warps : {1, 4, 16, 32})
    say(std::string("conditions_") + c.name + "_warps" + std::to_string(warps), (cycles_of(conditions, 1, 32 * warps, 0, 128, c.limit) - cycles_of(conditions, 1, 32 * warps, 0, 64, c.limit)) / 64, "cycles per turn of eight");
}
// Global memory beside a warpgroup that multiplies: hits, fills from L2 and stores, of lanes side by side, or hits and fills of a line each.
enum Beside { kHits, kHitLines, kFills, kFillRows, kStores };
template <int OP, int N> __global__ void __launch_bounds__(256) global_mix(unsigned* out, int multiply, char* p, unsigned zero) {
  extern __shared__ __align__(1024) char buffer[]; __shared__ volatile int stop;
  for (int i = threadIdx.x; i < 65536 / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(buffer)[i] = 0;
  if (!threadIdx.x) stop = 0;
  asm volatile("fence.proxy.async;" ::: "memory"); __syncthreads();
  if (threadIdx.x < 128) {
    if (!multiply) return;
    uint32_t base = (smem(buffer) + 1023) & ~1023u; float c[N / 2] = {};
    uint64_t a = uint64_t(base >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62), b = uint64_t((base + 16384) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
    unsigned start = tick(), count = 0, end = 0; bool is_over;
    do {
      fence_();
#pragma unroll
      for (int i = 0; i < 8; ++i) { if (N == 64) { W32("f32.bf16.bf16", "k16", ", 0, 0"); } else if (N == 128) { W64("f32.bf16.bf16", "k16", ", 0, 0"); } else { W128("f32.bf16.bf16", "k16", ", 0, 0"); } }
      is_over = finish_(stop); count += 8; end = tick();
    } while (!is_over);
    float sum = 0; for (int i = 0; i < N / 2; ++i) sum += c[i]; if (sum == 1.5f) out[9] = 1;
    if (!threadIdx.x) { out[1] = end - start; out[2] = count; }
  } else {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4, sum = 0;
    const unsigned apart = OP == kHits || OP == kFills || OP == kStores ? 16 : OP == kHitLines ? 128 : 1536;
    char* at = p + lane * apart + warp * (OP == kHits || OP == kHitLines ? 0 : 1 << 21);
    unsigned start = tick();
    for (int r = 0; r < 200; ++r) {
      unsigned v[8] = {};
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        char* q = at + (sum & zero) + (OP == kHitLines || OP == kFillRows ? k * 16 : k * 512);
        if (OP == kStores) asm volatile("st.global.v4.u32 [%0],{%1,%1,%1,%1};" :: "l"(q), "r"(sum) : "memory");
        else asm volatile("{.reg .u32 a,b,c; ld.global.ca.v4.u32 {%0,a,b,c},[%1];}" : "=r"(v[k]) : "l"(q) : "memory");
      }
#pragma unroll
      for (int k = 0; k < 8; ++k) sum += v[k];
      if (OP == kFills || OP == kStores) at += 4096;
      if (OP == kFillRows) at += r % 8 == 7 ? 32 * 1536 - 7 * 128 : 128;
    }
    unsigned end = tick();
    if (sum == 0x12345679) out[9] = sum;
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (threadIdx.x == 128) { out[0] = end - start; stop = 1; }
  }
}
template <int OP, int N> static void global_mixed(const char* op, char* p) {
  for (int multiply : {0, 1}) {
    double v = cycles_of(global_mix<OP, N>, 1, 256, 66560, multiply, p, 0u);
    unsigned r[3]; CHECK(cudaMemcpy(r, out, 12, cudaMemcpyDeviceToHost));
    std::string name = std::string("mix_ss_n") + std::to_string(N) + "_" + op;
    say(name + (multiply ? "_beside" : "_alone"), v / (200 * 8 * 4), "cycles per instruction and SM");
    if (multiply) say(name + "_wgmma", double(r[1]) / r[2], "cycles per wgmma, in groups of 8");
  }
}
template <int OP> static void global_mixes(const char* op, char* p) { global_mixed<OP, 64>(op, p); global_mixed<OP, 128>(op, p); global_mixed<OP, 256>(op, p); }
static void queues_before_l1(char* p) {
  accepted_by<kLdsWays>("lds", p); accepted_by<kLdgLines>("ldg", p); accepted_by<kLdgFills>("ldg_fill", p); accepted_by<kStgLines>("stg", p); accepted_by<kLdgThenStg>("ldg_stg", p);
}
static void global_beside_wgmma(char* p) {
  global_mixes<kHits>("ldg128", p); global_mixes<kHitLines>("ldg128_lines", p); global_mixes<kFills>("fill128", p); global_mixes<kFillRows>("fill128_rows", p);
  global_mixes<kStores>("stg128", p);
}
int main() {
  cudaDeviceProp prop; CHECK(cudaGetDeviceProperties(&prop, 0)); sms = prop.multiProcessorCount;
  CHECK(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0));
  printf("{\"name\": \"device\", \"text\": \"%s, %d SMs, %d kHz, L2 %d bytes\"}\n", prop.name, sms, clock_khz, prop.l2CacheSize);
  CHECK(cudaMalloc(&out, 4096));
  const size_t GIB = size_t(1) << 30; char* big; CHECK(cudaMalloc(&big, 7 * GIB)); CHECK(cudaMemset(big, 0, 7 * GIB)); CHECK(cudaDeviceSynchronize());

  pipes<FFMA>(); pipes<FADD>(); pipes<IMAD>(); pipes<IMADWIDE>(); pipes<LOP3>(); pipes<IADD3>(); pipes<HFMA2>(); pipes<MUFU>(); pipes<POPC>(); pipes<SHFL>(); pipes<DFMA>(); pipes<SHF>(); pipes<FMNMX>(); pipes<F2I>(); pipes<REDUX>(); pipes<SELP>(); pipes<PRMT>(); pipes<VOTE>(); pipes<LOPFMA>();
  say("chain_lds", cycles_of(lds_chase, 1, 1, 4096) / 128, "cycles");
  shared_streams<1>(); shared_streams<2>(); shared_streams<4>();
  for (int store = 0; store < 2; ++store) for (int warps : {1, 4, 16}) {
    double a = cycles_of(ldsm_stream<32>, 1, warps * 32, 32768, store), b = cycles_of(ldsm_stream<16>, 1, warps * 32, 32768, store);
    say(std::string(store ? "stsm4" : "ldsm4") + "_warps" + std::to_string(warps), (a - b) / (16 * 16.0 * warps), "cycles per instruction and SM");
  }
  for (int same = 0; same < 3; ++same) for (int warps : {1, 8}) {
    double a = cycles_of(atoms_stream<32>, 1, warps * 32, 0, same), b = cycles_of(atoms_stream<16>, 1, warps * 32, 0, same);
    say(std::string("atoms_") + (same == 2 ? "chain_same" : same ? "same" : "apart") + "_warps" + std::to_string(warps), (a - b) / (4 * 16.0 * warps), "cycles per instruction and SM");
  }
  for (int warps : {1, 2, 4, 8, 12, 16, 32}) say("barrier_warps" + std::to_string(warps), (cycles_of(bar<64>, 1, warps * 32, 0) - cycles_of(bar<32>, 1, warps * 32, 0)) / 32, "cycles");
  say("mbarrier_self", cycles_of(mb_self, 1, 32, 0) / 64, "cycles per arrive and wait");
  say("mbarrier_ring", cycles_of(mb_ring, 1, 64, 0) / 128, "cycles per hop");
  // latency
  for (int cached = 0; cached < 2; ++cached) for (size_t kib : {4, 16, 64, 128, 192, 1024, 8192, 16384, 24576, 32768, 40960, 262144, 2097152}) {
    uint32_t count = kib * 1024 / 128; fill_chase<<<256, 256>>>((uint32_t*)big, count, 32);
    int warm = kib <= 1024 ? int(count) : 0, hops = 4096;
    if (cached && kib > 1024) continue;
    if (!cached && kib > 1024 && kib < 100000) warm = int(count);
    double v = cached ? cycles_of(chase<1>, 1, 1, 0, (const uint32_t*)big, warm, hops) : cycles_of(chase<0>, 1, 1, 0, (const uint32_t*)big, warm, hops);
    say(std::string(cached ? "chase_ca_" : "chase_cg_") + std::to_string(kib) + "KiB", v / hops, "cycles");
  }
  // bandwidth
  for (int used : {1, 2, 8, 32, 66, sms}) {
    size_t set = size_t(used) * 131072; double cycles = cycles_of(read_set, used, 1024, 0, (const uint4*)big, set / 16, 64, 1);
    say("l2_read_sms" + std::to_string(used), 64.0 * set / used / cycles, "B/cycle/SM");
  }
  for (size_t mib : {48}) {
    size_t set = mib << 20; double a = ms_of(read_set, sms * 2, 1024, 0, (const uint4*)big, set / 16, 40, 1), b = ms_of(read_set, sms * 2, 1024, 0, (const uint4*)big, set / 16, 20, 1);
    double width = sms * 2 * 1024 * 8 * 16.0, whole = int(set / width) * width;
    say("l2_read_" + std::to_string(mib) + "MiB", 20 * whole / (a - b) / 1e9, "TB/s");
  }
  for (int used : {1, 2, 8, 32, sms}) { double a = ms_of(read_set, used, 1024, 0, (const uint4*)big, GIB / 16 / (used < 8 ? 16 : used < 64 ? 4 : 1), 1, 0); say("dram_read_sms" + std::to_string(used), GIB / (used < 8 ? 16.0 : used < 64 ? 4.0 : 1.0) / a / 1e6, "GB/s"); }
  for (int blocks : {1, 2}) say("dram_read_4GiB_blocks" + std::to_string(blocks), 4 * GIB / ms_of(read_set, sms * blocks, 1024, 0, (const uint4*)big, 4 * GIB / 16, 1, 0) / 1e6, "GB/s");
  for (int threads : {32, 64, 128, 256, 512}) say("dram_read_threads" + std::to_string(threads) + "_x8x16B", GIB / ms_of(read_set, sms, threads, 0, (const uint4*)big, GIB / 16, 1, 0) / 1e6, "GB/s");
  say("dram_write_4GiB", 4 * GIB / ms_of(write_set, sms * 2, 1024, 0, (uint4*)big, 4 * GIB / 16, 1, 8) / 1e6, "GB/s");
  for (int lanes : {2, 4}) say("dram_write_lanes" + std::to_string(lanes) + "_of_8", 4 * GIB * (lanes / 8.0) / ms_of(write_set, sms * 2, 1024, 0, (uint4*)big, 4 * GIB / 16, 1, lanes) / 1e6, "GB/s of the written");
  for (size_t mib : {8, 16, 24}) { double a = ms_of(write_set, sms * 2, 1024, 0, (uint4*)big, (mib << 20) / 16, 40, 8), b = ms_of(write_set, sms * 2, 1024, 0, (uint4*)big, (mib << 20) / 16, 20, 8); say("l2_write_" + std::to_string(mib) + "MiB", 20.0 * (mib << 20) / (a - b) / 1e9, "TB/s"); }
  for (int used : {1, 8}) say("l2_write_sms" + std::to_string(used), 64.0 * 131072 / cycles_of(write_set, used, 1024, 0, (uint4*)big, size_t(used) * 131072 / 16, 64, 8), "B/cycle/SM");
  say("dram_copy_2GiB", 4 * GIB / ms_of(copy_set, sms * 2, 1024, 0, (const uint4*)big, (uint4*)(big + 2 * GIB), 2 * GIB / 16) / 1e6, "GB/s, read and written");
  say("copy_words_256MiB", 2 * GIB / 4 / ms_of(copy_words, GIB / 4 / 4 / 256, 256, 0, (const uint32_t*)big, (uint32_t*)(big + 2 * GIB), GIB / 4 / 4) / 1e6, "GB/s, read and written");
  for (int side : {2048, 8192}) {
    CHECK(cudaGetLastError());
    cudaEvent_t e0, e1; cudaEventCreate(&e0); cudaEventCreate(&e1); float t; dim3 grid(side / 32, side / 32);
    for (int i = 0; i < 3; ++i) { cudaEventRecord(e0); write_columns<<<grid, 1024>>>(out, (uint32_t*)big, side, side); cudaEventRecord(e1); cudaEventSynchronize(e1); cudaEventElapsedTime(&t, e0, e1); }
    say("write_columns_" + std::to_string(side), t * 1e3, "us");
    for (int i = 0; i < 3; ++i) { cudaEventRecord(e0); read_columns<<<grid, 1024>>>(out, (uint32_t*)big, side, side); cudaEventRecord(e1); cudaEventSynchronize(e1); cudaEventElapsedTime(&t, e0, e1); }
    say("read_columns_" + std::to_string(side), t * 1e3, "us");
  }
  // launches
  say("launch_empty", ms_of(empty, 1, 32, 0) * 1e3, "us"); say("launch_empty_132", ms_of(empty, sms, 1024, 0) * 1e3, "us");
  for (int threads : {32, 128, 256, 512, 1024}) say("ctas_1e6_threads" + std::to_string(threads), ms_of(empty, 1000000, threads, 0) * 1e3, "us");
  for (size_t shared : {0ul, 100000ul, 200000ul}) {
    double a = ms_of(ends, sms * 101, 256, shared + (shared ? 0 : 200000), 20000), b = ms_of(ends, sms * 1, 256, shared + (shared ? 0 : 200000), 20000);
    int slots = shared == 100000 ? 2 : 1; say("turnover_20000_cycles_" + std::to_string(shared), (a - b) * 1e3, (std::string("us per 100 CTAs per SM, slots ") + std::to_string(slots)).c_str());
    double c = ms_of(ends, sms * 101, 256, shared + (shared ? 0 : 200000), 40000), d = ms_of(ends, sms * 1, 256, shared + (shared ? 0 : 200000), 40000);
    double per_cycle = ((c - d) - (a - b)) / (2e6 / slots); say("turnover_" + std::to_string(shared), ((a - b) / per_cycle - 2e6 / slots) / (100.0 / slots), "cycles");
  }
  // bulk copies
  for (int bytes : {256, 1024, 4096, 16384, 65536}) {
    say("bulk_hot_" + std::to_string(bytes), cycles_of(bulk_latency, 1, 32, 131072, (const char*)big, bytes, 1, size_t(0)), "cycles");
    say("bulk_cold_" + std::to_string(bytes), cycles_of(bulk_latency, 1, 32, 131072, (const char*)big + GIB, bytes, 0, size_t(3) << 20), "cycles");
  }
  for (int stages : {1, 2, 4}) for (int bytes : {1024, 4096, 16384, 32768}) {
    double a = cycles_of(bulk_stream, sms, 32, 200000, (const char*)big, bytes, stages, 256, size_t(16) << 20); say("bulk_l2_" + std::to_string(stages) + "x" + std::to_string(bytes), 256.0 * bytes / a, "B/cycle/SM");
    double b = ms_of(bulk_stream, sms, 32, 200000, (const char*)big, bytes, stages, int(2 * GIB / sms / bytes), size_t(4) * GIB); say("bulk_dram_" + std::to_string(stages) + "x" + std::to_string(bytes), int(2 * GIB / sms / bytes) * double(bytes) * sms / b / 1e6, "GB/s");
  }
  say("bulk_l2_one_sm_4x32768", 256.0 * 32768 / cycles_of(bulk_stream, 1, 32, 200000, (const char*)big, 32768, 4, 256, size_t(1) << 20), "B/cycle/SM");
  for (int bytes : {4096, 32768}) say("bulk_store_" + std::to_string(bytes), 256.0 * bytes / cycles_of(bulk_store, sms, 32, 200000, big, bytes, 256, size_t(16) << 20), "B/cycle/SM");
  for (int threads : {32, 128, 256}) { double a = cycles_of(ldgsts<16>, 1, threads, 200000, (const char*)big), b = cycles_of(ldgsts<8>, 1, threads, 200000, (const char*)big), c = cycles_of(ldgsts<1>, 1, threads, 200000, (const char*)big); say("ldgsts_first_threads" + std::to_string(threads), c, "cycles"); say("ldgsts_each_threads" + std::to_string(threads), (a - b) / 8, "cycles"); }
  // tensor cores
  { double a = cycles_of(hmma<1, 32>, 1, 32, 0), b = cycles_of(hmma<1, 16>, 1, 32, 0); say("hmma_chain", (a - b) / (8 * 16), "cycles");
    for (int warps : {4}) { double c = cycles_of(hmma<8, 8>, 1, warps * 32, 0), d = cycles_of(hmma<8, 4>, 1, warps * 32, 0); say("hmma_rate_warps" + std::to_string(warps), 8.0 * 4 * 8 * warps / (c - d), "per cycle and SM"); } }
  wgmmas<64, 0, 0>("bf16"); wgmmas<128, 0, 0>("bf16"); wgmmas<256, 0, 0>("bf16"); wgmmas<64, 1, 0>("e4m3"); wgmmas<128, 1, 0>("e4m3"); wgmmas<256, 1, 0>("e4m3"); wgmmas<64, 0, 1>("bf16rs");
  say("loop_turn", (cycles_of(loop, 1, 32, 0, 2000) - cycles_of(loop, 1, 32, 0, 1000)) / 1000, "cycles per turn, LOP3 IADD ISETP BRA");
  straights<128>(); straights<512>(); straights<1024>(); straights<2048>(); straights<4096>(); straights<8192>(); straights<16384>();
  mixes<FFMA>(); mixes<FADD>(); mixes<MUFU>(); mixes<FMNMX>(); mixes<IMAD>(); mixes<PRMT>(); mixes<SHFL>();
  pairs<1>(); pairs<4>(); pairs<8>(); pairs<16>();
  drifts<64>(); drifts<128>(); drifts<256>(); drifts<384>();
  softmaxed<32, 0>(); softmaxed<64, 0>(); softmaxed<96, 0>(); softmaxed<32, 1>(); softmaxed<64, 1>(); softmaxed<96, 1>();
  fairs<FMNMX>(); fairs<FFMA>(); fairs<MUFU>(); fairs<IMAD>();
  constant_ways();
  accesses_apart<kLdg, 1>("ldg", big); accesses_apart<kLdg, 4>("ldg", big); accesses_apart<kStg, 1>("stg", big); accesses_apart<kStg, 4>("stg", big);
  shared_mixes<kLds>("lds128"); shared_mixes<kSts>("sts128"); shared_mixes<kShfl>("shfl8"); launches_behind((const uint4*)big);
  for (int warps : {1, 2, 4, 8, 16, 32}) {
    say("own_rows_warps" + std::to_string(warps), 1e3 * ms_of(own_rows<1>, sms, 32 * warps, 0, (const uint32_t*)big, 2048), "us for 2048 loads of each lane");
    say("own_rows4_warps" + std::to_string(warps), 1e3 * ms_of(own_rows<4>, sms, 32 * warps, 0, (const uint32_t*)big, 2048), "us for 2048 loads of each lane, 4 at once");
  }
  atomics_of<kAdd>("red_add", big); atomics_of<kAddF>("red_addf", big); atomics_of<kAddF64>("red_addf64", big); atomics_of<kCas>("atom_cas", big);
  branches();
  char* to = big + 3 * GIB + GIB / 2;
  mixture<4, 0>(big, to); mixture<4, 1>(big, to); mixture<4, 2>(big, to); mixture<3, 2>(big, to); mixture<4, 4>(big, to); mixture<2, 4>(big, to); mixture<0, 4>(big, to);
  queues_before_l1(big); global_beside_wgmma(big);
  printf("{\"name\": \"done\", \"value\": 1, \"unit\": \"\"}\n");
}
