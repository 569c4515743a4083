#include "copies.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "ordering.hpp"
#include "streams.hpp"

// Of glibc from 2.32 on.
extern "C" char __libc_single_threaded __attribute__((weak));

namespace warpsim {
namespace {

uint64_t reach(const Side& side, const Extent& extent) {
  return (extent.depth - 1) * side.slice + (extent.height - 1) * side.pitch + extent.width;
}

bool keeps_states(const Range& range) {
  return range.allocation->use == Use::kModule || range.allocation->use == Use::kSystem;
}

// Whether a range is where the kind of a copy says: host memory that the device reaches is both.
bool fits(const Range& range, bool device) {
  if (!range.allocation) return !device;
  return device || range.allocation->on_host();
}

bool fits(const Range& to, const Range& from, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost: return fits(to, false) && fits(from, false);
    case cudaMemcpyHostToDevice: return fits(to, true) && fits(from, false);
    case cudaMemcpyDeviceToHost: return fits(to, false) && fits(from, true);
    case cudaMemcpyDeviceToDevice: return fits(to, true) && fits(from, true);
    default: return true;
  }
}

const char* kNames[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost",
                        "cudaMemcpyDeviceToDevice"};

std::string where(const Range& range) {
  return range.allocation ? describe(*range.allocation) : std::string("host memory");
}

// False, and a finding, for the program's own memory where a page of it is not there.
bool is_mapped(const Side& side, uint64_t size, const std::string& what) {
  const uint64_t address = address_of(side.pointer), first = address / kPage * kPage;
  if (!msync(reinterpret_cast<void*>(first), address + size - first, MS_ASYNC)) return true;
  report("copy-out-of-bounds", what + " " + counted(size) + " at " + hex(address) +
                                   ": memory of the host that is not there, or not any more.");
  return false;
}

constexpr uint64_t kChunkHeader = 16;  // bytes of a chunk before what the program is given
constexpr uint64_t kChunkFlags = 7, kChunkBeforeInUse = 1, kChunkMapped = 2;  // of its size
constexpr int kMostChunks = 1 << 14;  // that are walked over

// malloc.c of glibc: the size of a chunk lies 8 bytes before what it gives, the chunks of the main
// arena lie one behind the other from the beginning of the heap on.
uint64_t chunk_size_at(uint64_t chunk) { return *reinterpret_cast<const uint64_t*>(chunk + 8); }

bool is_glibc() {
  Dl_info info{};
  void* const found = dlsym(RTLD_DEFAULT, "malloc");
  if (!found || !dladdr(found, &info) || !info.dli_fname) return false;
  return std::strstr(info.dli_fname, "/libc.so") || std::strstr(info.dli_fname, "/libc-");
}

// Where the heap begins, 0 while there is none.
uint64_t heap_begin() {
  static uint64_t begin = 0;
  if (begin) return begin;
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (maps && std::fgets(line, sizeof line, maps)) {
    if (std::strstr(line, "[heap]")) std::sscanf(line, "%" SCNx64, &begin);
  }
  if (maps) std::fclose(maps);
  return begin;
}

uint64_t end_in_heap(uint64_t chunk, uint64_t end, uint64_t address) {
  for (int i = 0; i < kMostChunks; ++i) {
    const uint64_t size = chunk_size_at(chunk) & ~kChunkFlags, next = chunk + size;
    if (size < 2 * kChunkHeader || size % kChunkHeader || next >= end - kChunkHeader) return 0;
    if (address < next) {
      const bool in_use = chunk_size_at(next) & kChunkBeforeInUse;
      // Its last 8 bytes lie where the next chunk keeps the size of a free one before it.
      return in_use && address >= chunk + kChunkHeader ? next + 8 : 0;
    }
    chunk = next;
  }
  return 0;
}

// The end of the block in use that malloc() has given and that an address lies in, with the bytes
// that round up its size; 0 where that is not known: the C library is not glibc, the program has
// several threads, pages of its own are watched, or the block is neither of the main arena nor the
// beginning of one mapped alone.
uint64_t end_of_host_block(uint64_t address) {
  static const bool known = is_glibc();
  if (!known || has_shared() || !&__libc_single_threaded || !__libc_single_threaded) return 0;
  const uint64_t heap = heap_begin(), end = reinterpret_cast<uint64_t>(sbrk(0));
  if (heap && heap <= address && address < end) return end_in_heap(heap, end, address);
  // A block with a mapping of its own, of which the program gives the beginning.
  const uint64_t chunk = address - kChunkHeader;
  if (chunk % kPage || *reinterpret_cast<const uint64_t*>(chunk)) return 0;
  const uint64_t size = chunk_size_at(chunk);
  return (size & (kPage - 1)) == kChunkMapped && size > kPage ? chunk + size - kChunkMapped : 0;
}

// The same where it leaves the block that malloc() has given.
bool is_within_block(const Side& side, uint64_t size, const std::string& what) {
  const uint64_t address = address_of(side.pointer), end = end_of_host_block(address);
  if (!end || address + size <= end) return true;
  report("copy-out-of-bounds", what + " " + counted(size) + " at " + hex(address) +
                                   ", where malloc() has given " + counted(end - address) +
                                   " at most.");
  return false;
}

bool is_on_host(const Side& side, uint64_t size, const std::string& what) {
  return is_mapped(side, size, what) && is_within_block(side, size, what);
}

// How many bytes of a row nobody has written.
uint64_t unwritten(const uint8_t* states, uint64_t width) {
  return std::count(states, states + width, kUnwritten);
}

void move_row(const Range& to, const Range& from, uint64_t at, uint64_t source, uint64_t width) {
  std::memmove(to.bytes + at, from.bytes + source, width);
  if (!to.states || keeps_states(to)) return;
  if (!from.states || keeps_states(from)) {
    std::memset(to.states + at, kWritten, width);
  } else {
    std::memmove(to.states + at, from.states + source, width);
  }
}

template <class Row>
void each_row(const Extent& extent, const Side& to, const Side& from, Row row) {
  for (uint64_t z = 0; z < extent.depth; ++z) {
    for (uint64_t y = 0; y < extent.height; ++y) {
      row(z * to.slice + y * to.pitch, z * from.slice + y * from.pitch);
    }
  }
}

void note_copy(const std::string& name, const Range& range, const Side& side, const Extent& extent,
               bool writes) {
  if (!range.allocation) return;
  for (uint64_t z = 0; z < extent.depth; ++z) {
    note_access(name.c_str(), address_of(side.pointer) + z * side.slice, extent.width, extent.height,
                side.pitch, writes);
  }
}

}  // namespace

