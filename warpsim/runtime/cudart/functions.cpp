// Attributes of kernels, and how many of their CTAs fit on an SM.
#include <algorithm>
#include <cstring>

#include "launches.hpp"

using namespace warpsim;

namespace {

Kernel* usable(const void* stub) {
  Kernel* kernel = find_kernel(stub);
  if (kernel && !kernel->missing.empty()) give_up(kernel->missing);
  return kernel;
}

uint64_t optional_shared(const Kernel& kernel) {
  return device_number("smem_per_cta_optin") - kernel.static_shared;
}

}  // namespace

extern "C" cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
  return call([&] {
    const Kernel* kernel = usable(stub);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    std::memset(attributes, 0, sizeof *attributes);
    attributes->sharedSizeBytes = kernel->static_shared;
    attributes->constSizeBytes = kernel->constants;
    attributes->localSizeBytes = kernel->local;
    const int most = static_cast<int>(device_number("threads_per_cta"));
    attributes->maxThreadsPerBlock = kernel->max_threads ? kernel->max_threads : most;
    attributes->numRegs = kernel->registers;
    attributes->ptxVersion = kernel->ptx_version;
    attributes->binaryVersion = kernel->binary_version;
    attributes->maxDynamicSharedSizeBytes = kernel->dynamic_allowed;
    attributes->preferredShmemCarveout = -1;
    attributes->nonPortableClusterSizeAllowed =
        kernel->cluster_allowed > device_number("cluster_size");
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute attribute,
                                            int value) {
  return call([&] {
    Kernel* kernel = usable(stub);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
      kernel->cluster_allowed = device_number(value ? "cluster_size_optin" : "cluster_size");
    }
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || static_cast<uint64_t>(value) > optional_shared(*kernel)) {
      return cudaErrorInvalidValue;
    }
    kernel->dynamic_allowed = value;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaFuncSetCacheConfig(const void* stub, cudaFuncCache) {
  return call([&] { return find_registered(stub) ? cudaSuccess : cudaErrorInvalidDeviceFunction; });
}

extern "C" cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* count, const void* stub, int threads, size_t shared, unsigned) {
  return call([&] {
    const Kernel* kernel = usable(stub);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    if (threads <= 0) return cudaErrorInvalidValue;
    *count = static_cast<int>(residents(*kernel, threads, shared));
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* count, const void* stub,
                                                                     int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, stub, threads, shared, 0);
}

extern "C" cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* shared, const void* stub,
                                                                 int ctas, int) {
  return call([&] {
    const Kernel* kernel = usable(stub);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    if (ctas <= 0) return cudaErrorInvalidValue;
    const uint64_t each = device_number("smem_per_sm") / ctas / 128 * 128;
    const uint64_t taken = kernel->static_shared + device_number("smem_reserved");
    *shared = std::min(each > taken ? each - taken : 0, optional_shared(*kernel));
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* stub,
                                                            const cudaLaunchConfig_t*) {
  return call([&] {
    const Kernel* kernel = usable(stub);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    *size = static_cast<int>(kernel->cluster_allowed);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaOccupancyMaxActiveClusters(int* count, const void* stub,
                                                      const cudaLaunchConfig_t* config) {
  return call([&] {
    const Kernel* kernel = usable(stub);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    uint64_t size = 1;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const cudaLaunchAttribute& each = config->attrs[i];
      if (each.id != cudaLaunchAttributeClusterDimension) continue;
      size = uint64_t(each.val.clusterDim.x) * each.val.clusterDim.y * each.val.clusterDim.z;
    }
    const uint64_t threads =
        uint64_t(config->blockDim.x) * config->blockDim.y * config->blockDim.z;
    const uint64_t ctas =
        residents(*kernel, threads, config->dynamicSmemBytes) * device_number("sms");
    *count = static_cast<int>(ctas / std::max<uint64_t>(size, 1));
    return cudaSuccess;
  });
}
