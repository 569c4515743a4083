// Texture and surface objects: records in device memory, which the emulator reads where a handle
// points (machine/memory/textures.py).
#include <cstring>
#include <map>

#include "arrays.hpp"
#include "pointers.hpp"

using namespace warpsim;

namespace {

struct Record {
  uint64_t mark = 0x7872757470726177, base = 0, pitch = 0, slice = 0;
  uint32_t width = 0, height = 1, depth = 1, channels = 0;
  uint32_t bits = 0, kind = 0, scaled = 0, linear = 0;
  uint32_t normalized = 0, linear_memory = 0, modes[3] = {1, 1, 1}, reserved = 0;
  float border[4] = {};
};

struct Object {
  const Allocation* record;
  cudaResourceDesc resource;
  cudaTextureDesc texture;
};

std::map<uint64_t, Object>& objects() {
  static auto& all = *new std::map<uint64_t, Object>;
  return all;
}

bool add_format(Record& record, const cudaChannelFormatDesc& format) {
  const int bits[] = {format.x, format.y, format.z, format.w};
  while (record.channels < 4 && bits[record.channels] > 0) ++record.channels;
  record.bits = bits[0], record.kind = format.f;
  for (uint32_t i = 0; i < record.channels; ++i) {
    if (bits[i] != bits[0]) return false;
  }
  return record.channels && record.channels != 3 && format.f <= cudaChannelFormatKindFloat;
}

cudaError_t add_resource(Record& record, const cudaResourceDesc& from) {
  cudaChannelFormatDesc format{};
  const void* memory = nullptr;
  if (from.resType == cudaResourceTypeArray) {
    const cudaArray* array = find_array(from.res.array.array);
    if (!array) return cudaErrorInvalidValue;
    format = array->format, record.base = array->memory->address, record.pitch = array->pitch();
    record.width = array->extent.width, record.height = array->rows(), record.depth = array->planes();
  } else if (from.resType == cudaResourceTypeLinear) {
    memory = from.res.linear.devPtr, format = from.res.linear.desc, record.linear_memory = 1;
    const uint64_t texel = (format.x + format.y + format.z + format.w) / 8;
    if (!texel) return cudaErrorInvalidChannelDescriptor;
    record.width = from.res.linear.sizeInBytes / texel, record.pitch = record.width * texel;
  } else if (from.resType == cudaResourceTypePitch2D) {
    const auto& rows = from.res.pitch2D;
    memory = rows.devPtr, format = rows.desc;
    record.width = rows.width, record.height = rows.height, record.pitch = rows.pitchInBytes;
  } else {
    give_up("mipmapped arrays are not supported by the emulator's CUDA runtime.");
  }
  record.slice = record.pitch * record.height;
  if (!add_format(record, format)) return cudaErrorInvalidChannelDescriptor;
  if (!memory) return cudaSuccess;
  Range range;
  record.base = address_of(memory);
  const bool whole = resolve(memory, record.slice, "cudaCreateTextureObject names", range);
  if (whole) return range.allocation ? cudaSuccess : cudaErrorInvalidValue;
  const Allocation* found = find(record.base);
  if (!found) return cudaErrorInvalidValue;
  // A card does not look where the allocation ends: the texture is as large as what is there.
  const uint64_t room = found->end() - record.base;
  if (record.linear_memory) {
    record.width = room / (record.pitch / record.width);
  } else {
    record.height = room / record.pitch;
  }
  return cudaSuccess;
}

cudaError_t add_object(unsigned long long* handle, const Record& record, const Object& object) {
  const Allocation* made = allocate(sizeof record, Use::kSystem, {});
  if (!made) return cudaErrorMemoryAllocation;
  std::memcpy(bytes_at(made->address), &record, sizeof record);
  std::memset(states_at(made->address), kConstant, sizeof record);
  *handle = made->address;
  objects()[made->address] = object;
  objects()[made->address].record = made;
  return cudaSuccess;
}

cudaError_t remove_object(uint64_t handle) {
  if (!objects().erase(handle)) return cudaErrorInvalidValue;
  release(handle, {});
  return cudaSuccess;
}

}  // namespace

extern "C" cudaError_t cudaCreateTextureObject(cudaTextureObject_t* handle,
                                               const cudaResourceDesc* resource,
                                               const cudaTextureDesc* texture,
                                               const cudaResourceViewDesc* view) {
  return call([&] {
    if (!handle || !resource || !texture) return cudaErrorInvalidValue;
    if (view) give_up("views of textures are not supported by the emulator's CUDA runtime.");
    Record record;
    const cudaError_t error = add_resource(record, *resource);
    if (error != cudaSuccess) return error;
    record.scaled = texture->readMode == cudaReadModeNormalizedFloat;
    record.linear = texture->filterMode == cudaFilterModeLinear;
    record.normalized = texture->normalizedCoords != 0;
    for (int i = 0; i < 3; ++i) record.modes[i] = texture->addressMode[i];
    std::memcpy(record.border, texture->borderColor, sizeof record.border);
    const bool whole = record.kind != cudaChannelFormatKindFloat && !record.scaled;
    if (record.linear && whole) return cudaErrorInvalidFilterSetting;
    return add_object(handle, record, {nullptr, *resource, *texture});
  });
}

extern "C" cudaError_t cudaDestroyTextureObject(cudaTextureObject_t handle) {
  return call([&] { return remove_object(handle); });
}

extern "C" cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource,
                                                        cudaTextureObject_t handle) {
  return call([&] {
    const auto found = objects().find(handle);
    if (found == objects().end()) return cudaErrorInvalidValue;
    *resource = found->second.resource;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* texture,
                                                       cudaTextureObject_t handle) {
  return call([&] {
    const auto found = objects().find(handle);
    if (found == objects().end()) return cudaErrorInvalidValue;
    *texture = found->second.texture;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* handle,
                                               const cudaResourceDesc* resource) {
  return call([&] {
    if (!handle || !resource || resource->resType != cudaResourceTypeArray) {
      return cudaErrorInvalidValue;
    }
    Record record;
    const cudaError_t error = add_resource(record, *resource);
    return error == cudaSuccess ? add_object(handle, record, {nullptr, *resource, {}}) : error;
  });
}

extern "C" cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t handle) {
  return call([&] { return remove_object(handle); });
}