cudaError_t copy(const char* name, Side to, Side from, Extent extent, cudaMemcpyKind kind) {
  if (!extent.width || !extent.height || !extent.depth) return cudaSuccess;
  if (!to.pointer || !from.pointer || kind < 0 || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidValue;
  }
  if (extent.height > 1 && (to.pitch < extent.width || from.pitch < extent.width)) {
    return cudaErrorInvalidPitchValue;
  }
  Range target, source;
  const std::string called(name);
  if (!resolve(to.pointer, reach(to, extent), (called + " writes").c_str(), target) ||
      !resolve(from.pointer, reach(from, extent), (called + " reads").c_str(), source)) {
    return cudaErrorInvalidValue;
  }
  if ((!target.allocation && !is_on_host(to, reach(to, extent), called + " writes")) ||
      (!source.allocation && !is_on_host(from, reach(from, extent), called + " reads"))) {
    return cudaErrorInvalidValue;
  }
  if (!fits(target, source, kind)) {
    report("wrong-direction", called + " with " + kNames[kind] + " copies from " + where(source) +
                                  " to " + where(target) + ".");
    return cudaErrorInvalidValue;
  }
  uint64_t missing = 0, whole = extent.width * extent.height * extent.depth;
  each_row(extent, to, from, [&](uint64_t at, uint64_t start) {
    if (!target.states && source.states) missing += unwritten(source.states + start, extent.width);
    move_row(target, source, at, start, extent.width);
  });
  note_copy(called, target, to, extent, true), note_copy(called, source, from, extent, false);
  if (missing == whole) {
    report("uninitialised-copy", called + " reads " + counted(whole) + " of " + where(source) +
                                     ", none of which has a defined value.");
  } else if (missing) {
    report("partly-uninitialised-copy", called + " reads " + counted(whole) + " of " +
                                            where(source) + "; " + counted(missing) +
                                            " have no defined value.");
  }
  return cudaSuccess;
}

