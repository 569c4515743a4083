// cudaMalloc and its kin.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "ordering.hpp"
#include "pointers.hpp"
#include "streams.hpp"

using namespace warpsim;

namespace {

constexpr uint64_t kPitch = 512;

// The program's own memory that it has registered. Copies to and from it are those of any host
// memory; kernels reach it once its address on the device was asked for.
struct Registered {
  uint64_t address;
  uint64_t size;
  uint64_t device;  // 0: nobody has asked
};
std::map<uint64_t, Registered> registered;

// The one that begins before an address and ends behind it, or null.
Registered* registered_at(uint64_t address) {
  auto after = registered.upper_bound(address);
  if (after == registered.begin()) return nullptr;
  Registered& before = std::prev(after)->second;
  return address < before.address + before.size ? &before : nullptr;
}

cudaError_t make(void** pointer, uint64_t size, Use use) {
  if (!pointer) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (size == 0) return cudaSuccess;
  const Allocation* made = allocate(size, use, call_site());
  if (!made) return cudaErrorMemoryAllocation;
  *pointer = reinterpret_cast<void*>(made->address);
  return cudaSuccess;
}

// An allocation that begins or ends in a stream's order: work of other streams on it has to be
// ordered with that, as with a write.
void note_in_order(const char* name, const void* pointer, cudaStream_t stream) {
  const Allocation* found = find(address_of(pointer));
  if (!found || found->address != address_of(pointer) || captures(stream)) return;
  begin_work(stream_number(stream));
  note_access(name, found->address, found->size, 1, found->size, true);
}

cudaError_t give_back(void* pointer, const char* name, bool pinned) {
  if (!pointer) return cudaSuccess;
  const uint64_t address = address_of(pointer);
  const Allocation* found = find(address);
  const bool whole = found && found->address == address && found->use != Use::kModule &&
                     found->use != Use::kSystem;
  if (whole && (found->use == Use::kPinned) == pinned) {
    release(address, call_site());
    return cudaSuccess;
  }
  const std::string called = std::string(name) + " of " + hex(address);
  const Allocation* gone = find_freed(address);
  if (whole) {
    report("wrong-free", called + ": " + describe(*found) + (pinned ? " is not" : " is") +
                             " pinned host memory, which cudaFreeHost frees.");
  } else if (found) {
    report("wrong-free", called + ", which is inside of " + describe(*found) +
                             ", not where it begins.");
  } else if (gone && gone->address == address) {
    report("double-free", called + ": " + describe(*gone) + " has been freed already.");
  } else {
    report("wrong-free", called + ", which is no allocation of the CUDA runtime.");
  }
  return cudaErrorInvalidValue;
}

}  // namespace

extern "C" cudaError_t cudaMalloc(void** pointer, size_t size) {
  return call([&] { return make(pointer, size, Use::kDevice); });
}

extern "C" cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  return call([&] {
    if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
    if (captures(stream)) give_up("memory nodes of graphs are not supported by the emulator's CUDA runtime.");
    const cudaError_t error = make(pointer, size, Use::kDevice);
    if (error == cudaSuccess) note_in_order("cudaMallocAsync", *pointer, stream);
    return error;
  });
}

extern "C" cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t,
                                               cudaStream_t stream) {
  return cudaMallocAsync(pointer, size, stream);
}

extern "C" cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned) {
  return call([&] {
    if (size == 0) return cudaErrorInvalidValue;
    return make(pointer, size, Use::kManaged);
  });
}

extern "C" cudaError_t cudaMallocHost(void** pointer, size_t size) {
  return call([&] { return make(pointer, size, Use::kPinned); });
}

extern "C" cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned) {
  return cudaMallocHost(pointer, size);
}

extern "C" cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return call([&] {
    *pitch = (width + kPitch - 1) / kPitch * kPitch;
    return make(pointer, *pitch * height, Use::kDevice);
  });
}

extern "C" cudaError_t cudaMalloc3D(cudaPitchedPtr* made, cudaExtent extent) {
  return call([&] {
    made->pitch = (extent.width + kPitch - 1) / kPitch * kPitch;
    made->xsize = extent.width;
    made->ysize = extent.height;
    return make(&made->ptr, made->pitch * extent.height * extent.depth, Use::kDevice);
  });
}

// Waits for the device, as the real one does.
extern "C" cudaError_t cudaFree(void* pointer) {
  return call([&] {
    if (pointer) host_waits_for_all(), wait_for_device();
    if (sticky() != cudaSuccess) return sticky();
    return give_back(pointer, "cudaFree", false);
  });
}

extern "C" cudaError_t cudaFreeHost(void* pointer) {
  return call([&] {
    if (pointer) host_waits_for_all(), wait_for_device();
    if (sticky() != cudaSuccess) return sticky();
    return give_back(pointer, "cudaFreeHost", true);
  });
}

