// Pinned and managed memory that work may still use: its pages are closed to the program's own code
// until the program has waited for the work, so that a touch before that is seen, and allowed.
//
// Only pages are closed of which the work uses every byte that is allocated there, or which have
// managed variables: a system call on other bytes of a page would fail.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "channel.hpp"
#include "ordering.hpp"

namespace warpsim {

// By atomics, or volatile: a host that looks at such bytes waits for them.
enum class Usage : uint64_t { kReads, kWrites, kUpdates };

struct Used {
  uint64_t first, end;
  Usage how;
};

// By the work that began last, unless the host has waited for it.
void note_use(const std::string& what, const Frames& site, std::vector<Used> used);

// Opens what only work has used that is done.
void open_pages(const Clock& done);

// Touches of memory that the host may not touch are reported from now on.
void watch_touches();

// While one of these lives, the host may touch all pinned and managed memory: what runs is a part of
// a stream.
class OpenPages {
 public:
  OpenPages();
  ~OpenPages();
};

}  // namespace warpsim