cudaError_t fill(const char* name, Side to, int value, Extent extent) {
  if (!extent.width || !extent.height || !extent.depth) return cudaSuccess;
  Range target;
  const std::string called(name);
  if (!to.pointer || !resolve(to.pointer, reach(to, extent), (called + " writes").c_str(), target)) {
    return cudaErrorInvalidValue;
  }
  if (!target.allocation) {
    report("wrong-direction", called + " of " + hex(address_of(to.pointer)) +
                                  ", which is not memory of the device.");
    return cudaErrorInvalidValue;
  }
  each_row(extent, to, to, [&](uint64_t at, uint64_t) {
    std::memset(target.bytes + at, value, extent.width);
    if (!keeps_states(target)) std::memset(target.states + at, kWritten, extent.width);
  });
  note_copy(called, target, to, extent, true);
  return cudaSuccess;
}

}  // namespace warpsim

using namespace warpsim;

namespace {

// A copy that waits, as those to and from the host's pageable memory do.
template <class Body>
cudaError_t waiting(Body body) {
  return call([&] {
    begin_work(0);
    host_waits(clock_of(0));
    wait_for_device();
    if (sticky() != cudaSuccess) return sticky();
    return body();
  });
}

// A fill waits where the host could touch what it fills.
void wait_on_host(const void* filled) {
  const Allocation* found = find(address_of(filled));
  if (found && found->on_host()) host_waits(clock_of(0));
}

}  // namespace

extern "C" cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  return waiting([&] { return copy("cudaMemcpy", {to}, {from}, {size}, kind); });
}

extern "C" cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  return call([&] {
    const cudaError_t error =
        enqueue(stream, [=] { return copy("cudaMemcpyAsync", {to}, {from}, {size}, kind); });
    const bool pageable = !is_ours(address_of(to)) || !is_ours(address_of(from));
    if (pageable && !captures(stream)) host_waits(clock_of(stream_number(stream)));
    return error;
  });
}

extern "C" cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t size) {
  return waiting([&] { return copy("cudaMemcpyPeer", {to}, {from}, {size}, cudaMemcpyDefault); });
}

extern "C" cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size,
                                           cudaStream_t stream) {
  return call([&] {
    return enqueue(stream, [=] {
      return copy("cudaMemcpyPeerAsync", {to}, {from}, {size}, cudaMemcpyDefault);
    });
  });
}

extern "C" cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                    size_t width, size_t height, cudaMemcpyKind kind) {
  return waiting([&] {
    return copy("cudaMemcpy2D", {to, to_pitch}, {from, from_pitch}, {width, height}, kind);
  });
}

extern "C" cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                         size_t from_pitch, size_t width, size_t height,
                                         cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] {
    return enqueue(stream, [=] {
      return copy("cudaMemcpy2DAsync", {to, to_pitch}, {from, from_pitch}, {width, height}, kind);
    });
  });
}

extern "C" cudaError_t cudaMemset(void* to, int value, size_t size) {
  return call([&] {
    begin_work(0);
    wait_on_host(to);
    return fill("cudaMemset", {to}, value, {size});
  });
}

extern "C" cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t stream) {
  return call([&] {
    return enqueue(stream, [=] { return fill("cudaMemsetAsync", {to}, value, {size}); });
  });
}

extern "C" cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width,
                                    size_t height) {
  return call([&] {
    begin_work(0);
    wait_on_host(to);
    return fill("cudaMemset2D", {to, pitch}, value, {width, height});
  });
}

extern "C" cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width,
                                         size_t height, cudaStream_t stream) {
  return call([&] {
    return enqueue(stream, [=] {
      return fill("cudaMemset2DAsync", {to, pitch}, value, {width, height});
    });
  });
}

extern "C" cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return call([&] {
    begin_work(0);
    wait_on_host(to.ptr);
    return fill("cudaMemset3D", {to.ptr, to.pitch, to.pitch * to.ysize}, value,
                {extent.width, extent.height, extent.depth});
  });
}

extern "C" cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent,
                                         cudaStream_t stream) {
  return call([&] {
    return enqueue(stream, [=] {
      return fill("cudaMemset3DAsync", {to.ptr, to.pitch, to.pitch * to.ysize}, value,
                  {extent.width, extent.height, extent.depth});
    });
  });
}
