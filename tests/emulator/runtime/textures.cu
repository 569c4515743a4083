// Textures and surfaces of random texels, against what the host computes of them.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kWidth = 13, kHeight = 7, kDepth = 5, kPoints = 200;

__global__ void sample(cudaTextureObject_t texture, const float* x, float* out, int n, int geometry) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float u = x[3 * i], v = x[3 * i + 1], w = x[3 * i + 2];
  if (geometry == 0) out[i] = tex1Dfetch<float>(texture, int(floorf(u)));
  if (geometry == 2) out[i] = tex2D<float>(texture, u, v);
  if (geometry == 3) out[i] = tex3D<float>(texture, u, v, w);
  if (geometry == 4) out[i] = tex2DLayered<float>(texture, u, v, i % kDepth);
}

__global__ void transpose(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  const int x = threadIdx.x, y = threadIdx.y;
  uchar4 texel;
  surf2Dread(&texel, from, x * 4, y);
  texel.x += 1;
  surf2Dwrite(texel, to, y * 4, x);
}

double texel(const std::vector<float>& all, int x, int y, int z, int mode) {
  const int sizes[] = {kWidth, kHeight, kDepth};
  int at[] = {x, y, z};
  for (int i = 0; i < 3; ++i) {
    const int n = sizes[i];
    if (mode == cudaAddressModeBorder && (at[i] < 0 || at[i] >= n)) return 0;
    if (mode == cudaAddressModeWrap) at[i] = ((at[i] % n) + n) % n;
    if (mode == cudaAddressModeMirror) {
      at[i] = ((at[i] % (2 * n)) + 2 * n) % (2 * n);
      if (at[i] >= n) at[i] = 2 * n - 1 - at[i];
    }
    at[i] = std::min(std::max(at[i], 0), n - 1);
  }
  return all[(at[2] * kHeight + at[1]) * kWidth + at[0]];
}

int main() {
  int bad = 0, compared = 0;
  std::vector<float> texels(kWidth * kHeight * kDepth), points(3 * kPoints), out(kPoints);
  for (float& each : texels) each = rand() / float(RAND_MAX);
  float *x, *result;
  cudaMalloc(&x, points.size() * sizeof(float)), cudaMalloc(&result, out.size() * sizeof(float));
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  for (int geometry : {2, 3, 4}) {
    for (int mode = 0; mode < 4; ++mode) {
      for (int linear = 0; linear < 2; ++linear) {
        for (int normalized = mode % 2 == 0; normalized < 2; ++normalized) {  // wrap and mirror need it
          const int depth = geometry == 2 ? 0 : kDepth;
          cudaArray_t array;
          cudaMalloc3DArray(&array, &format, make_cudaExtent(kWidth, kHeight, depth),
                            geometry == 4 ? cudaArrayLayered : 0);
          cudaMemcpy3DParms copy{};
          copy.srcPtr = make_cudaPitchedPtr(texels.data(), kWidth * sizeof(float), kWidth, kHeight);
          copy.dstArray = array, copy.kind = cudaMemcpyHostToDevice;
          copy.extent = make_cudaExtent(kWidth, kHeight, std::max(depth, 1));
          cudaMemcpy3D(&copy);
          cudaResourceDesc resource{};
          resource.resType = cudaResourceTypeArray, resource.res.array.array = array;
          cudaTextureDesc description{};
          for (auto& each : description.addressMode) each = cudaTextureAddressMode(mode);
          description.filterMode = cudaTextureFilterMode(linear);
          description.normalizedCoords = normalized;
          cudaTextureObject_t texture;
          if (cudaCreateTextureObject(&texture, &resource, &description, nullptr)) return 1;
          for (int i = 0; i < kPoints; ++i) {
            const int sizes[] = {kWidth, kHeight, kDepth};
            for (int j = 0; j < 3; ++j) {
              const float place = (rand() / float(RAND_MAX) * 2 - 0.5f);
              points[3 * i + j] = normalized ? place : place * sizes[j];
            }
          }
          cudaMemcpy(x, points.data(), points.size() * sizeof(float), cudaMemcpyHostToDevice);
          sample<<<2, 128>>>(texture, x, result, kPoints, geometry);
          cudaMemcpy(out.data(), result, out.size() * sizeof(float), cudaMemcpyDeviceToHost);
          for (int i = 0; i < kPoints; ++i) {
            double at[3];
            for (int j = 0; j < 3; ++j) {
              const int sizes[] = {kWidth, kHeight, kDepth};
              at[j] = double(points[3 * i + j]) * (normalized ? sizes[j] : 1);
            }
            const int layer = geometry == 4 ? i % kDepth : 0;
            double wanted = 0;
            if (!linear) {
              wanted = texel(texels, std::floor(at[0]), std::floor(at[1]),
                             geometry == 3 ? std::floor(at[2]) : layer, mode);
            } else {
              for (int corner = 0; corner < (geometry == 3 ? 8 : 4); ++corner) {
                int place[3] = {0, 0, layer};
                double weight = 1;
                for (int j = 0; j < (geometry == 3 ? 3 : 2); ++j) {
                  const double from = at[j] - 0.5, first = std::floor(from);
                  place[j] = int(first) + (corner >> j & 1);
                  weight *= corner >> j & 1 ? from - first : 1 - (from - first);
                }
                wanted += weight * texel(texels, place[0], place[1], place[2], mode);
              }
            }
            ++compared;
            // Weights have 8 bits of fraction: 1/512 along each of three dimensions.
            bad += !(std::fabs(out[i] - wanted) <= (linear ? 3.0 / 512 + 1e-5 : 0));
          }
          cudaDestroyTextureObject(texture), cudaFreeArray(array);
        }
      }
    }
  }
  cudaArray_t from, to;
  const cudaChannelFormatDesc bytes = cudaCreateChannelDesc<uchar4>();
  cudaMallocArray(&from, &bytes, 8, 4, cudaArraySurfaceLoadStore);
  cudaMallocArray(&to, &bytes, 4, 8, cudaArraySurfaceLoadStore);
  std::vector<uchar4> pixels(32), turned(32);
  for (auto& each : pixels) each = make_uchar4(rand() % 250, rand(), rand(), rand());
  cudaMemcpy2DToArray(from, 0, 0, pixels.data(), 32, 32, 4, cudaMemcpyHostToDevice);
  cudaResourceDesc one{}, other{};
  one.resType = other.resType = cudaResourceTypeArray;
  one.res.array.array = from, other.res.array.array = to;
  cudaSurfaceObject_t in, written;
  cudaCreateSurfaceObject(&in, &one), cudaCreateSurfaceObject(&written, &other);
  transpose<<<1, dim3(8, 4)>>>(in, written);
  cudaMemcpy2DFromArray(turned.data(), 16, to, 0, 0, 16, 8, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; ++i, ++compared) {
    const uchar4 a = pixels[i], b = turned[(i % 8) * 4 + i / 8];
    bad += a.x + 1 != b.x || a.y != b.y || a.z != b.z || a.w != b.w;
  }
  printf("%d of %d wrong\n", bad, compared);
  transpose<<<1, dim3(9, 4)>>>(in, written);  // beyond both
  return cudaDeviceSynchronize() != cudaErrorIllegalAddress;
}
