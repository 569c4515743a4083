// Accesses of copy engines and the tensor core that nothing is wrong with: the checks of races.py
// and clocks.py. Where there would be something to report a function returns 1 and changes nothing.
#include <cstdint>

#include "array.hpp"

namespace {

using kx::Array;

constexpr int kThreadBits = 20;
constexpr int64_t kThread = (1 << kThreadBits) - 1;
constexpr int kPage = 12;

int64_t* integers(const Array* a) { return reinterpret_cast<int64_t*>(a->data); }

bool unseen(const int64_t* seen, int64_t issuer, int64_t epoch) {
  const int64_t thread = epoch & kThread;
  return epoch && thread != issuer && seen[thread >> 5] < epoch >> kThreadBits;
}

}  // namespace

// units: int64 [n]; written: the history's; read: the engines' column of it; seen and fenced: what
// the issuing thread had seen, and had at its last proxy fence, by agent; fences: when each thread
// last made one, [warps, 32].
extern "C" int kx_engine_read(const Array* units, const Array* written, const Array* read,
                              const Array* seen, int64_t issuer, const Array* fenced,
                              const Array* fences, int64_t now) {
  const int64_t threads = 32 * fences->shape[0];
  for (int64_t i = 0; i < units->shape[0]; ++i) {
    const int64_t epoch = integers(written)[integers(units)[i]];
    if (!epoch) continue;
    if (unseen(integers(seen), issuer, epoch)) return 1;
    const int64_t thread = epoch & kThread, time = epoch >> kThreadBits;
    if (thread < threads && integers(fences)[thread] < time &&
        integers(fenced)[thread >> 5] < time) {
      return 1;
    }
  }
  for (int64_t i = 0; i < units->shape[0]; ++i) integers(read)[integers(units)[i]] = now;
  return 0;
}

// read: [columns, units] of the history; used: those of its columns with any reader.
extern "C" int kx_engine_write(const Array* units, const Array* written, const Array* read,
                               const Array* used, const Array* pages, const Array* seen,
                               int64_t issuer, int64_t now) {
  for (int64_t i = 0; i < units->shape[0]; ++i) {
    if (unseen(integers(seen), issuer, integers(written)[integers(units)[i]])) return 1;
  }
  for (int64_t column = 0; column < used->shape[0]; ++column) {
    const int64_t* readers = integers(read) + integers(used)[column] * read->shape[1];
    for (int64_t i = 0; i < units->shape[0]; ++i) {
      if (unseen(integers(seen), issuer, readers[integers(units)[i]])) return 1;
    }
  }
  for (int64_t i = 0; i < units->shape[0]; ++i) {
    const int64_t unit = integers(units)[i];
    integers(written)[unit] = now;
    pages->data[unit >> kPage] = 1;
  }
  return 0;
}
