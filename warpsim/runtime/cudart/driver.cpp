// The driver's functions that programs call themselves, most by the runtime's of the same meaning:
// one context, which is always current.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "launches.hpp"
#include "pointers.hpp"

using namespace warpsim;

namespace {

struct Context {
} the_context;

const CUcontext kContext = reinterpret_cast<CUcontext>(&the_context);

// Numbers are the same but for those of the runtime alone.
CUresult of(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidMemcpyDirection: return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidSymbol: return CUDA_ERROR_NOT_FOUND;
    case cudaErrorInvalidDeviceFunction: return CUDA_ERROR_INVALID_HANDLE;
    default: return static_cast<CUresult>(error);
  }
}

void* at(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

cudaStream_t stream_of(CUstream stream) { return reinterpret_cast<cudaStream_t>(stream); }

const void* stub_of(CUfunction function) { return reinterpret_cast<const void*>(function); }

Module* module_of(CUmodule module) { return reinterpret_cast<Module*>(module); }

CUresult load_image(CUmodule* module, const std::string& image) {
  std::string why_not;
  const cudaError_t error = call([&] {
    *module = reinterpret_cast<CUmodule>(load_module(image, why_not));
    return *module ? cudaSuccess : cudaErrorInvalidKernelImage;
  });
  if (!why_not.empty()) give_up("a module that it loads: " + why_not);
  return of(error);
}

CUresult memset_elements(CUdeviceptr to, const void* value, size_t size, size_t n, CUstream stream) {
  // An element at a time where its bytes differ, as the runtime has no such function.
  const char* bytes = static_cast<const char*>(value);
  if (std::all_of(bytes, bytes + size, [&](char each) { return each == bytes[0]; })) {
    return of(cudaMemsetAsync(at(to), bytes[0], size * n, stream_of(stream)));
  }
  std::string all;
  for (size_t i = 0; i < n; ++i) all.append(bytes, size);
  return of(cudaMemcpyAsync(at(to), all.data(), all.size(), cudaMemcpyHostToDevice, stream_of(stream)));
}

constexpr int kNewest = 4;  // of the versions that a function's name may end in

void* entry_point(const std::string& name) {
  for (int version = kNewest; version > 1; --version) {
    if (void* found = dlsym(RTLD_DEFAULT, (name + "_v" + std::to_string(version)).c_str())) return found;
  }
  return dlsym(RTLD_DEFAULT, name.c_str());
}

cudaError_t give_entry_point(const char* name, void** function,
                             cudaDriverEntryPointQueryResult* result) {
  *function = entry_point(name);
  if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  return query([&] { return give_entry_point(name, function, result); });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return query([&] { return give_entry_point(name, function, result); });
}

CUresult cuGetProcAddress(const char* name, void** function, int, cuuint64_t,
                          CUdriverProcAddressQueryResult* result) {
  *function = entry_point(name);
  if (result) {
    *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuInit(unsigned) { return of(cudaInitDevice(0, 0, 0)); }
CUresult cuDriverGetVersion(int* version) { return of(cudaDriverGetVersion(version)); }
CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = cudaGetErrorName(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}

// Devices and contexts

CUresult cuDeviceGetCount(int* count) { return of(cudaGetDeviceCount(count)); }
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess && size > 0) {
    std::strncpy(name, properties.name, size - 1);
    name[size - 1] = 0;
  }
  return of(error);
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  *uuid = properties.uuid;
  return of(error);
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  size_t free = 0;
  return of(cudaMemGetInfo(&free, bytes));
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return of(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
}
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  const CUresult error =
      cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (error != CUDA_SUCCESS) return error;
  return cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}
CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  const auto number = [&](CUdevice_attribute attribute) {
    int value = 0;
    cuDeviceGetAttribute(&value, attribute, device);
    return value;
  };
  *properties = {number(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                 {number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                  number(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
                 {number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                  number(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
                 number(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
                 number(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
                 number(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
                 number(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
                 number(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
                 number(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
                 number(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)};
  return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return of(cudaDeviceCanAccessPeer(can, device, peer));
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = kContext;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned, CUdevice) {
  *context = kContext;
  return CUDA_SUCCESS;
}
CUresult cuCtxDestroy(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext* context) {
  if (context) *context = kContext;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = kContext;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetApiVersion(CUcontext, unsigned* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() { return of(cudaDeviceSynchronize()); }

// Modules

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load_image(module, image_at(image));
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadData(module, image);
}
CUresult cuModuleLoad(CUmodule* module, const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string image{std::istreambuf_iterator<char>(file), {}};
  return load_image(module, image);
}
CUresult cuModuleUnload(CUmodule module) {
  return of(call([&] {
    unload_module(module_of(module));
    return cudaSuccess;
  }));
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return of(call([&] {
    *function = reinterpret_cast<CUfunction>(kernel_of(module_of(module), name));
    return *function ? cudaSuccess : cudaErrorSymbolNotFound;
  }));
}
CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* size, CUmodule module, const char* name) {
  return of(call([&] {
    const Variable* found = variable_of(module_of(module), name);
    if (!found) return cudaErrorSymbolNotFound;
    if (address) *address = found->address;
    if (size) *size = found->size;
    return cudaSuccess;
  }));
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return of(cudaFuncSetAttribute(stub_of(function), static_cast<cudaFuncAttribute>(attribute), value));
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  cudaFuncAttributes all;
  const cudaError_t error = cudaFuncGetAttributes(&all, stub_of(function));
  if (error != cudaSuccess) return of(error);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = all.maxThreadsPerBlock; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(all.sharedSizeBytes); break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = static_cast<int>(all.constSizeBytes); break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(all.localSizeBytes); break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = all.numRegs; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = all.ptxVersion; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = all.binaryVersion; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = all.maxDynamicSharedSizeBytes; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* ctas, CUfunction function, int threads,
                                                     size_t shared) {
  return of(cudaOccupancyMaxActiveBlocksPerMultiprocessor(ctas, stub_of(function), threads, shared));
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  int sms = 0, most = 0, best = 0;
  cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
  if (limit > 0) most = std::min(most, limit);
  for (int threads = most; threads > 0; threads = (threads - 1) / 32 * 32) {
    int ctas = 0;
    const size_t bytes = shared_of ? shared_of(threads) : shared;
    const CUresult error =
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&ctas, function, threads, bytes);
    if (error != CUDA_SUCCESS) return error;
    if (ctas * threads > best) best = ctas * threads, *block = threads, *grid = ctas * sms;
  }
  return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream,
                        void** arguments, void** extra) {
  if (extra) give_up("cuLaunchKernel with its arguments in `extra` is not supported by the emulator.");
  return of(cudaLaunchKernel(stub_of(function), {x, y, z}, {block_x, block_y, block_z}, arguments,
                             shared, stream_of(stream)));
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned x, unsigned y, unsigned z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared, CUstream stream, void** arguments) {
  return of(cudaLaunchCooperativeKernel(stub_of(function), {x, y, z}, {block_x, block_y, block_z},
                                        arguments, shared, stream_of(stream)));
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra) {
  if (extra) give_up("cuLaunchKernelEx with its arguments in `extra` is not supported by the emulator.");
  cudaLaunchConfig_t same{};
  same.gridDim = {config->gridDimX, config->gridDimY, config->gridDimZ};
  same.blockDim = {config->blockDimX, config->blockDimY, config->blockDimZ};
  same.dynamicSmemBytes = config->sharedMemBytes;
  same.stream = stream_of(config->hStream);
  same.attrs = reinterpret_cast<cudaLaunchAttribute*>(config->attrs);  // of the same layout
  same.numAttrs = config->numAttrs;
  return of(cudaLaunchKernelExC(&same, stub_of(function), arguments));
}

// Memory

CUresult cuMemGetInfo(size_t* free, size_t* total) { return of(cudaMemGetInfo(free, total)); }
CUresult cuMemAlloc(CUdeviceptr* address, size_t size) {
  if (!size) return CUDA_ERROR_INVALID_VALUE;
  return of(cudaMalloc(reinterpret_cast<void**>(address), size));
}
CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned) {
  return of(cudaMallocPitch(reinterpret_cast<void**>(address), pitch, width, height));
}
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t size, unsigned flags) {
  return of(cudaMallocManaged(reinterpret_cast<void**>(address), size, flags));
}
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream stream) {
  return of(cudaMallocAsync(reinterpret_cast<void**>(address), size, stream_of(stream)));
}
CUresult cuMemFree(CUdeviceptr address) { return of(cudaFree(at(address))); }
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return of(cudaFreeAsync(at(address), stream_of(stream)));
}
CUresult cuMemAllocHost(void** pointer, size_t size) { return of(cudaMallocHost(pointer, size)); }
CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned flags) {
  return of(cudaHostAlloc(pointer, size, flags));
}
CUresult cuMemFreeHost(void* pointer) { return of(cudaFreeHost(pointer)); }
CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* pointer, unsigned flags) {
  return of(cudaHostGetDevicePointer(reinterpret_cast<void**>(address), pointer, flags));
}
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return of(cudaMemcpy(at(to), at(from), size, cudaMemcpyDefault));
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t size) {
  return of(cudaMemcpy(at(to), from, size, cudaMemcpyHostToDevice));
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t size) {
  return of(cudaMemcpy(to, at(from), size, cudaMemcpyDeviceToHost));
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return of(cudaMemcpy(at(to), at(from), size, cudaMemcpyDeviceToDevice));
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  return of(cudaMemcpyAsync(at(to), from, size, cudaMemcpyHostToDevice, stream_of(stream)));
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  return of(cudaMemcpyAsync(to, at(from), size, cudaMemcpyDeviceToHost, stream_of(stream)));
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return of(cudaMemcpyAsync(at(to), at(from), size, cudaMemcpyDeviceToDevice, stream_of(stream)));
}
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t n) {
  return of(cudaMemset(at(to), value, n));
}
CUresult cuMemsetD16(CUdeviceptr to, unsigned short value, size_t n) {
  return memset_elements(to, &value, sizeof value, n, nullptr);
}
CUresult cuMemsetD32(CUdeviceptr to, unsigned value, size_t n) {
  return memset_elements(to, &value, sizeof value, n, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
  return of(cudaMemsetAsync(at(to), value, n, stream_of(stream)));
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream) {
  return memset_elements(to, &value, sizeof value, n, stream);
}

// Streams and events

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return of(cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream), flags));
}
CUresult cuStreamDestroy(CUstream stream) { return of(cudaStreamDestroy(stream_of(stream))); }
CUresult cuStreamSynchronize(CUstream stream) { return of(cudaStreamSynchronize(stream_of(stream))); }
CUresult cuStreamQuery(CUstream stream) { return of(cudaStreamQuery(stream_of(stream))); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return of(cudaStreamWaitEvent(stream_of(stream), reinterpret_cast<cudaEvent_t>(event), flags));
}
CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return of(cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event), flags));
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return of(cudaEventRecord(reinterpret_cast<cudaEvent_t>(event), stream_of(stream)));
}
CUresult cuEventSynchronize(CUevent event) {
  return of(cudaEventSynchronize(reinterpret_cast<cudaEvent_t>(event)));
}
CUresult cuEventQuery(CUevent event) { return of(cudaEventQuery(reinterpret_cast<cudaEvent_t>(event))); }
CUresult cuEventElapsedTime(float* ms, CUevent begin, CUevent end) {
  return of(cudaEventElapsedTime(ms, reinterpret_cast<cudaEvent_t>(begin),
                                 reinterpret_cast<cudaEvent_t>(end)));
}
CUresult cuEventDestroy(CUevent event) { return of(cudaEventDestroy(reinterpret_cast<cudaEvent_t>(event))); }

