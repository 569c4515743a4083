// What orders the work of streams: each stream and the host know how much of every stream's work
// comes before their next. Told to the emulator where there is more than the default stream.
#pragma once
#include <cstdint>
#include <map>

#include "channel.hpp"

namespace warpsim {

// Of each stream, by its number, how many pieces of its work are known to be done.
using Clock = std::map<uint64_t, uint64_t>;

void add_stream(uint64_t number, bool blocking);

// Returns the number of a stream that is a node of a graph, from kBranches on.
constexpr uint64_t kBranches = uint64_t(1) << 32;
uint64_t add_branch();

// From now on, though there may be the default stream only.
void compare_streams();

// A piece of work of a stream begins: 0 is the default stream, which waits for blocking streams and
// they for it.
void begin_work(uint64_t stream);

// While one of these lives, what would begin is a part of the work that has begun: a node of a graph.
class PartOfWork {
 public:
  PartOfWork();
  ~PartOfWork();
};

// Programmatic dependent launch: the work that began last lets the next one of its stream begin
// before it is done, if that one asks to begin early. The stream's later work comes after both. waits:
// whether it has a griddepcontrol.wait, before which only it is beside the work before.
void let_next_begin();
void begin_early(uint64_t stream, bool waits);

// Bytes that the work touches, rows of `width` bytes, `pitch` apart.
void note_access(const char* name, uint64_t address, uint64_t width, uint64_t rows, uint64_t pitch,
                 bool writes);

// The work that began last: its stream, its place there, and whether the host has waited for it.
struct Place {
  uint64_t stream, count;
  bool is_done;
};
Place last_work();

Clock clock_of(uint64_t stream);
void stream_waits(uint64_t stream, const Clock& clock);
void host_waits(const Clock& clock);
void host_waits_for_all();

}  // namespace warpsim
