// What volatile and atomic accesses may meet, and what they may not. Each kernel is right by itself
// and wrong with WRONG: a plain access to a word that others use at the same time.

#ifdef WRONG
#define PICK(right, wrong) wrong
#else
#define PICK(right, wrong) right
#endif

extern "C" {

// A flag has to be stored as it is polled.
__global__ void flag(unsigned *out, unsigned *x) {
  volatile unsigned *const polled = x;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    x[1] = 7;
    __threadfence();
    PICK(polled[0] = 1, x[0] = 1);
  } else {
    while (polled[0] == 0) {
    }
    __threadfence();
    out[0] = x[1];
  }
}

// Volatile loads of data that plain stores wrote: they don't replace the flag.
__global__ void data(unsigned *out, unsigned *x) {
  volatile unsigned *const polled = x;
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    x[32 + t] = t;
    PICK(__threadfence(), (void)0);
    __syncthreads();
    if (t == 0) polled[0] = 1;
  } else {
    if (t == 0) {
      while (polled[0] == 0) {
      }
    }
    __syncthreads();
    out[t] = polled[32 + t];
  }
}

// A guard before an atomic reads what other blocks change.
__global__ void guard(unsigned *, unsigned *x) {
  const unsigned value = blockIdx.x * 32 + threadIdx.x;
  if (PICK(*(volatile unsigned *)x, x[0]) < value) atomicMax(x, value);
}

// Who polled a word volatile is in the way of a plain store as much as any other reader.
__global__ void reuse(unsigned *out, unsigned *) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  out[t] = ((volatile unsigned *)s)[t ^ 32];
  PICK(__syncthreads(), (void)0);
  s[t] = t + 1;
  __syncthreads();
  out[64 + t] = s[t ^ 32];
}

// The sum of a warp by volatile shared memory: the first store is one of its steps.
__global__ void warp_sum(unsigned *out, unsigned *x) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  volatile unsigned *const v = s;
  v[t] = x[t];
  __syncthreads();
  if (t < 32) {
    PICK(v, s)[t] = v[t] + v[t + 32];
    for (unsigned step = 16; step > 0; step /= 2) {
      const unsigned sum = v[t] + v[(t + step) % 32];
      __syncwarp();
      v[t] = sum;
      PICK(__syncwarp(), (void)0);
    }
    if (t == 0) out[0] = v[0];
  }
}

// The last block to arrive adds up what all have stored: CUDA's threadFenceReduction.
__global__ void last_block(unsigned *out, unsigned *x) {
  __shared__ bool last;
  const unsigned t = threadIdx.x;
  if (t == 0) {
    x[32 + blockIdx.x] = blockIdx.x + 1;
    PICK(__threadfence(), (void)0);
    last = atomicInc(x, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0) {
    unsigned sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += ((volatile unsigned *)x)[32 + i];
    out[0] = sum;
  }
}

// A lock that a plain store releases.
__global__ void lock(unsigned *, unsigned *x) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(x, 0, 1) != 0) {
  }
  __threadfence();
  ++x[32];
  __threadfence();
  PICK(atomicExch(x, 0), x[0] = 0);
}
}

// Stops at the store may part the lanes of a warp, which meet again at the barrier in each turn.
extern "C" __global__ void staged(unsigned* out, const unsigned* x) {
  volatile __shared__ unsigned part[64];
  unsigned sum = 0;
  for (unsigned first = 0; first < 256; first += 64) {
    part[threadIdx.x] = x[first + threadIdx.x];
    __syncthreads();
    for (unsigned i = 0; i < 64; ++i) sum += part[i];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}
