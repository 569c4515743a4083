#include "ordering.hpp"

#include <algorithm>

#include "memory.hpp"
#include "touching.hpp"

namespace warpsim {
namespace {

struct Ordering {
  std::map<uint64_t, Clock> clocks;  // of streams
  std::map<uint64_t, bool> blocking;  // of those that the program has made
  Clock host;
  uint64_t begun = 0;  // the stream whose work began last
};

Ordering& ordering() {
  static auto& made = *new Ordering;
  return made;
}

bool is_compared() { return !ordering().blocking.empty(); }

void join(Clock& into, const Clock& from) {
  for (const auto& [stream, count] : from) into[stream] = std::max(into[stream], count);
}

Message& add(Message& message, const Clock& clock) {
  message.number(clock.size());
  for (const auto& [stream, count] : clock) message.number(stream).number(count);
  return message;
}

}  // namespace

void add_stream(uint64_t number, bool blocking) { ordering().blocking[number] = blocking; }

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

void begin_work(uint64_t stream) {
  Ordering& all = ordering();
  Clock known = clock_of(stream);
  ++known[stream];
  all.clocks[stream] = known;
  all.begun = stream;
  if (!is_compared()) return;
  Message order(Kind::kOrder);
  order.number(stream).number(known[stream]);
  post(add(add(order, known), all.host));
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
  join(ordering().host, clock);
  open_pages(ordering().host);
}

void host_waits_for_all() {
  Ordering& all = ordering();
  for (const auto& [stream, clock] : all.clocks) join(all.host, clock);
  open_pages(all.host);
}

}  // namespace warpsim
