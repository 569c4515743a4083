// One mistake each, made thousands of times: each must be one finding.

extern "C" {

__global__ void no_barrier(unsigned *out, unsigned *) {
  __shared__ unsigned s[8192];
  for (unsigned i = threadIdx.x; i < 8192; i += 256) s[i] = i;
  for (unsigned i = threadIdx.x; i < 8192; i += 256) out[i] = s[8191 - i];
}

__global__ void no_fence(unsigned *out, unsigned *scratch) {
  const unsigned t = threadIdx.x, n = gridDim.x;
  scratch[64 + blockIdx.x * 64 + t] = t;
  __syncthreads();
  if (t == 0) {
    atomicAdd(scratch, 1);
    while (*reinterpret_cast<volatile unsigned *>(scratch) < n) {
    }
  }
  __syncthreads();
  for (unsigned i = 0; i < n; ++i) out[blockIdx.x * 64 + t] += scratch[64 + (blockIdx.x + i) % n * 64 + t];
}

__global__ void no_order_either(unsigned *out, unsigned *scratch) {
  const unsigned t = blockIdx.x * 64 + threadIdx.x, n = gridDim.x * 64;
  scratch[64 + t] = t;
  out[t] = scratch[64 + (t + 64) % n];
}

// The same value from all, then another value from one that waited for none of them.
__global__ void changed_after_repeats(unsigned *, unsigned *scratch) {
  scratch[64] = 7;
  __threadfence();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    while (atomicAdd(scratch, 0) == 0) {
    }
    scratch[64] = 8;
  } else if (blockIdx.x == 1 && threadIdx.x == 0) {
    atomicExch(scratch, 1);
  }
}

// Nobody sets the flag, and the lanes that poll it part in every turn.
__global__ void flag_that_nobody_sets(unsigned *out, unsigned *scratch) {
  const volatile unsigned *flags = scratch;
  unsigned word;
  do word = threadIdx.x % 3 ? flags[threadIdx.x] : 1;
  while (__any_sync(0xffffffff, word == 0));
  out[threadIdx.x] = word;
}
}
