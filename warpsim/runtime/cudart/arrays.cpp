// Arrays: memory with a format and up to three extents, here row by row; and copies of boxes.
#include <algorithm>
#include <set>

#include "arrays.hpp"
#include "copies.hpp"
#include "ordering.hpp"
#include "streams.hpp"

using namespace warpsim;

namespace {

std::set<const cudaArray*>& arrays() {
  static auto& all = *new std::set<const cudaArray*>;
  return all;
}

const cudaArray* known(cudaArray_const_t array) { return find_array(array); }

Side side(const cudaArray& array, uint64_t x_bytes, uint64_t y, uint64_t z = 0) {
  const uint64_t slice = array.pitch() * array.rows();
  const uint64_t at = array.memory->address + z * slice + y * array.pitch() + x_bytes;
  return {reinterpret_cast<const void*>(at), array.pitch(), slice};
}

Side side(const cudaPitchedPtr& pointer, uint64_t x_bytes, uint64_t y, uint64_t z) {
  const uint64_t slice = pointer.pitch * pointer.ysize;
  return {static_cast<char*>(pointer.ptr) + z * slice + y * pointer.pitch + x_bytes, pointer.pitch,
          slice};
}

// A copy of bytes to an array from its byte `x` in row `y` on, through the ends of rows.
cudaError_t copy_linear(const char* name, const cudaArray* array, uint64_t x, uint64_t y,
                        const void* other, uint64_t size, cudaMemcpyKind kind, bool into) {
  if (!array) return cudaErrorInvalidValue;
  const Side own = side(*array, x, y);
  return into ? copy(name, {own.pointer}, {other}, {size}, kind)
              : copy(name, {other}, {own.pointer}, {size}, kind);
}

cudaError_t copy_rows(const char* name, const cudaArray* array, uint64_t x, uint64_t y,
                      const void* other, uint64_t pitch, uint64_t width, uint64_t height,
                      cudaMemcpyKind kind, bool into) {
  if (!array || x + width > array->pitch() || y + height > array->rows()) {
    return cudaErrorInvalidValue;
  }
  const Side own = side(*array, x, y), theirs{other, pitch};
  return copy(name, into ? own : theirs, into ? theirs : own, {width, height}, kind);
}

cudaError_t copy_box(const char* name, const cudaMemcpy3DParms& p) {
  const cudaArray *to = known(p.dstArray), *from = known(p.srcArray);
  if ((p.dstArray && !to) || (p.srcArray && !from)) return cudaErrorInvalidValue;
  // Where an array takes part, what is counted along x are elements.
  const uint64_t unit = to ? to->element() : from ? from->element() : 1;
  const Side target = to ? side(*to, p.dstPos.x * unit, p.dstPos.y, p.dstPos.z)
                         : side(p.dstPtr, p.dstPos.x, p.dstPos.y, p.dstPos.z);
  const Side source = from ? side(*from, p.srcPos.x * unit, p.srcPos.y, p.srcPos.z)
                           : side(p.srcPtr, p.srcPos.x, p.srcPos.y, p.srcPos.z);
  return copy(name, target, source, {p.extent.width * unit, p.extent.height, p.extent.depth},
              p.kind);
}

}  // namespace

const cudaArray* warpsim::find_array(cudaArray_const_t array) {
  return arrays().count(array) ? array : nullptr;
}

extern "C" cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                       cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

extern "C" cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format,
                                         cudaExtent extent, unsigned flags) {
  return call([&] {
    if (!array || !format || !extent.width) return cudaErrorInvalidValue;
    cudaArray made{nullptr, *format, extent, flags};
    made.memory = allocate(made.pitch() * made.rows() * made.planes(), Use::kArray, call_site());
    if (!made.memory) return cudaErrorMemoryAllocation;
    *array = new cudaArray(made);
    arrays().insert(*array);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format,
                                       size_t width, size_t height, unsigned flags) {
  return cudaMalloc3DArray(array, format, {width, height, 0}, flags);
}

extern "C" cudaError_t cudaFreeArray(cudaArray_t array) {
  return call([&] {
    if (!array) return cudaSuccess;
    if (!arrays().erase(array)) return cudaErrorInvalidValue;
    release(array->memory->address, call_site());
    delete array;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent,
                                        unsigned* flags, cudaArray_t array) {
  return call([&] {
    if (!known(array)) return cudaErrorInvalidValue;
    if (format) *format = array->format;
    if (extent) *extent = array->extent;
    if (flags) *flags = array->flags;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  return call([&] {
    if (!known(array)) return cudaErrorInvalidValue;
    *format = array->format;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaMemcpyToArray(cudaArray_t array, size_t x, size_t y, const void* from,
                                         size_t size, cudaMemcpyKind kind) {
  return call([&] {
    begin_work(0), host_waits(clock_of(0));
    return copy_linear("cudaMemcpyToArray", known(array), x, y, from, size, kind, true);
  });
}

extern "C" cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t array, size_t x, size_t y,
                                           size_t size, cudaMemcpyKind kind) {
  return call([&] {
    begin_work(0), host_waits(clock_of(0));
    return copy_linear("cudaMemcpyFromArray", known(array), x, y, to, size, kind, false);
  });
}

extern "C" cudaError_t cudaMemcpy2DToArray(cudaArray_t array, size_t x, size_t y, const void* from,
                                           size_t pitch, size_t width, size_t height,
                                           cudaMemcpyKind kind) {
  return call([&] {
    begin_work(0), host_waits(clock_of(0));
    return copy_rows("cudaMemcpy2DToArray", known(array), x, y, from, pitch, width, height, kind,
                     true);
  });
}

extern "C" cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t array, size_t x, size_t y,
                                                const void* from, size_t pitch, size_t width,
                                                size_t height, cudaMemcpyKind kind,
                                                cudaStream_t stream) {
  return call([&] {
    return enqueue(stream, [=] {
      return copy_rows("cudaMemcpy2DToArrayAsync", known(array), x, y, from, pitch, width, height,
                       kind, true);
    });
  });
}

extern "C" cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t array,
                                             size_t x, size_t y, size_t width, size_t height,
                                             cudaMemcpyKind kind) {
  return call([&] {
    begin_work(0), host_waits(clock_of(0));
    wait_for_device();
    if (sticky() != cudaSuccess) return sticky();
    return copy_rows("cudaMemcpy2DFromArray", known(array), x, y, to, pitch, width, height, kind,
                     false);
  });
}

extern "C" cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
  return call([&] {
    begin_work(0), host_waits(clock_of(0));
    wait_for_device();
    if (sticky() != cudaSuccess) return sticky();
    return copy_box("cudaMemcpy3D", *parameters);
  });
}

extern "C" cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return call([&] {
    return enqueue(stream, [of = *parameters] { return copy_box("cudaMemcpy3DAsync", of); });
  });
}
