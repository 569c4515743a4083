// What extensions use of torch's CUDA side, on the CUDA runtime alone.
#pragma once
#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <cuda_runtime.h>

#define C10_CUDA_CHECK(EXPRESSION)                                            \
  do {                                                                        \
    const cudaError_t kx_error = EXPRESSION;                                  \
    TORCH_CHECK(kx_error == cudaSuccess, cudaGetErrorString(kx_error));       \
  } while (0)
#define AT_CUDA_CHECK(EXPRESSION) C10_CUDA_CHECK(EXPRESSION)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())

namespace c10::cuda {
struct CUDAStream {
  cudaStream_t stream() const { return nullptr; }
  operator cudaStream_t() const { return nullptr; }
  void synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(nullptr)); }
};
inline CUDAStream getCurrentCUDAStream(int = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(int = -1) { return {}; }
inline int current_device() { return 0; }
inline void device_synchronize() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }
struct CUDAGuard {
  template <typename... Device> explicit CUDAGuard(Device&&...) {}
};
using OptionalCUDAGuard = CUDAGuard;
}  // namespace c10::cuda

namespace at::cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::OptionalCUDAGuard;
inline cudaDeviceProp* getCurrentDeviceProperties() {
  static cudaDeviceProp properties;
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  return &properties;
}
}  // namespace at::cuda
