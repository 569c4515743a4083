// The units of one SM and its share of L2 and DRAM, as servers: who comes is served when those
// before are, and is told at once when that will be.
#pragma once
#include <algorithm>
#include <cmath>
#include <list>
#include <unordered_map>

#include "timing.hpp"

namespace kx::timing {

struct Server {
  double free = 0, busy = 0;

  // When a request that comes at `now` begins to be served.
  double take(double now, double cycles) {
    const double start = std::max(now, free);
    free = start + cycles;
    busy += cycles;
    return start;
  }
};

constexpr int kSector = 32, kLine = 128, kSectors = kLine / kSector;

// The lines of L1, the least recently used one leaving first.
class L1 {
 public:
  // A line, the sectors that it has or has asked for, and when each is there.
  struct Line {
    int64_t number;
    int sectors;
    double there[kSectors];

    void arrive(int some, double when) {
      for (int sector = 0; sector < kSectors; ++sector)
        if (some >> sector & 1) there[sector] = when;
    }

    // When the last of these is there: who finds one that is on its way waits for it.
    double last(int some) const {
      double when = 0;
      for (int sector = 0; sector < kSectors; ++sector)
        if (some >> sector & 1) when = std::max(when, there[sector]);
      return when;
    }
  };

  explicit L1(size_t lines) : room_(lines) {}

  // The line, which is there from now on, if with no sectors; null where L1 has no room at all.
  Line* touch(int64_t number) {
    if (!room_) return nullptr;
    auto found = places_.find(number);
    if (found != places_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return &order_.front();
    }
    if (places_.size() == room_) {
      places_.erase(order_.back().number);
      order_.pop_back();
    }
    order_.push_front({number, 0, {}});
    places_[number] = order_.begin();
    return &order_.front();
  }

 private:
  size_t room_;
  std::list<Line> order_;
  std::unordered_map<int64_t, std::list<Line>::iterator> places_;
};

constexpr int kSubcores = 4, kPipes = 8, kTensorPipe = 4, kControlPipe = 7;

struct Subcore {
  Server pipes[kPipes];
  Server queue;
  Server bulk;                  // sends bulk copies to the SM's unit
  Server tensor_memory;
  std::vector<double> waiting;  // when those in the queue leave it
  std::vector<double> accesses;  // those of them that are of global memory
  int last = -1;                // the warp that issued last
  int multiplier = -1;          // that issued the last wgmma
  double port = 0;              // when the next may read vector registers, beside a wgmma
  std::vector<double> queued;   // when the wgmmas in the tensor cores' queue start
  double multiplying = 0;       // until when wgmmas are under way

  static bool is_full(std::vector<double>& queue, double now, double depth) {
    queue.erase(
        std::remove_if(queue.begin(), queue.end(), [now](double leaves) { return leaves <= now; }),
        queue.end());
    return queue.size() >= depth;
  }
};

// What a warp's atomic instruction does to a line.
struct Atomic {
  int sectors;
  int64_t turns, whole;  // of sectors in L2; those that change a whole one
  double width;          // times as long as a whole turn takes
  double sent;           // cycles of an SM for each turn
  bool floats;
};

struct Sm {
  Sm(const Parameters& parameters, size_t arrays)
      : p(parameters), l1(size_t(parameters.l1_lines)), requested(arrays),
        prefetched(arrays), written(arrays), box(arrays) {}

  const Parameters& p;
  Subcore subcores[kSubcores];
  Server data, constants, l2, l2_writes, dram, tma;
  Server port;  // to L2: a turn for each line that is asked for, for each sector that is written
  L1 l1;
  std::vector<double> requested;   // bytes that L2 was asked for, by array: of loads each once
  std::vector<double> prefetched;  // bytes that it was to get from DRAM, by array
  std::vector<double> written;     // bytes that L2 was given, by array
  std::vector<double> box;         // bytes of the last bulk load, by array
  double multiplying = 0;  // until when products are under way
  double operands = 0;     // part of what shared memory gives that they take meanwhile
  struct Line {
    int64_t who;  // the first
    bool shared;
    Server server;
  };
  std::unordered_map<int64_t, Line> lines;     // of atomics
  std::unordered_map<int64_t, Server> slices;  // of L2, of lines that CTAs share
  std::vector<double> due;        // of DRAM, by array: whose turn it is
  std::unordered_map<int64_t, int> asked;  // sectors that L2 was asked for by loads, by line

  // A tcgen05.mma, which has shared memory give its operands for `reading` of its cycles.
  void multiply(double start, double cycles, double reading) {
    read_operands(start + cycles, reading / cycles);
    for (Subcore& subcore : subcores) subcore.pipes[kTensorPipe].busy += cycles;
  }

