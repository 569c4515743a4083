// Accesses of copy engines and the tensor core that nothing is wrong with: the checks of races.py
// and clocks.py. Where there would be something to report a function returns 1 and changes nothing.
#include <cstdint>

#include "array.hpp"

namespace {

using kx::Array;

constexpr int kThreadBits = 20;
constexpr int64_t kThread = (1 << kThreadBits) - 1;
constexpr int kPage = 12;
constexpr char kUnwritten = 1;

int64_t* integers(const Array* a) { return reinterpret_cast<int64_t*>(a->data); }

bool unseen(const int64_t* seen, int64_t issuer, int64_t epoch) {
  const int64_t thread = epoch & kThread;
  return epoch && thread != issuer && seen[thread >> 5] < epoch >> kThreadBits;
}

// Whether a unit's last write is ordered before what an engine reads now: see kx_engine_read.
struct Reader {
  const int64_t *written, *seen, *fenced, *fences;
  int64_t issuer, threads;

  bool may_read(int64_t unit) const {
    const int64_t epoch = written[unit], thread = epoch & kThread, time = epoch >> kThreadBits;
    if (!epoch) return true;
    if (unseen(seen, issuer, epoch)) return false;
    return thread >= threads || fences[thread] >= time || fenced[thread >> 5] >= time;
  }
};

}  // namespace

// units: int64 [n]; written: the history's; read: the engines' column of it; seen and fenced: what
// the issuing thread had seen, and had at its last proxy fence, by agent; fences: when each thread
// last made one, [warps, 32].
extern "C" int kx_engine_read(const Array* units, const Array* written, const Array* read,
                              const Array* seen, int64_t issuer, const Array* fenced,
                              const Array* fences, int64_t now) {
  const Reader reader{integers(written), integers(seen), integers(fenced), integers(fences),
                      issuer, 32 * fences->shape[0]};
  for (int64_t i = 0; i < units->shape[0]; ++i) {
    if (!reader.may_read(integers(units)[i])) return 1;
  }
  for (int64_t i = 0; i < units->shape[0]; ++i) integers(read)[integers(units)[i]] = now;
  return 0;
}

// Copies pieces of `width` bytes, at `base` + each of `index` (int64) in an arena's data, to `to`;
// `state` has the arena's states, and the first byte's unit stands for all of a piece. Otherwise as
// kx_engine_read.
extern "C" int kx_fetch(const Array* index, int64_t base, int64_t width, const Array* data,
                        const Array* state, int64_t unit, const Array* written, const Array* read,
                        const Array* seen, int64_t issuer, const Array* fenced,
                        const Array* fences, int64_t now, const Array* to) {
  const Reader reader{integers(written), integers(seen), integers(fenced), integers(fences),
                      issuer, 32 * fences->shape[0]};
  const int64_t count = index->shape[0] * index->shape[1];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = base + integers(index)[i];
    if (state->data[at] == kUnwritten || !reader.may_read(at / unit)) return 1;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = base + integers(index)[i];
    integers(read)[at / unit] = now;
    if (width == 16) {
      __builtin_memcpy(to->data + 16 * i, data->data + at, 16);
    } else {
      __builtin_memcpy(to->data + width * i, data->data + at, width);
    }
  }
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
