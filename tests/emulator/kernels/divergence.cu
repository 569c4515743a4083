// Lanes and warps of a CTA that are not where one would have them. Each kernel is right by itself and
// wrong with WRONG.

#ifdef WRONG
#define PICK(right, wrong) wrong
#else
#define PICK(right, wrong) right
#endif

extern "C" {

__device__ __noinline__ unsigned *filled(unsigned *given, const unsigned *x) {
  unsigned own[16];
  unsigned *const a = PICK(given, own);
  for (unsigned i = 0; i < 16; ++i) a[i] = x[i] + i;
  unsigned *p = a + x[threadIdx.x] % 16;
  asm volatile("" : "+l"(p)::"memory");
  return p;
}

// A pointer to a variable of a function that has returned.
__global__ void dead_frame(unsigned *out, unsigned *x) {
  unsigned mine[16];
  out[threadIdx.x] = *filled(mine, x);
}

// An index that leaves its array finds the next one.
__global__ void neighbour(unsigned *out, unsigned *x) {
  __shared__ unsigned first[96], second[96];
  const unsigned t = threadIdx.x;
  for (unsigned i = t; i < 96; i += 32) first[i] = second[i] = i;
  __syncthreads();
  out[t] = second[t] + first[x[t] + t + PICK(64, 65)];
}

// The same into the dynamic array.
__global__ void dynamic(unsigned *out, unsigned *x) {
  extern __shared__ unsigned rows[];
  __shared__ unsigned tile[32];
  const unsigned t = threadIdx.x;
  rows[t] = t;
  tile[x[t] + t + PICK(0, 1)] = t;
  __syncthreads();
  out[t] = rows[t ^ 1] + tile[31 - t];
}

// Lanes of one store give a word different values.
__global__ void lanes_disagree(unsigned *out, unsigned *x) {
  __shared__ unsigned s[8];
  const unsigned t = threadIdx.x;
  s[t % 8] = x[t] + PICK(t % 8, t / 8);
  __syncthreads();
  out[t] = s[t % 8];
}

// So do warps that execute it at the same time.
__global__ void warps_disagree(unsigned *out, unsigned *x) {
  const unsigned t = threadIdx.x;
  if (t % 32 == 0) out[96] = x[t] + PICK(0, t);
  out[t] = t;
}

// Parts of one word are others than those of its neighbour.
__global__ void bytes(unsigned *out, unsigned *x) {
  const unsigned t = threadIdx.x;
  ((unsigned char *)out)[PICK(t, t % 32 + t / 48)] = x[t] + t;
}

// Who is active behind a branch is not known: the sum is that of all lanes only if they meet.
__global__ void who_is_active(unsigned *out, unsigned *x) {
  const unsigned t = threadIdx.x;
  unsigned value = x[t] + t;
  if (t % 2) {
    for (unsigned i = 0; i < t; ++i) value = value * 3 + x[i];
  }
  PICK(__syncwarp(), (void)0);
  const unsigned mask = __activemask();
  out[t] = __reduce_add_sync(mask, value);
}

// Lanes that happen to be together draw places at once.
__global__ void aggregated(unsigned *out, unsigned *x) {
  const unsigned t = threadIdx.x;
  if ((x[t] + t) % 3) {
    const unsigned mask = PICK(__activemask(), 0xffffffff), leader = __ffs(mask) - 1;
    unsigned place = 0;
    if (t == leader) place = atomicAdd(&x[64], __popc(mask));
    place = __shfl_sync(mask, place, leader) + __popc(mask & ((1u << t) - 1));
    out[place % 64] = 1;
  }
}

// All four warps of a warpgroup change their registers together.
__global__ void __launch_bounds__(128) registers(unsigned *out, unsigned *) {
  const unsigned t = threadIdx.x;
  if (PICK(true, t / 32 == 1)) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  out[t] = t;
}

// Each half of a warp meets on its own; what it reads, its own half has written.
__global__ void halves(unsigned *out, unsigned *x) {
  __shared__ unsigned s[32];
  const unsigned t = threadIdx.x, mask = t < 16 ? 0xffff : 0xffff0000;
  for (unsigned i = 0; i < 3; ++i) {
    s[t] = x[t] + t + i;
    __syncwarp(mask);
    out[t + 32 * i] = s[t ^ PICK(15, 16)];
    __syncwarp(mask);
  }
  __syncwarp();
  out[96 + t] = s[31 - t];
}
}
