#include "ordering.hpp"

#include <algorithm>
#include <utility>

#include "memory.hpp"
#include "touching.hpp"

namespace warpsim {
namespace {

struct Ordering {
  std::map<uint64_t, Clock> clocks;  // of streams
  std::map<uint64_t, bool> blocking;  // of those that the program has made
  Clock host;
  uint64_t begun = 0;  // the stream whose work began last
  bool compares = false;
  std::map<uint64_t, uint64_t> lets;  // of streams, the last work that lets the next begin
  int parts = 0;  // as PartOfWork says
  bool early = false;  // the next work begins before the last one of its stream is done
  uint64_t beside = 0;  // the work, of the same stream, beside which it begins and for which it waits
};

Ordering& ordering() {
  static auto& made = *new Ordering;
  return made;
}

bool is_compared() { return ordering().compares; }

void join(Clock& into, const Clock& from) {
  for (const auto& [stream, count] : from) into[stream] = std::max(into[stream], count);
}

Message& add(Message& message, const Clock& clock) {
  message.number(clock.size());
  for (const auto& [stream, count] : clock) message.number(stream).number(count);
  return message;
}

}  // namespace

void compare_streams() { ordering().compares = true; }

void add_stream(uint64_t number, bool blocking) {
  ordering().blocking[number] = blocking;
  compare_streams();
}

uint64_t add_branch() {
  static uint64_t next = kBranches;
  add_stream(next, false);
  return next++;
}

Clock clock_of(uint64_t stream) {
  Ordering& all = ordering();
  Clock known = all.clocks[stream];
  join(known, all.host);
  if (stream == 0) {
    for (const auto& [each, blocks] : all.blocking) {
      if (blocks) join(known, all.clocks[each]);
    }
  } else if (all.blocking[stream]) {
    join(known, all.clocks[0]);
  }
  return known;
}

PartOfWork::PartOfWork() { ++ordering().parts; }
PartOfWork::~PartOfWork() { --ordering().parts; }

void begin_work(uint64_t stream) {
  Ordering& all = ordering();
  if (all.parts) return;
  Clock known = clock_of(stream);
  ++known[stream];
  all.clocks[stream] = known;
  all.begun = stream;
  const bool early = std::exchange(all.early, false);
  const uint64_t beside = std::exchange(all.beside, 0);
  if (!is_compared()) return;
  Message order(Kind::kOrder);
  order.number(stream).number(known[stream]).number(beside);
  if (early) known[stream] -= 2;  // itself, and the work before it
  post(add(add(order, known), all.host));
}

void let_next_begin() {
  Ordering& all = ordering();
  all.lets[all.begun] = all.clocks[all.begun][all.begun];
}

void begin_early(uint64_t stream, bool waits) {
  Ordering& all = ordering();
  const uint64_t last = all.clocks[stream][stream];
  const bool early = last && all.lets[stream] == last && all.host[stream] < last;
  all.early = early && !waits;
  all.beside = early && waits ? last : 0;
}

Place last_work() {
  Ordering& all = ordering();
  const uint64_t count = all.clocks[all.begun][all.begun];
  return {all.begun, count, all.host[all.begun] >= count};
}

void note_access(const char* name, uint64_t address, uint64_t width, uint64_t rows, uint64_t pitch,
                 bool writes) {
  constexpr uint64_t kMost = 4096;  // rows: more are not compared
  if (rows > kMost) return;
  if (pitch == width) width *= rows, rows = 1;
  const Allocation* in = find(address);
  if (in && in->on_host() && !last_work().is_done) {
    std::vector<Used> used;
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t first = address + row * pitch;
      used.push_back({first, first + width, writes ? Usage::kWrites : Usage::kReads});
    }
    note_use(name, call_site(), std::move(used));
  }
  if (!is_compared()) return;
  Message access(Kind::kAccess);
  access.text(name).number(writes).frames(call_site()).number(rows);
  for (uint64_t row = 0; row < rows; ++row) access.number(address + row * pitch).number(width);
  post(access);
}

void stream_waits(uint64_t stream, const Clock& clock) { join(ordering().clocks[stream], clock); }

void host_waits(const Clock& clock) {
  if (ordering().parts) return;
  join(ordering().host, clock);
  open_pages(ordering().host);
}

void host_waits_for_all() {
  Ordering& all = ordering();
  for (const auto& [stream, clock] : all.clocks) join(all.host, clock);
  open_pages(all.host);
}

}  // namespace warpsim