// Tensor maps: their bytes are the emulator's, which finds what they say by them.

// A linker of PTX: one file, which is loaded as it is.

CUresult cuLinkCreate(unsigned, CUjit_option*, void**, CUlinkState* state) {
  *state = reinterpret_cast<CUlinkState>(new std::string);
  return CUDA_SUCCESS;
}
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char*,
                       unsigned, CUjit_option*, void**) {
  auto& image = *reinterpret_cast<std::string*>(state);
  if (type != CU_JIT_INPUT_PTX || !image.empty()) {
    give_up("cuLinkAddData of more than one file, or of other than PTX, is not supported by the "
            "emulator.");
  }
  image.assign(static_cast<const char*>(data), size);
  return CUDA_SUCCESS;
}
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                       CUjit_option* options, void** values) {
  std::ifstream file(path, std::ios::binary);
  std::string image{std::istreambuf_iterator<char>(file), {}};
  if (image.empty()) return CUDA_ERROR_FILE_NOT_FOUND;
  return cuLinkAddData(state, type, image.data(), image.size(), path, count, options, values);
}
CUresult cuLinkComplete(CUlinkState state, void** image, size_t* size) {
  auto& text = *reinterpret_cast<std::string*>(state);
  *image = text.data();
  if (size) *size = text.size();
  return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(CUlinkState state) {
  delete reinterpret_cast<std::string*>(state);
  return CUDA_SUCCESS;
}

// Virtual memory: what is reserved is an allocation, and physical memory nothing of its own.

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *bytes = 2 << 20;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t, CUdeviceptr,
                             unsigned long long) {
  return cuMemAlloc(address, size);
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t) { return cuMemFree(address); }
CUresult cuMemCreate(CUmemGenericAllocationHandle* made, size_t size, const CUmemAllocationProp*,
                     unsigned long long) {
  *made = size;
  return size <= memory_total() ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle) { return CUDA_SUCCESS; }
