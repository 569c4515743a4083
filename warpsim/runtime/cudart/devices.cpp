// The one device: what it is called and what it has, as the emulator describes it.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "context.hpp"
#include "memory.hpp"

using namespace warpsim;

namespace {

int number(const char* name) { return static_cast<int>(device_number(name)); }

// Attributes that are neither sizes of the chosen card nor 0.
struct Attribute {
  cudaDeviceAttr attribute;
  int value;
};

constexpr Attribute kFixed[] = {
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrTotalConstantMemory, 65536},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxPitch, 2147483647},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrComputePreemptionSupported, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 0},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrGlobalMemoryBusWidth, 5120},
    {cudaDevAttrMaxTexture1DWidth, 131072},
    {cudaDevAttrMaxTexture2DWidth, 131072},
    {cudaDevAttrMaxTexture2DHeight, 65536},
    {cudaDevAttrMaxTexture3DWidth, 16384},
    {cudaDevAttrMaxTexture3DHeight, 16384},
    {cudaDevAttrMaxTexture3DDepth, 16384},
};

struct Size {
  cudaDeviceAttr attribute;
  const char* name;
  int unit;
};

constexpr Size kSizes[] = {
    {cudaDevAttrMaxThreadsPerBlock, "threads_per_cta", 1},
    {cudaDevAttrMaxSharedMemoryPerBlock, "smem_per_cta", 1},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, "smem_per_cta_optin", 1},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, "smem_per_sm", 1},
    {cudaDevAttrReservedSharedMemoryPerBlock, "smem_reserved", 1},
    {cudaDevAttrMaxRegistersPerBlock, "registers_per_sm", 1},
    {cudaDevAttrMaxRegistersPerMultiprocessor, "registers_per_sm", 1},
    {cudaDevAttrMultiProcessorCount, "sms", 1},
    {cudaDevAttrClockRate, "clock_khz", 1},
    {cudaDevAttrMemoryClockRate, "clock_khz", 1},
    {cudaDevAttrL2CacheSize, "l2", 1},
    {cudaDevAttrMaxThreadsPerMultiProcessor, "warps_per_sm", 32},
    {cudaDevAttrMaxBlocksPerMultiprocessor, "ctas_per_sm", 1},
    {cudaDevAttrComputeCapabilityMajor, "major", 1},
    {cudaDevAttrComputeCapabilityMinor, "minor", 1},
};

void describe(cudaDeviceProp& p) {
  std::memset(&p, 0, sizeof p);
  std::snprintf(p.name, sizeof p.name, "%s", device_text("name").c_str());
  std::memcpy(p.uuid.bytes, "kernelexp-device", sizeof p.uuid.bytes);
  p.totalGlobalMem = memory_total();
  p.sharedMemPerBlock = number("smem_per_cta");
  p.sharedMemPerBlockOptin = number("smem_per_cta_optin");
  p.sharedMemPerMultiprocessor = number("smem_per_sm");
  p.reservedSharedMemPerBlock = number("smem_reserved");
  p.regsPerBlock = p.regsPerMultiprocessor = number("registers_per_sm");
  p.warpSize = 32;
  p.memPitch = 2147483647;
  p.maxThreadsPerBlock = number("threads_per_cta");
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024, p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647, p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 65536;
  p.major = number("major"), p.minor = number("minor");
  p.textureAlignment = p.surfaceAlignment = 512, p.texturePitchAlignment = 32;
  p.maxTexture1D = 131072, p.maxTexture2D[0] = 131072, p.maxTexture2D[1] = 65536;
  p.maxTexture3D[0] = p.maxTexture3D[1] = p.maxTexture3D[2] = 16384;
  p.multiProcessorCount = number("sms");
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = 1;
  p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.managedMemory = p.concurrentManagedAccess = p.cooperativeLaunch = 1;
  p.memoryPoolsSupported = p.computePreemptionSupported = 1;
  p.asyncEngineCount = 3;
  p.memoryBusWidth = 5120;
  p.l2CacheSize = number("l2");
  p.maxThreadsPerMultiProcessor = 32 * number("warps_per_sm");
  p.maxBlocksPerMultiProcessor = number("ctas_per_sm");
  p.clusterLaunch = p.major >= 9;
}

uint64_t limits[cudaLimitMaxL2FetchGranularity + 3] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};

}  // namespace

extern "C" cudaError_t cudaGetDeviceCount(int* count) {
  return call([&] {
    *count = 1;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGetDevice(int* device) {
  return call([&] {
    *device = 0;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaSetDevice(int device) {
  return call([&] { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

extern "C" cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return cudaSetDevice(device);
}

extern "C" cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return cudaGetDevice(device);
}

extern "C" cudaError_t cudaSetValidDevices(int*, int) {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaSetDeviceFlags(unsigned) {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return call([&] {
    *flags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&] {
    if (device != 0) return cudaErrorInvalidDevice;
    describe(*properties);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call([&] {
    if (device != 0) return cudaErrorInvalidDevice;
    if (attribute < 1 || attribute >= cudaDevAttrMax) return cudaErrorInvalidValue;
    *value = 0;
    for (const Attribute& each : kFixed) {
      if (each.attribute == attribute) *value = each.value;
    }
    for (const Size& each : kSizes) {
      if (each.attribute == attribute) *value = number(each.name) * each.unit;
    }
    if (attribute == cudaDevAttrClusterLaunch) *value = number("major") >= 9;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

extern "C" cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

extern "C" cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return call([&] {
    if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return cudaErrorUnsupportedLimit;
    *value = limits[limit];
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return call([&] {
    if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return cudaErrorUnsupportedLimit;
    limits[limit] = value;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return call([&] {
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return call([&] {
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  return call([&] {
    *can = 0;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return call([] { return cudaErrorInvalidDevice; });
}

extern "C" cudaError_t cudaDeviceDisablePeerAccess(int) {
  return call([] { return cudaErrorPeerAccessNotEnabled; });
}

extern "C" cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  return call([&] {
    if (device != 0) return cudaErrorInvalidDevice;
    std::snprintf(text, size, "0000:00:00.0");
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaCtxResetPersistingL2Cache() {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaProfilerStart() { return cudaSuccess; }
extern "C" cudaError_t cudaProfilerStop() { return cudaSuccess; }
