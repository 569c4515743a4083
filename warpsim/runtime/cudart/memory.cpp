#include "memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace warpsim {
namespace {

constexpr uint64_t kSpace = uint64_t(1) << 38;  // addresses; freed ones are used again past its end
constexpr uint64_t kFirst = 2 * kPage;          // the emulator keeps the first bytes for itself
constexpr uint64_t kGuard = kPage;              // an access that far past an end is still found
constexpr uint64_t kPoisoned = 64 << 20;        // larger allocations read as zeros, as fresh ones do
constexpr size_t kRemembered = 10000;

char* data = nullptr;
uint8_t* state = nullptr;
Files files;
int poison = 0xFF;
uint64_t total = 0, used = 0, cursor = kFirst, count = 0;
std::map<uint64_t, Allocation> live, freed;

uint64_t up(uint64_t value) { return (value + kPage - 1) / kPage * kPage; }

void* map_file(int file, void* where, int protection, int flags) {
  void* place = mmap(where, kSpace, protection, MAP_SHARED | MAP_NORESERVE | flags, file, 0);
  if (place == MAP_FAILED) give_up("there is no room for device memory among its addresses.");
  return place;
}

int make_file(const char* name) {
  const int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, kSpace)) give_up("memory for the device can't be made.");
  return file;
}

// The first gap of `size` bytes from `from` on; 0 if there is none.
uint64_t gap(uint64_t from, uint64_t size) {
  uint64_t first = from;
  for (auto each = live.lower_bound(kBase + from); each != live.end(); ++each) {
    if (each->first - kBase >= first + size) break;
    first = up(each->second.end() - kBase) + kGuard;
  }
  return first + size <= kSpace ? first : 0;
}

void forget_freed(uint64_t first, uint64_t end) {
  auto each = freed.lower_bound(first);
  if (each != freed.begin() && std::prev(each)->second.end() > first) --each;
  while (each != freed.end() && each->first < end) each = freed.erase(each);
  if (freed.size() > kRemembered) freed.erase(freed.begin());
}

const Allocation* holding(const std::map<uint64_t, Allocation>& among, uint64_t address) {
  auto each = among.upper_bound(address);
  if (each == among.begin()) return nullptr;
  const Allocation& before = std::prev(each)->second;
  return address < before.end() ? &before : nullptr;
}

// The first of so many bytes that nothing else has; 0 if there is no room.
uint64_t room(uint64_t size) {
  if (size > total - used) return 0;
  uint64_t first = gap(cursor, size);
  if (!first) first = gap(kFirst, size);
  if (!first) return 0;
  cursor = up(first + size) + kGuard;
  forget_freed(kBase + first, kBase + first + size);
  return first;
}

const Allocation* keep(const Allocation& made) {
  used += made.size;
  post(Message(Kind::kAllocated)
           .number(made.address)
           .number(made.size)
           .number(static_cast<uint64_t>(made.use))
           .number(made.number)
           .frames(made.site));
  return &(live[made.address] = made);
}

// Of this machine, or of the control group that the process is in.
uint64_t host_memory() {
  const uint64_t all = uint64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::ifstream file("/sys/fs/cgroup/memory.max");
  uint64_t allowed = 0;
  return file >> allowed && allowed ? std::min(all, allowed) : all;
}

}  // namespace

Files make_memory() {
  files = {make_file("warpsim-data"), make_file("warpsim-states")};
  map_file(files.data, reinterpret_cast<void*>(kBase), PROT_NONE, MAP_FIXED_NOREPLACE);
  data = static_cast<char*>(map_file(files.data, nullptr, PROT_READ | PROT_WRITE, 0));
  state = static_cast<uint8_t*>(map_file(files.state, nullptr, PROT_READ | PROT_WRITE, 0));
  return files;
}

void set_memory(uint64_t bytes, int unwritten) {
  poison = unwritten;
  total = std::min({bytes, kSpace - kFirst, host_memory() / 2});  // half: each byte has a state
}
uint64_t memory_total() { return total; }
uint64_t memory_free() { return total - used; }

const Allocation* allocate(uint64_t size, Use use, const Frames& site) {
  const uint64_t first = size ? room(size) : 0;
  if (!first) return nullptr;
  const Allocation made{kBase + first, size, use, site, ++count};
  const bool unwritten = use == Use::kDevice || use == Use::kArray;
  if (use != Use::kModule && use != Use::kSystem) {
    std::memset(state + first, unwritten ? kUnwritten : kWritten, size);
  }
  if (unwritten && poison && size <= kPoisoned) std::memset(data + first, poison, size);
  if (made.on_host()) show_to_host(made);
  return keep(made);
}

bool release(uint64_t address, const Frames& site) {
  const auto found = live.find(address);
  if (found == live.end()) return false;
  const Allocation gone = found->second;
  live.erase(found);
  const uint64_t first = address - kBase, size = up(gone.size);
  for (int file : {files.data, files.state}) {  // zeros again: outside of every object
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first, size);
  }
  if (gone.on_host()) mprotect(reinterpret_cast<void*>(address), size, PROT_NONE);
  used -= gone.size;
  (freed[address] = gone).site = site;
  post(Message(Kind::kFreed).number(address).frames(site));
  return true;
}

void show_to_host(const Allocation& shown) {
  mprotect(reinterpret_cast<void*>(shown.address), up(shown.size), PROT_READ | PROT_WRITE);
}

void show_variables(uint64_t block) {
  live.at(block).is_shown = true;
  show_to_host(live.at(block));
}

namespace {
bool is_sharing = false;
}

bool has_shared() { return is_sharing; }

const Allocation* share(void* host, uint64_t size, const Frames& site) {
  is_sharing = true;
  const uint64_t before = reinterpret_cast<uint64_t>(host) % kPage, whole = up(before + size);
  const uint64_t first = room(whole);
  if (!first) return nullptr;
  char* const place = static_cast<char*>(host) - before;
  std::memcpy(data + first, place, whole);
  if (mmap(place, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, files.data, first) ==
      MAP_FAILED) {
    return nullptr;
  }
  std::memset(state + first + before, kWritten, size);
  return keep({kBase + first + before, size, Use::kPinned, site, ++count});
}

void take_back(void* host, uint64_t size, uint64_t address, const Frames& site) {
  const uint64_t before = reinterpret_cast<uint64_t>(host) % kPage, whole = up(before + size);
  char* const place = static_cast<char*>(host) - before;
  const uint64_t first = address - kBase - before;
  // Beside it first: the pages may hold what this function needs.
  void* const pages = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) give_up("there is no room for memory that is unregistered.");
  std::memcpy(pages, data + first, whole);
  mremap(pages, whole, whole, MREMAP_MAYMOVE | MREMAP_FIXED, place);
  release(address, site);
}

const Allocation* find(uint64_t address) { return holding(live, address); }
const Allocation* find_freed(uint64_t address) { return holding(freed, address); }
bool is_ours(uint64_t address) { return address >= kBase && address < kBase + kSpace; }
const std::map<uint64_t, Allocation>& allocations() { return live; }
char* bytes_at(uint64_t address) { return data + (address - kBase); }
uint8_t* states_at(uint64_t address) { return state + (address - kBase); }

}  // namespace warpsim
