// launch NAME THREADS CTAS MAP [LIMIT]: launches one kernel of hopper.cu once, and prints what became of it and a hash of
// its result. MAP is 1 for a kernel that takes a tensor map. A kernel that does not end within LIMIT seconds is left
// behind. kernels.inc has a line `{"name", name},` for each kernel.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <string>
#include <unistd.h>

#include "hopper.cu"

namespace host {

constexpr size_t WORDS = 4096;

void must(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  std::printf("error in %s: %s\n", what, cudaGetErrorName(error));
  std::fflush(stdout);
  _exit(2);
}

unsigned *array(bool random) {
  static unsigned words[WORDS];
  unsigned state = 12345;
  for (unsigned &word : words) word = random ? state = state * 1664525 + 1013904223 : 0;
  unsigned *device;
  must(cudaMalloc(&device, sizeof words), "cudaMalloc");
  must(cudaMemcpy(device, words, sizeof words, cudaMemcpyHostToDevice), "cudaMemcpy");
  return device;
}

CUtensorMap map_of(unsigned *words) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  void *encode = driver ? dlsym(driver, "cuTensorMapEncodeTiled") : nullptr;
  must(encode ? cudaSuccess : cudaErrorSymbolNotFound, "dlsym");
  CUtensorMap map;
  const cuuint64_t shape[] = {40, 12}, strides[] = {160};
  const cuuint32_t box[] = {32, 8}, steps[] = {1, 1};
  const CUresult status = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, words, shape, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  must(status == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue, "cuTensorMapEncodeTiled");
  return map;
}

cudaError_t wait(double limit) {
  const auto begin = std::chrono::steady_clock::now();
  cudaError_t status;
  while ((status = cudaStreamQuery(nullptr)) == cudaErrorNotReady) {
    usleep(1000);
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > limit) break;
  }
  return status;
}

}  // namespace host

int main(int argc, char **argv) {
  using namespace host;
  if (argc < 5) return 1;
  const struct {
    const char *name;
    const void *kernel;
  } kernels[] = {
#include "kernels.inc"
  };
  const void *kernel = nullptr;
  for (const auto &each : kernels)
    if (std::string(each.name) == argv[1]) kernel = each.kernel;
  unsigned *out = array(false), *in = array(true), *scratch = array(false);
  CUtensorMap map{};
  if (std::atoi(argv[4])) map = map_of(in);
  void *arguments[] = {&out, &in, &scratch, &map};
  const dim3 grid(std::atoi(argv[3])), block(std::atoi(argv[2]));
  must(cudaLaunchKernel(kernel, grid, block, arguments, 0, nullptr), "cudaLaunchKernel");
  const cudaError_t status = host::wait(argc > 5 ? std::atof(argv[5]) : 5);
  if (status == cudaErrorNotReady) {
    std::printf("hang\n");
    std::fflush(stdout);
    _exit(3);
  }
  must(status, "the kernel");
  static unsigned words[WORDS];
  must(cudaMemcpy(words, out, sizeof words, cudaMemcpyDeviceToHost), "cudaMemcpy");
  unsigned long long hash = 1469598103934665603ull;
  for (unsigned word : words) hash = (hash ^ word) * 1099511628211ull;
  std::printf("result %016llx\n", hash);
  return 0;
}
