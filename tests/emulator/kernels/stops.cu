// What only shows when a warp is stopped between two accesses. Each kernel is right by itself and wrong
// with WRONG; thread 0 of each block takes part.

#ifdef WRONG
#define PICK(right, wrong) wrong
#else
#define PICK(right, wrong) right
#endif

extern "C" {

// A lock that is free for a moment between the load and the store of what it guards.
__global__ void lost_update(unsigned *out, unsigned *x) {
  volatile unsigned *const counter = out;
  if (threadIdx.x != 0) return;
  while (atomicCAS(x, 0, 1) != 0) {
  }
  __threadfence();
  const unsigned value = counter[0];
#ifdef WRONG
  __threadfence();
  atomicExch(x, 0);
  while (atomicCAS(x, 0, 1) != 0) {
  }
  __threadfence();
#endif
  counter[0] = value + 1;
  __threadfence();
  atomicExch(x, 0);
}

// A look-back: each block waits for the flag of the one before it and adds to its value.
__global__ void look_back(unsigned *out, unsigned *x) {
  volatile unsigned *const flags = x, *const values = out;
  const unsigned b = blockIdx.x;
  if (threadIdx.x != 0) return;
  unsigned sum = b + 1;
  if (b > 0) {
    while (flags[b - 1] == 0) {
    }
    __threadfence();
    sum += values[b - 1];
  }
  PICK(values, flags)[b] = PICK(sum, 1);
  __threadfence();
  PICK(flags, values)[b] = PICK(1, sum);
}

// A counter of blocks that is read again after it was raised: two blocks may see the last value.
__global__ void last_of_all(unsigned *out, unsigned *x) {
  if (threadIdx.x != 0) return;
  const unsigned before = atomicAdd(x, 1);
  const unsigned seen = PICK(before + 1, *(volatile unsigned *)x);
  if (seen == gridDim.x) atomicAdd(out, 1);
}

// A lock whose release has no fence before it: the next owner may not see what it guards.
__global__ void unlock(unsigned *out, unsigned *x) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(x, 0, 1) != 0) {
  }
  __threadfence();
  ++out[0];
  PICK(__threadfence(), (void)0);
  *(volatile unsigned *)x = 0;
}

// Sleeping does not order anything.
__global__ void sleep(unsigned *out, unsigned *x) {
  volatile unsigned *const word = x;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    word[1] = 7;
    __threadfence();
    word[0] = 1;
  } else {
    PICK(while (word[0] == 0), ) __nanosleep(1000);
    __threadfence();
    out[blockIdx.x] = word[1];
  }
}
}
