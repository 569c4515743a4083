// FAULT oob: the pitch is in bytes and is used as a number of elements.
#include "check.h"
struct Image { float *data; size_t pitch; int w, h; };
__device__ float *row(Image m, int y) {
#ifdef FAULT
  return m.data + y * m.pitch;
#else
  return reinterpret_cast<float *>(reinterpret_cast<char *>(m.data) + y * m.pitch);
#endif
}
__global__ void flip(Image a, Image b) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < a.w && y < a.h) row(b, a.h - 1 - y)[x] = row(a, y)[x];  //@
}
int main() {
  const int W = 45, H = 20;
  std::vector<float> v(W * H), r(W * H); bool ok = true;
  for (int i = 0; i < W * H; i++) v[i] = float(i);
  Image a{nullptr, 0, W, H}, b = a;
  CK(cudaMallocPitch(&a.data, &a.pitch, W * sizeof(float), H));
  CK(cudaMallocPitch(&b.data, &b.pitch, W * sizeof(float), H));
  CK(cudaMemcpy2D(a.data, a.pitch, v.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
  flip<<<dim3(2, 3), dim3(32, 8)>>>(a, b);
  CK(cudaMemcpy2D(r.data(), W * 4, b.data, b.pitch, W * 4, H, cudaMemcpyDeviceToHost));
  for (int i = 0; i < W * H; i++) ok &= r[i] == v[(H - 1 - i / W) * W + i % W];
  return verdict(ok);
}
