// The driver's own functions: a module is loaded from the PTX that argv[1] names and launched; a tile
// is copied by a tensor map of cuTensorMapEncodeTiled.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

constexpr int kRows = 20, kColumns = 32, kTileRows = 8, kTileColumns = 16;

__global__ void copy_tile(const __grid_constant__ CUtensorMap map, float* out, int x, int y) {
  __shared__ alignas(128) float tile[kTileRows][kTileColumns];
  __shared__ unsigned long long barrier;
  const unsigned at = __cvta_generic_to_shared(&barrier), to = __cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
    asm volatile("fence.proxy.async.shared::cta;");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at),
                 "r"(int(sizeof tile)));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(at) : "memory");
  }
  asm volatile(
      "{\n.reg .pred p;\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra WAIT;\n}"
      ::"r"(at) : "memory");
  for (int i = threadIdx.x; i < kTileRows * kTileColumns; i += blockDim.x) out[i] = tile[0][i];
}

__global__ void scale(float* x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}

int main(int, char** words) {
  cuInit(0);
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  int bad = 0, n = kRows * kColumns;
  cuDeviceGet(&device, 0), cuCtxCreate(&context, nullptr, 0, device);
  std::vector<float> in(n), out(kTileRows * kTileColumns);
  for (int i = 0; i < n; ++i) in[i] = i;
  CUdeviceptr x;
  CUmemGenericAllocationHandle pages;
  const size_t reserved = 2 << 20;
  cuMemAddressReserve(&x, reserved, 0, 0, 0), cuMemCreate(&pages, reserved, nullptr, 0);
  bad += cuMemMap(x, reserved, 0, pages, 0) != CUDA_SUCCESS;
  cuMemSetAccess(x, reserved, nullptr, 0);
  cuMemcpyHtoD(x, in.data(), n * sizeof(float));
  CUlinkState linker;
  void* image;
  cuLinkCreate(0, nullptr, nullptr, &linker);
  if (cuLinkAddFile(linker, CU_JIT_INPUT_PTX, words[1], 0, nullptr, nullptr) != CUDA_SUCCESS) return 1;
  cuLinkComplete(linker, &image, nullptr);
  if (cuModuleLoadData(&module, image) != CUDA_SUCCESS) return 1;
  cuLinkDestroy(linker), cuModuleUnload(module);
  if (cuModuleLoad(&module, words[1]) != CUDA_SUCCESS) return 1;
  if (cuModuleGetFunction(&function, module, "none") != CUDA_ERROR_NOT_FOUND) ++bad;
  cuModuleGetFunction(&function, module, "_Z5scalePffi");
  int grid = 0, block = 0;
  cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, 0, 512);
  CUdevprop properties;
  cuDeviceGetProperties(&properties, device);
  bad += grid < 132 || block != 512 || properties.maxThreadsPerBlock != 1024;
  float factor = 2;
  void* arguments[] = {&x, &factor, &n};
  cuLaunchKernel(function, (n + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr);

  void* entry;
  cudaDriverEntryPointQueryResult known;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &known);
  CUtensorMap map;
  const cuuint64_t sizes[] = {kColumns, kRows}, strides[] = {kColumns * sizeof(float)};
  const cuuint32_t box[] = {kTileColumns, kTileRows}, steps[] = {1, 1};
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, reinterpret_cast<void*>(x), sizes, strides, box,
         steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
         CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  float* result;
  cudaMalloc(&result, out.size() * sizeof(float));
  copy_tile<<<1, 64>>>(map, result, 24, 15);
  cudaMemcpy(out.data(), result, out.size() * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < kTileRows; ++i) {
    for (int j = 0; j < kTileColumns; ++j) {
      const bool inside = 15 + i < kRows && 24 + j < kColumns;
      bad += out[i * kTileColumns + j] != (inside ? 2 * in[(15 + i) * kColumns + 24 + j] : 0);
    }
  }
  printf("%d wrong\n", bad);
  cuMemUnmap(x, reserved), cuMemRelease(pages), cuMemAddressFree(x, reserved), cudaFree(result), cuModuleUnload(module), cuCtxDestroy(context);
}
