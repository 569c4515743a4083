#include "pointers.hpp"

namespace warpsim {
namespace {

std::string place_of(uint64_t address) {
  if (const Allocation* gone = find_freed(address)) {
    return "memory that was freed, byte " + std::to_string(address - gone->address) + " of " +
           describe(*gone);
  }
  const auto& all = allocations();
  auto after = all.upper_bound(address);
  if (after != all.begin()) {
    const Allocation& before = std::prev(after)->second;
    const uint64_t beyond = address - before.end();
    if (beyond < kPage) return counted(beyond) + " past the end of " + describe(before);
  }
  return "no allocation";
}

}  // namespace

std::string describe(const Allocation& allocation) {
  const std::string name = allocation.use == Use::kModule ? "the variables of a module"
                                                          : "@" + std::to_string(allocation.number);
  return name + " (" + counted(allocation.size) + ")";
}

bool resolve(const void* pointer, uint64_t size, const char* what, Range& range) {
  const uint64_t address = address_of(pointer);
  if (!is_ours(address)) {
    range = {const_cast<char*>(static_cast<const char*>(pointer)), nullptr, nullptr};
    return true;
  }
  const Allocation* found = find(address);
  if (!found) {
    report(find_freed(address) ? "use-after-free" : "copy-out-of-bounds",
           std::string(what) + " " + counted(size) + " at " + hex(address) + ": " +
               place_of(address) + ".");
    return false;
  }
  if (address + size > found->end()) {
    const uint64_t room = found->end() - address;
    report("copy-out-of-bounds", std::string(what) + " " + counted(size) + " at byte " +
                                     std::to_string(address - found->address) + " of " +
                                     describe(*found) + ": " + counted(size - room) +
                                     " more than there are.");
    return false;
  }
  range = {bytes_at(address), states_at(address), found};
  return true;
}

const Allocation* require_device(const void* pointer, const char* what) {
  Range range;
  if (!is_ours(address_of(pointer)) || !resolve(pointer, 1, what, range)) return nullptr;
  return range.allocation;
}

}  // namespace warpsim