CUresult cuMemMap(CUdeviceptr address, size_t size, size_t, CUmemGenericAllocationHandle made,
                  unsigned long long) {
  return find(address) && size <= made ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemUnmap(CUdeviceptr, size_t) { return CUDA_SUCCESS; }
CUresult cuMemSetAccess(CUdeviceptr address, size_t, const CUmemAccessDesc*, size_t) {
  return find(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* sizes, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  constexpr cuuint32_t kMost = 5, kBox = 256;
  if (!map || rank < 1 || rank > kMost || address_of(address) % 16) return CUDA_ERROR_INVALID_VALUE;
  for (cuuint32_t i = 0; i < rank; ++i) {
    const bool stride = i == 0 || (strides[i - 1] % 16 == 0 && strides[i - 1] < uint64_t(1) << 40);
    if (!sizes[i] || sizes[i] > uint64_t(1) << 32 || !box[i] || box[i] > kBox || !stride) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  const bool plain = std::all_of(steps, steps + rank, [](cuuint32_t step) { return step == 1; }) &&
                     interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
  if (!plain) give_up("cuTensorMapEncodeTiled with steps or interleaving is not supported by the emulator.");
  return of(call([&] {
    constexpr uint64_t kBits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
    if (type >= std::size(kBits)) return cudaErrorInvalidValue;
    uint64_t bytes_named = sizes[0] * kBits[type] / 8;
    for (cuuint32_t i = 1; i < rank; ++i) bytes_named += (sizes[i] - 1) * strides[i - 1];
    Range range;
    if (!resolve(address, bytes_named, "cuTensorMapEncodeTiled names", range) || !range.allocation) {
      return cudaErrorInvalidValue;
    }
    Message message(Kind::kTensorMap);
    message.number(type).number(address_of(address)).number(swizzle).number(fill).number(rank);
    for (cuuint32_t i = 0; i < rank; ++i) message.number(sizes[i]).number(box[i]);
    for (cuuint32_t i = 0; i + 1 < rank; ++i) message.number(strides[i]);
    Answer answer = ask(message);
    const std::string missing = answer.text(), bytes = answer.text();
    if (!missing.empty()) give_up(missing);
    std::memcpy(map, bytes.data(), sizeof *map);
    return cudaSuccess;
  }));
}

}  // extern "C"