  void read_operands(double until, double part) {
    multiplying = until;
    operands = part;
  }

  // Cycles of the data stage that so many take beside a product: what it leaves, half at least, as
  // who asks at once is served in turn. Beside a wgmma of two operands in shared memory, LDS.128
  // take 2.2 to 2.7 times as long on an H100, and STS.128 1.6 to 1.9 times.
  double beside(double now, double cycles) const {
    return multiplying > now ? cycles / std::max(0.5, 1 - operands) : cycles;
  }

  // A bulk copy's bytes, which enter or leave shared memory from `now` on.
  void copy(double now, double bytes) {
    if (!p.copy_port) data.take(now, beside(now, bytes / kLine));
  }

  // How many of these sectors of a line L2 was not asked for before.
  int new_sectors(int64_t line, int sectors) {
    int& known = asked[line];
    const int others = sectors & ~known;
    known |= sectors;
    return __builtin_popcount(others);
  }

  // When so many turns of the port to L2 begin.
  double request(double now, double turns) { return port.take(now, turns * p.request_interval); }

  // When bytes that L2 is asked for are there, of which `first` were not asked for before: only
  // those may have to come from DRAM. L2 reads once what goes to several SMs `together`.
  double fetch(double now, double bytes, double first, int array, double from_dram,
               double together = 1) {
    requested[array] += first;
    from_dram *= first / bytes;
    const double passing = std::max(p.l2_read_interval, bytes / std::min(p.l2_port, p.l2_rate * together));
    const double asked = request(now, std::max(1.0, bytes / kLine));
    const double arrived = l2.take(asked, passing) + passing;
    if (due.size() < requested.size()) due.resize(requested.size());
    due[array] += from_dram;
    double ready = arrived + p.l2_latency;
    if (from_dram <= 0) return ready;
    const double cycles = from_dram * bytes / p.dram_rate;
    const double start = dram.take(now, cycles);
    if (due[array] >= 1) {
      due[array] -= 1;
      // The bytes of one request come at DRAM's own rate, not at this SM's share of it: only those
      // before it in that share keep it waiting.
      ready = std::max(arrived, start) + p.l2_latency + p.dram_latency + p.dram_wait;
    }
    return ready;
  }

  void prefetch(double now, int array, double from_dram) {
    prefetched[array] += box[array];
    dram.take(now, from_dram * box[array] / p.dram_rate);
  }

  // When L2 has done a warp's atomics on a line. What two share is taken to be shared by all SMs: its
  // slice of L2 has the turns of all of them, and floats of one sector wait for each other. The SM
  // has to wait where it is too far ahead of L2, or all of them are.
  double combine(double now, int64_t number, const Atomic& what, int64_t who) {
    const double sending = std::max(what.sent, kSector / p.l2_atomic_rate) * what.turns;
    const double taken = l2_writes.take(now, sending) + sending;
    Line& line = lines.try_emplace(number, Line{who, false, {}}).first->second;
    line.shared |= line.who != who;
    const double sharers = line.shared ? p.sms : 1;
    const double changing =
        what.whole * what.width * p.whole_turn + (what.turns - what.whole) * p.part_turn;
    Server& slice = slices[slice_of(number)];
    double done = slice.take(now, sharers * changing) + sharers * changing;
    if (what.floats) {
      const int sectors = __builtin_popcount(what.sectors);
      const double waiting = sharers * p.float_turn * ((what.turns + sectors - 1) / sectors);
      done = std::max(done, line.server.take(now, waiting) + waiting);
    }
    data.free = std::max({data.free, taken - p.write_buffer, done - sharers * p.write_buffer});
    return std::max(taken, done);
  }

  // Of eight neighbouring lines four are in one slice of L2, four in another (an H100's atomics).
  static int64_t slice_of(int64_t line) { return line / 8 * 2 + line / 2 % 2; }

  double slices_busy() const {
    double most = 0;
    for (const auto& [number, slice] : slices) most = std::max(most, slice.busy);
    return most;
  }

  double drained() const {
    double last = l2_writes.free;
    for (const auto& [number, line] : lines) last = std::max(last, line.server.free);
    for (const auto& [number, slice] : slices) last = std::max(last, slice.free);
    return last;
  }

  // When L2 has taken bytes: of a part it has to give DRAM as many first.
  double put(double now, double bytes, int array, double to_dram) {
    written[array] += bytes;
    const double cycles = std::max(p.l2_write_interval, bytes / p.l2_write_rate);
    const double taken = l2_writes.take(request(now, bytes / kSector), cycles) + cycles;
    if (to_dram <= 0) return taken;
    const double writing = to_dram * bytes / p.dram_write_rate;
    return std::max(taken, dram.take(now, writing) + writing);
  }
};

}  // namespace kx::timing
