// FAULT misaligned or oob: a surface's x coordinate is in bytes.
#include "check.h"
__global__ void invert(cudaSurfaceObject_t s, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = threadIdx.y;
  if (x >= w || y >= h) return;
#ifdef FAULT
  float v = surf2Dread<float>(s, x, y);  //@
  surf2Dwrite(1.0f - v, s, x, y);  //@
#else
  float v = surf2Dread<float>(s, x * int(sizeof(float)), y);
  surf2Dwrite(1.0f - v, s, x * int(sizeof(float)), y);
#endif
}
int main() {
  const int W = 40, H = 6;
  std::vector<float> v(W * H), r(W * H); bool ok = true;
  for (int i = 0; i < W * H; i++) v[i] = float(i);
  cudaArray_t a; auto f = cudaCreateChannelDesc<float>();
  CK(cudaMallocArray(&a, &f, W, H, cudaArraySurfaceLoadStore));
  CK(cudaMemcpy2DToArray(a, 0, 0, v.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
  cudaResourceDesc d{}; d.resType = cudaResourceTypeArray; d.res.array.array = a;
  cudaSurfaceObject_t s; CK(cudaCreateSurfaceObject(&s, &d));
  invert<<<2, dim3(32, 6)>>>(s, W, H);
  CK(cudaDeviceSynchronize());
  CK(cudaMemcpy2DFromArray(r.data(), W * 4, a, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
  for (int i = 0; i < W * H; i++) ok &= r[i] == 1.0f - v[i];
  return verdict(ok);
}
