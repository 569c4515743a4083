// What every call of the runtime goes through: one lock, the connection, the errors.
#pragma once
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <string>

#include "channel.hpp"

namespace warpsim {

std::recursive_mutex& lock();

// Connects at the first call of the program that needs it.
void start();

// Of the device, as the emulator describes it.
uint64_t device_number(const std::string& name);
std::string device_text(const std::string& name);

// Notes what a call gives back: the thread's last error, unless it is success.
cudaError_t remember(cudaError_t error);

// The error of a launch that has failed, if the program has not been told: it is, by the next call
// that waits, and by all after that.
void fail_later(cudaError_t error);
void notice_failure();
void forget_failure();
cudaError_t sticky();

// An error that only cudaGetLastError() tells of: that of a launch with <<<>>>.
void fail_unseen(cudaError_t error, const std::string& sentence, const Frames& site);

// A mistake of the program's: one of runtime/reports.py, a sentence, and where.
void report(const std::string& name, const std::string& sentence, const Frames& site);
void report(const std::string& name, const std::string& sentence);

// What kernels have printed appears when the program waits for them.
void keep_printed(const std::string& text);
void print_kept();

// The program waits for the device: failures are noticed, what was printed appears.
void wait_for_device();

// That something was launched, or copied without waiting, after the program last waited.
void note_unfinished();

template <class Body>
cudaError_t call(Body body) {
  const std::lock_guard<std::recursive_mutex> held(lock());
  start();
  if (sticky() != cudaSuccess) return remember(sticky());
  return remember(body());
}

// Of calls that never give another call's error.
template <class Body>
cudaError_t query(Body body) {
  const std::lock_guard<std::recursive_mutex> held(lock());
  start();
  return remember(body());
}

std::string hex(uint64_t address);
std::string counted(uint64_t bytes);

}  // namespace warpsim
