// Accesses of copy engines and the tensor core that nothing is wrong with: the checks of copying.py,
// races.py and clocks.py. Where there would be something to report a function returns 1 and changes
// nothing.
#include <algorithm>
#include <cstring>

#include "memory.hpp"

namespace {

using kx::Array;
using kx::integers;
using kx::kPage;
using kx::kUnwritten;
using kx::Memory;
using kx::Reader;
using kx::unit_at;

constexpr int64_t kChunk = 16;  // bytes

// Whether any byte of a chunk was never written: no other state is odd.
bool has_unwritten(const uint8_t* state) {
  uint64_t words[2];
  std::memcpy(words, state, sizeof words);
  return ((words[0] | words[1]) & 0x0101010101010101 * kUnwritten) != 0;
}

// Calls of each chunk: its number, and its first byte's offset. False as soon as one of them is.
template <class Each>
bool every(const Array* chunks, int64_t base, Each each) {
  for (int64_t i = 0; i < chunks->shape[0]; ++i) {
    const int64_t offset = integers(chunks)[i];
    if (offset >= 0 && !each(i, base + offset)) return false;
  }
  return true;
}

// Whether it may be an access of that epoch to all units of all chunks: allowed(epoch).
template <class Allowed>
bool may_access(const Memory& memory, const int64_t* epochs, const Array* chunks, int64_t base,
                Allowed allowed) {
  const int64_t units = unit_at(memory, kChunk);
  int64_t last = 0;  // the epoch that was allowed last: there are few
  return every(chunks, base, [&](int64_t, int64_t at) {
    const int64_t* first = epochs + unit_at(memory, at);
    for (int64_t unit = 0; unit < units; ++unit) {
      if (first[unit] == last) continue;
      if (!allowed(memory.known(first[unit]))) return false;
      last = first[unit];
    }
    return true;
  });
}

bool is_inside(const Memory& memory, int64_t at) {
  return at % kChunk == 0 && at >= 0 && at <= memory.size - kChunk;
}

}  // namespace

// A copy reads 16 bytes at `base` + each of `chunks` (int64 [n]) into `to`, zeros where that is
// negative. The other arguments but `now`, its epoch, are a Reader's; with 0 the history neither
// matters nor changes.
extern "C" int kx_read_chunks(const Memory* memory, const Array* chunks, int64_t base,
                              const Array* seen, int64_t issuer, const Array* fenced,
                              const Array* fences, int64_t now, const Array* to) {
  const Reader reader(seen, issuer, fenced, fences);
  const auto may_read = [&](int64_t epoch) { return reader.may_read(epoch); };
  if (now) memory->use(memory->engines);
  if (!every(chunks, base, [&](int64_t, int64_t at) {
        return is_inside(*memory, at) && !has_unwritten(memory->state + at);
      })) {
    return 1;
  }
  if (now && !may_access(*memory, memory->written, chunks, base, may_read)) return 1;
  kx::Reads reads(*memory, memory->engines, reader.seen);
  const int64_t units = unit_at(*memory, kChunk);
  for (int64_t i = 0; i < chunks->shape[0]; ++i) {
    const int64_t offset = integers(chunks)[i], at = base + offset;
    if (offset < 0) {
      std::memset(to->data + kChunk * i, 0, kChunk);
      continue;
    }
    std::memcpy(to->data + kChunk * i, memory->data + at, kChunk);
    if (!now) continue;
    for (int64_t unit = 0; unit < units; ++unit) {
      reads.note(unit_at(*memory, at) + unit, now);
    }
  }
  return 0;
}

// A copy writes `from` to 16 bytes at `base` + each of `chunks`, none where that is negative, with
// no mbarrier in `extent` bytes from `base` on. seen: what the thread that issued it had seen.
extern "C" int kx_write_chunks(const Memory* memory, const Array* chunks, int64_t base,
                               int64_t extent, const Array* seen, int64_t issuer, int64_t now,
                               const Array* from) {
  const auto may_write = [&](int64_t epoch) {
    return !kx::unordered(integers(seen), epoch, issuer);
  };
  if (std::memchr(memory->state + base, kx::kBarrier, extent)) return 1;
  if (!every(chunks, base, [&](int64_t, int64_t at) { return is_inside(*memory, at); })) return 1;
  if (!may_access(*memory, memory->written, chunks, base, may_write)) return 1;
  const auto follows = [&](const int64_t* read) {
    return may_access(*memory, read, chunks, base, may_write);
  };
  if (!memory->every_column(follows)) return 1;
  const int64_t units = unit_at(*memory, kChunk);
  every(chunks, base, [&](int64_t i, int64_t at) {
    std::memcpy(memory->data + at, from->data + kChunk * i, kChunk);
    std::memset(memory->state + at, kx::kWritten, kChunk);
    std::fill_n(memory->written + unit_at(*memory, at), units, now);
    memory->touch(unit_at(*memory, at), units);
    return true;
  });
  return 0;
}

// The tensor core reads pieces of `width` bytes, at `base` + each of `index` (int64 [rows, n]), into
// `to`; the state of a piece's first byte, and that byte's unit, stand for all of it. The rest is as
// for kx_read_chunks.
extern "C" int kx_read_pieces(const Memory* memory, const Array* index, int64_t base, int64_t width,
                              const Array* seen, int64_t issuer, const Array* fenced,
                              const Array* fences, int64_t now, const Array* to) {
  const Reader reader(seen, issuer, fenced, fences);
  const int64_t count = index->shape[0] * index->shape[1];
  memory->use(memory->engines);
  int64_t last = 0;  // the epoch that was allowed last: there are few
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = base + integers(index)[i], epoch = memory->written[unit_at(*memory, at)];
    if (!(memory->state[at] & kx::kWritten)) return 1;
    if (epoch != last && !reader.may_read(epoch)) return 1;
    last = epoch;
  }
  kx::Reads reads(*memory, memory->engines, reader.seen);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = base + integers(index)[i];
    reads.note(unit_at(*memory, at), now);
    if (width == 16) {
      __builtin_memcpy(to->data + 16 * i, memory->data + at, 16);
    } else {
      __builtin_memcpy(to->data + width * i, memory->data + at, width);
    }
  }
  return 0;
}
