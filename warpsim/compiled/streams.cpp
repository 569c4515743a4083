// Records what warps execute, for the model of time: warpsim/timing/recording.py.
#include <algorithm>
#include <cstring>

#include "memory.hpp"
#include "timing.hpp"

namespace {

using kx::kLanes;
using kx::timing::Recorder;

bool is_on(const uint8_t* on, int64_t row, int lane) { return !on || on[row * kLanes + lane]; }

// What L2 does for a warp's atomics on a line: a lane of each word of a sector at once.
struct Turns {
  int64_t all = 0, whole = 0;  // of sectors, and those of them in which each word has a lane
};

Turns turns_of(const int64_t* addresses, const uint8_t* on, int64_t row, int64_t line, int size) {
  constexpr int kSector = 32, kSectors = 4;
  Turns turns;
  for (int sector = 0; sector < kSectors; ++sector) {
    int lanes[kSector] = {};  // by word
    for (int lane = 0; lane < kLanes; ++lane) {
      const int64_t address = addresses[row * kLanes + lane];
      if (is_on(on, row, lane) && address >> 5 == line * kSectors + sector)
        ++lanes[address % kSector / size];
    }
    turns.all += *std::max_element(lanes, lanes + kSector / size);
    turns.whole += *std::min_element(lanes, lanes + kSector / size);
  }
  return turns;
}

// Lines of 128 bytes that a warp accesses, and which sectors of each.
int lines_of(const int64_t* addresses, const uint8_t* on, int64_t row, int size, int64_t* lines) {
  int count = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!is_on(on, row, lane)) continue;
    const int64_t first = addresses[row * kLanes + lane] >> 5;
    const int64_t last = (addresses[row * kLanes + lane] + size - 1) >> 5;
    for (int64_t sector = first; sector <= last; ++sector) {
      int at = count - 1;
      while (at >= 0 && lines[2 * at] != sector >> 2) --at;
      if (at < 0) {
        at = count++;
        lines[2 * at] = sector >> 2;
        lines[2 * at + 1] = 0;
      }
      lines[2 * at + 1] |= 1 << (sector & 3);
    }
  }
  return count;
}

int64_t wavefronts_of(const int64_t* addresses, const uint8_t* on, int64_t row, int size,
                      int pairs) {
  kx::Memory memory = {};
  kx::Lanes lanes = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.offsets[lane] = addresses[row * kLanes + lane];
    lanes.on |= uint32_t(is_on(on, row, lane)) << lane;
  }
  kx::count(memory, lanes, size, pairs);
  return lanes.on ? memory.cost[0] : -1;
}

}  // namespace

extern "C" int kx_record_open(int64_t warps, void** recorder) {
  *recorder = new Recorder{std::vector<kx::timing::Stream>(warps)};
  return 0;
}

extern "C" int kx_record_close(void* recorder) {
  delete static_cast<Recorder*>(recorder);
  return 0;
}

extern "C" int kx_record_block(Recorder* recorder, const int64_t* places, int64_t count, int first) {
  for (int64_t row = 0; row < count; ++row) recorder->warps[places[row]].blocks.push_back(first);
  return 0;
}

// An access to shared memory: addresses [count, 32], on [count, 32] or null for all lanes.
extern "C" int kx_record_shared(Recorder* recorder, const int64_t* places, int64_t count,
                                const int64_t* addresses, const uint8_t* on, int size, int pairs) {
  for (int64_t row = 0; row < count; ++row) {
    const int64_t wavefronts = wavefronts_of(addresses, on, row, size, pairs);
    recorder->warps[places[row]].figures.push_back(wavefronts);
  }
  return 0;
}

// The same of global memory; of an atomic one, the turns that each line takes, too.
extern "C" int kx_record_global(Recorder* recorder, const int64_t* places, int64_t count,
                                const int64_t* addresses, const uint8_t* on, int size, int atomic) {
  int64_t lines[2 * 4 * kLanes];
  for (int64_t row = 0; row < count; ++row) {
    auto& figures = recorder->warps[places[row]].figures;
    const int found = lines_of(addresses, on, row, size, lines);
    figures.push_back(found);
    for (int at = 0; at < found; ++at) {
      figures.insert(figures.end(), lines + 2 * at, lines + 2 * at + 2);
      if (!atomic) continue;
      const Turns turns = turns_of(addresses, on, row, lines[2 * at], size);
      figures.insert(figures.end(), {turns.all, turns.whole});
    }
  }
  return 0;
}

// Figures of one warp.
extern "C" int kx_record_figures(Recorder* recorder, int64_t place, const int64_t* figures,
                                 int64_t count) {
  auto& own = recorder->warps[place].figures;
  own.insert(own.end(), figures, figures + count);
  return 0;
}

// Of each warp: blocks, figures.
extern "C" int kx_record_sizes(Recorder* recorder, int64_t* sizes) {
  for (const auto& warp : recorder->warps) {
    *sizes++ = warp.blocks.size();
    *sizes++ = warp.figures.size();
  }
  return 0;
}

// All of them, warp by warp.
extern "C" int kx_record_read(Recorder* recorder, int32_t* blocks, int64_t* figures) {
  for (const auto& warp : recorder->warps) {
    blocks = std::copy(warp.blocks.begin(), warp.blocks.end(), blocks);
    figures = std::copy(warp.figures.begin(), warp.figures.end(), figures);
  }
  return 0;
}
