// Each thread reads an element of another one before its own: nothing orders that one's store to it.
// Only the first of the element's two readers races with the store.
extern "C" __global__ void ahead(int *a, int distance) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] += a[i + distance];
}

// The same of the CTA below, in a grid of two dimensions.
extern "C" __global__ void below(int *a, int rows) {
  int pitch = gridDim.x * blockDim.x;
  int i = blockIdx.y * pitch + blockIdx.x * blockDim.x + threadIdx.x;
  a[i] += a[i + rows * pitch];
}

// All CTAs read the elements of one, which reads them last.
extern "C" __global__ void of_one(int *a, int owner) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, sum = a[i] + 1;
  if (blockIdx.x != owner) sum += a[owner * blockDim.x + threadIdx.x];
  a[i] = sum;
}

extern "C" __global__ void ahead_in_shared(int *a, int distance) {
  __shared__ int s[2048];
  for (int i = threadIdx.x; i < 2048; i += blockDim.x) s[i] = a[i];
  __syncthreads();
  s[threadIdx.x] += s[threadIdx.x + distance];
  __syncthreads();
  a[threadIdx.x] = s[threadIdx.x];
}

// A barrier between the loads and the stores, of what threads of one CTA share.
extern "C" __global__ void ahead_with_barrier(int *a, int distance) {
  int first = blockIdx.x * 2 * blockDim.x, i = threadIdx.x;
  int sum = a[first + i] + a[first + (i + distance) % blockDim.x];
  __syncthreads();
  a[first + i] = sum;
}
