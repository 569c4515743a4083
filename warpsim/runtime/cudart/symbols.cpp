// Variables of device memory, by their shadows on the host.
#include "copies.hpp"
#include "modules.hpp"
#include "ordering.hpp"
#include "streams.hpp"

using namespace warpsim;

namespace {

// Where byte `offset` of a symbol is; null, with a finding where `size` bytes leave it.
void* place(const void* symbol, uint64_t size, uint64_t offset, const char* name,
            cudaError_t& error) {
  const Variable* variable = find_variable(symbol);
  error = variable ? cudaSuccess : cudaErrorInvalidSymbol;
  if (!variable) return nullptr;
  if (offset + size > variable->size) {
    report("copy-out-of-bounds", std::string(name) + " of " + counted(size) + " from byte " +
                                     std::to_string(offset) + " of " + variable->name +
                                     " on, which has " + counted(variable->size) + ".");
    error = cudaErrorInvalidValue;
    return nullptr;
  }
  return reinterpret_cast<void*>(variable->address + offset);
}

cudaError_t copy_to(const char* name, const void* symbol, const void* from, size_t size,
                    size_t offset, cudaMemcpyKind kind) {
  cudaError_t error;
  void* to = place(symbol, size, offset, name, error);
  return to ? copy(name, {to}, {from}, {size}, kind) : error;
}

cudaError_t copy_from(const char* name, void* to, const void* symbol, size_t size, size_t offset,
                      cudaMemcpyKind kind) {
  cudaError_t error;
  void* from = place(symbol, size, offset, name, error);
  return from ? copy(name, {to}, {from}, {size}, kind) : error;
}

}  // namespace

extern "C" cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t size,
                                          size_t offset, cudaMemcpyKind kind) {
  return call([&] {
    begin_work(0), host_waits(clock_of(0));
    wait_for_device();
    if (sticky() != cudaSuccess) return sticky();
    return copy_to("cudaMemcpyToSymbol", symbol, from, size, offset, kind);
  });
}

extern "C" cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t size,
                                               size_t offset, cudaMemcpyKind kind,
                                               cudaStream_t stream) {
  return call([&] {
    return enqueue(stream, [=] {
      return copy_to("cudaMemcpyToSymbolAsync", symbol, from, size, offset, kind);
    });
  });
}

extern "C" cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t size,
                                            size_t offset, cudaMemcpyKind kind) {
  return call([&] {
    begin_work(0), host_waits(clock_of(0));
    wait_for_device();
    if (sticky() != cudaSuccess) return sticky();
    return copy_from("cudaMemcpyFromSymbol", to, symbol, size, offset, kind);
  });
}

extern "C" cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t size,
                                                 size_t offset, cudaMemcpyKind kind,
                                                 cudaStream_t stream) {
  return call([&] {
    return enqueue(stream, [=] {
      return copy_from("cudaMemcpyFromSymbolAsync", to, symbol, size, offset, kind);
    });
  });
}

extern "C" cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return call([&] {
    const Variable* variable = find_variable(symbol);
    if (!variable) return cudaErrorInvalidSymbol;
    *address = reinterpret_cast<void*>(variable->address);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return call([&] {
    const Variable* variable = find_variable(symbol);
    if (!variable) return cudaErrorInvalidSymbol;
    *size = variable->size;
    return cudaSuccess;
  });
}
