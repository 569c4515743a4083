// What the warps of a CTA learn from each other at a barrier: Clocks.meet in clocks.py.
#include <algorithm>
#include <cstring>
#include <vector>

#include "array.hpp"

namespace {

using kx::Array;
using kx::integers;

// Columns [first, first + count) of all rows become the highest of each.
void join(int64_t* const* rows, int64_t members, int64_t first, int64_t count,
          std::vector<int64_t>& highest) {
  highest.assign(rows[0] + first, rows[0] + first + count);
  for (int64_t i = 1; i < members; ++i) {
    const int64_t* row = rows[i] + first;
    for (int64_t at = 0; at < count; ++at) highest[at] = std::max(highest[at], row[at]);
  }
  for (int64_t i = 0; i < members; ++i) {
    std::memcpy(rows[i] + first, highest.data(), count * sizeof(int64_t));
  }
}

}  // namespace

// seen: [warps, 2 * agents]; wide: bytes [warps], which may have seen what other CTAs did; groups:
// the places of warps that meet, [groups, members].
extern "C" int kx_meet(const Array* seen, const Array* wide, const Array* groups, int64_t now) {
  const int64_t warps = seen->shape[0], agents = seen->shape[1] / 2;
  const int64_t count = groups->shape[0], members = groups->shape[1];
  std::vector<int64_t*> rows(members);
  std::vector<int64_t> highest;
  for (int64_t group = 0; group < count; ++group) {
    const int64_t* places = integers(groups) + group * members;
    bool widely = false;
    for (int64_t i = 0; i < members; ++i) {
      rows[i] = integers(seen) + places[i] * 2 * agents;
      widely |= wide->data[places[i]] != 0;
    }
    for (int64_t half = 0; half < 2 && !widely; ++half) {
      join(rows.data(), members, half * agents + 2 * warps, agents - 2 * warps, highest);
    }
    if (widely) {
      join(rows.data(), members, 0, 2 * agents, highest);
      for (int64_t i = 0; i < members; ++i) wide->data[places[i]] = 1;
    }
    for (int64_t other = 0; other < members; ++other) {
      for (const int64_t column : {places[other], warps + places[other]}) {
        for (int64_t i = 0; i < members; ++i) {
          for (int64_t at : {column, agents + column}) rows[i][at] = std::max(rows[i][at], now);
        }
      }
    }
  }
  return 0;
}
