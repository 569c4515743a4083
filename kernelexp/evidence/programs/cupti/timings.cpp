#include "timings.hpp"

#include <cupti.h>

#include <cstdlib>
#include <mutex>
#include <set>

namespace captor {
namespace {

constexpr size_t kBuffer = 4 << 20, kAlign = 8;
constexpr size_t kMost = 100'000;  // times of a shape: 800 KB

std::mutex mutex;
Timings times;
std::set<uint32_t> apart;

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kAlign, kBuffer));
  *size = *buffer ? kBuffer : 0;
  *records = 0;
}

void note(const CUpti_Activity* record) {
  if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return;
  const auto* kernel = reinterpret_cast<const KERNEL_RECORD*>(record);
  const uint64_t took = kernel->end - kernel->start;
  if (apart.count(kernel->correlationId)) {
    times.apart[kernel->correlationId] = took;
    return;
  }
  const Shape shape{kernel->name ? kernel->name : "",
                    {kernel->gridX, kernel->gridY, kernel->gridZ},
                    {kernel->blockX, kernel->blockY, kernel->blockZ}};
  auto& own = times.nanoseconds[shape];
  if (own.size() < kMost) own.push_back(took);
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) note(record);
  std::free(buffer);
}

std::string words(CUptiResult result) {
  const char* text = nullptr;
  cuptiGetResultString(result, &text);
  return text ? text : std::to_string(int(result));
}

}  // namespace

std::string start_timing() {
  CUptiResult result = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  if (result == CUPTI_SUCCESS) {
    result = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
  return result == CUPTI_SUCCESS ? "" : words(result);
}

void set_apart(uint32_t correlation) {
  const std::lock_guard<std::mutex> lock(mutex);
  apart.insert(correlation);
}

Timings finish_timing() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const std::lock_guard<std::mutex> lock(mutex);
  return times;
}

}  // namespace captor
