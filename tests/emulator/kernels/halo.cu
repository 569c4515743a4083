// Each CTA reads the elements of its neighbour, along x or y, before its own: nothing orders the
// neighbour's stores to them. Only the first of two readers races with the store.
extern "C" __global__ void neighbour_in_x(int *a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] += a[i + blockDim.x];
}

extern "C" __global__ void neighbour_in_y(int *a) {
  int pitch = gridDim.x * blockDim.x;
  int i = blockIdx.y * pitch + blockIdx.x * blockDim.x + threadIdx.x;
  a[i] += a[i + pitch];
}
