// Several faults in one launch. Each line that SEVERAL adds has one of its own.

#ifdef SEVERAL
#define FAULT(...) __VA_ARGS__
#else
#define FAULT(...)
#endif

extern "C" {

__global__ void several(unsigned *out, unsigned *x) {
  __shared__ unsigned s[64];
  const unsigned t = threadIdx.x;
  s[t] = x[t];
  FAULT(x[256 + t] = 1);
  __syncthreads();
  FAULT(out[64 + t] = x[100000 + t]);
  FAULT(if (t == 3) out[128] = *(unsigned *)((char *)x + 2));
  FAULT(atomicAdd(&x[300 + t % 2], 1));
  out[t] = s[t ^ 32];
  FAULT(s[t] = t + 1);
  __syncthreads();
  FAULT(if (t % 2 == 0) out[192 + t] = s[60 + t]);
}

// The number of rounds is read past the end.
__global__ void rounds(unsigned *out, unsigned *x) {
  unsigned sum = 0;
  const unsigned n = FAULT(1 ? x[1 << 20] :) x[0];
  for (unsigned i = 0; i < n; ++i) sum = sum * 3 + x[i % 64];
  out[threadIdx.x] = sum;
}

__global__ void second(unsigned *out, unsigned *x) {
  out[threadIdx.x] = x[threadIdx.x];
  FAULT(if (threadIdx.x == 0) out[1 << 20] = 0);
}
}