extern "C" cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return call([&] {
    if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
    note_in_order("cudaFreeAsync", pointer, stream);
    return give_back(pointer, "cudaFreeAsync", false);
  });
}

extern "C" cudaError_t cudaMemGetInfo(size_t* available, size_t* all) {
  return call([&] {
    if (available) *available = memory_free();
    if (all) *all = memory_total();
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return call([&] {
    const uint64_t address = address_of(host);
    const Allocation* found = find(address);
    if (found && found->on_host()) {
      *device = host;
      return cudaSuccess;
    }
    Registered* memory = registered_at(address);
    if (!memory) return cudaErrorInvalidValue;
    if (!memory->device) {
      found = share(reinterpret_cast<void*>(memory->address), memory->size, call_site());
      if (!found) return cudaErrorMemoryAllocation;
      memory->device = found->address;
    }
    *device = reinterpret_cast<void*>(memory->device + address - memory->address);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return call([&] {
    const Allocation* found = find(address_of(host));
    if (!found || found->use != Use::kPinned) return cudaErrorInvalidValue;
    *flags = cudaHostAllocMapped;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned) {
  return call([&] {
    if (!pointer || !size) return cudaErrorInvalidValue;
    const uint64_t address = address_of(pointer);
    const auto next = registered.lower_bound(address);
    const bool reaches_next = next != registered.end() && next->first < address + size;
    if (reaches_next || registered_at(address)) return cudaErrorHostMemoryAlreadyRegistered;
    registered[address] = {address, size, 0};
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaHostUnregister(void* pointer) {
  return call([&] {
    if (!pointer) return cudaErrorInvalidValue;
    const auto found = registered.find(address_of(pointer));
    if (found == registered.end()) return cudaErrorHostMemoryNotRegistered;
    const Registered gone = found->second;
    registered.erase(found);
    if (gone.device) {
      host_waits_for_all(), wait_for_device();
      take_back(pointer, gone.size, gone.device, call_site());
    }
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                                const void* pointer) {
  return call([&] {
    std::memset(attributes, 0, sizeof *attributes);
    attributes->device = 0;
    const Allocation* found = find(address_of(pointer));
    void* const place = const_cast<void*>(pointer);
    if (const Registered* memory = registered_at(address_of(pointer))) {
      attributes->type = cudaMemoryTypeHost;
      attributes->hostPointer = place;
      if (memory->device) {
        attributes->devicePointer =
            reinterpret_cast<void*>(memory->device + address_of(pointer) - memory->address);
      }
      return cudaSuccess;
    }
    if (!found) {
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = place;
      return cudaSuccess;
    }
    attributes->type = found->use == Use::kPinned    ? cudaMemoryTypeHost
                       : found->use == Use::kManaged ? cudaMemoryTypeManaged
                                                     : cudaMemoryTypeDevice;
    attributes->devicePointer = place;
    attributes->hostPointer = found->on_host() ? place : nullptr;
    return cudaSuccess;
  });
}

// Hints: there is one memory.

extern "C" cudaError_t cudaMemAdvise(const void* pointer, size_t size, cudaMemoryAdvise,
                                     cudaMemLocation) {
  return call([&] {
    Range range;
    return resolve(pointer, size, "cudaMemAdvise names", range) ? cudaSuccess
                                                                : cudaErrorInvalidValue;
  });
}

extern "C" cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t size, cudaMemLocation,
                                            unsigned, cudaStream_t) {
  return call([&] {
    Range range;
    return resolve(pointer, size, "cudaMemPrefetchAsync names", range) ? cudaSuccess
                                                                       : cudaErrorInvalidValue;
  });
}

extern "C" cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void*, size_t, unsigned) {
  return call([&] { return is_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}

// Pools: each gives what cudaMallocAsync gives.

namespace {
int pools;
cudaMemPool_t pool() { return reinterpret_cast<cudaMemPool_t>(&pools); }
}  // namespace

extern "C" cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* made, int) {
  return call([&] {
    *made = pool();
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* made, int device) {
  return cudaDeviceGetDefaultMemPool(made, device);
}

extern "C" cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaMemPoolCreate(cudaMemPool_t* made, const cudaMemPoolProps*) {
  return cudaDeviceGetDefaultMemPool(made, 0);
}

extern "C" cudaError_t cudaMemPoolDestroy(cudaMemPool_t) {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute,
                                               void* value) {
  return call([&] {
    const bool is_number = attribute >= cudaMemPoolAttrReleaseThreshold;
    std::memset(value, 0, is_number ? sizeof(uint64_t) : sizeof(int));
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return call([] { return cudaSuccess; });
}
