// Lanes and warps of a CTA that are not where one would have them. Each kernel is right by itself and
// wrong with WRONG.

#ifdef WRONG
#define PICK(right, wrong) wrong
#else
#define PICK(right, wrong) right
#endif

extern "C" {

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
}
