#include "touching.hpp"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>

#include "context.hpp"
#include "memory.hpp"
#include "pointers.hpp"

namespace warpsim {
namespace {

constexpr size_t kMost = 256;  // pieces of work that nobody has waited for
constexpr int kFrames = 32;

struct Pages {
  uint64_t first, end;
  bool written;
};

struct Pending {
  Place place;
  std::string what;
  Frames site;
  std::vector<Used> used;
};

struct Closed {
  Pending work;
  std::vector<Pages> pages;
};

struct Touching {
  std::vector<Closed> closed;
  int open = 0;
  struct sigaction before {};
};

Touching& touching() {
  static auto& made = *new Touching;
  return made;
}

void protect(uint64_t first, uint64_t end, int protection) {
  if (first < end) mprotect(reinterpret_cast<void*>(first), end - first, protection);
}

// As all closed work has it.
void protect_again(const Pages& range) {
  protect(range.first, range.end, PROT_READ | PROT_WRITE);
  if (touching().open) return;
  for (const bool written : {false, true}) {
    for (const Closed& each : touching().closed) {
      for (const Pages& pages : each.pages) {
        if (pages.written != written) continue;
        protect(std::max(pages.first, range.first), std::min(pages.end, range.end),
                written ? PROT_NONE : PROT_READ);
      }
    }
  }
}

// Whole pages of [first, end), in an allocation; those with managed variables need not be whole, as
// system calls seldom get these.
Pages whole_pages(uint64_t first, uint64_t end, const Allocation& in) {
  const uint64_t above = (first + kPage - 1) / kPage * kPage, up = (end + kPage - 1) / kPage * kPage;
  const uint64_t low = first <= in.address || in.is_shown ? first / kPage * kPage : above;
  const uint64_t high = end >= in.end() || in.is_shown ? up : end / kPage * kPage;
  return {low, std::max(low, high), false};
}

std::vector<Pages> pages_of(std::vector<Used> used) {
  std::sort(used.begin(), used.end(), [](const Used& a, const Used& b) { return a.first < b.first; });
  std::vector<Pages> pages;
  for (size_t at = 0; at < used.size();) {
    const Allocation* in = find(used[at].first);
    const size_t begin = at;
    uint64_t end = used[at].end;
    for (; at < used.size() && used[at].first <= end; ++at) end = std::max(end, used[at].end);
    if (!in || !in->on_host()) continue;
    Pages read = whole_pages(used[begin].first, std::min(end, in->end()), *in);
    if (read.first < read.end) pages.push_back(read);
    for (size_t i = begin; i < at; ++i) {
      if (used[i].how == Usage::kReads) continue;
      const uint64_t low = std::max(used[i].first / kPage * kPage, read.first);
      const uint64_t high = std::min((used[i].end + kPage - 1) / kPage * kPage, read.end);
      if (low < high) pages.push_back({low, high, true});
    }
  }
  return pages;
}

// The use of a byte that a touch of it meets, or null.
const Used* met(const Pending& work, uint64_t address, bool writes) {
  for (const Used& each : work.used) {
    if (each.first <= address && address < each.end && (writes || each.how != Usage::kReads)) {
      return &each;
    }
  }
  return nullptr;
}

void take_out(size_t place) {
  const std::vector<Pages> pages = std::move(touching().closed[place].pages);
  touching().closed.erase(touching().closed.begin() + place);
  for (const Pages& each : pages) protect_again(each);
}

// From the touch on: what the handler itself has called comes before it on the stack.
Frames frames_from(uint64_t instruction) {
  void* found[kFrames];
  const int count = backtrace(found, kFrames);
  Frames frames{instruction + 1};
  bool is_past = false;
  for (int i = 0; i < count; ++i) {
    const auto frame = reinterpret_cast<uint64_t>(found[i]);
    if (is_past) frames.push_back(frame);
    is_past = is_past || frame == instruction;
  }
  return frames;
}

// Whether the touch may go on.
bool allow(uint64_t address, bool writes, const Frames& site) {
  const Allocation* in = find(address);
  const char* does = writes ? "writes" : "reads";
  if (!in || !in->on_host()) {
    const Allocation* gone = in ? nullptr : find_freed(address);
    if (in) {
      report("host-access", std::string("the host ") + does + " byte " +
                                std::to_string(address - in->address) + " of " + describe(*in) +
                                ", which is memory of the device.", site);
    } else if (gone) {
      report("use-after-free", std::string("the host ") + does + " byte " +
                                   std::to_string(address - gone->address) + " of " +
                                   describe(*gone) + ", which was freed.", site);
    }
    send_posted();
    return false;
  }
  auto& closed = touching().closed;
  for (size_t i = closed.size(); i-- > 0;) {
    if (const Used* use = met(closed[i].work, address, writes)) {
      const Pending work = closed[i].work;
      const Usage how = use->how;
      take_out(i);
      if (how == Usage::kUpdates) continue;
      post(Message(Kind::kTouched)
               .number(address).number(writes).number(static_cast<uint64_t>(how))
               .text(work.what).frames(work.site).frames(site));
    }
  }
  protect(address / kPage * kPage, address / kPage * kPage + kPage, PROT_READ | PROT_WRITE);
  return true;
}

void on_fault(int number, siginfo_t* fault, void* state) {
  const auto address = reinterpret_cast<uint64_t>(fault->si_addr);
  if (is_ours(address)) {
    const auto& registers = static_cast<ucontext_t*>(state)->uc_mcontext;
#if defined(__x86_64__)
    const auto instruction = static_cast<uint64_t>(registers.gregs[REG_RIP]);
    const bool writes = registers.gregs[REG_ERR] & 2;
#else
    const auto instruction = static_cast<uint64_t>(registers.pc);
    const bool writes = false;
#endif
    const std::lock_guard<std::recursive_mutex> held(lock());
    if (allow(address, writes, frames_from(instruction))) return;
  }
  sigaction(number, &touching().before, nullptr);  // the touch is made again, and is this one's
}

}  // namespace

void note_use(const std::string& what, const Frames& site, std::vector<Used> used) {
  auto& closed = touching().closed;
  const Place place = last_work();
  if (place.is_done || closed.size() >= kMost) return;
  const std::vector<Pages> pages = pages_of(used);
  if (pages.empty()) return;
  closed.push_back({{place, what, site, std::move(used)}, pages});
  for (const Pages& each : pages) protect_again(each);
}

void open_pages(const Clock& done) {
  auto& closed = touching().closed;
  std::vector<Pages> opened;
  closed.erase(std::remove_if(closed.begin(), closed.end(),
                              [&](const Closed& each) {
                                const auto known = done.find(each.work.place.stream);
                                const bool is_done =
                                    known != done.end() && known->second >= each.work.place.count;
                                if (is_done) {
                                  opened.insert(opened.end(), each.pages.begin(), each.pages.end());
                                }
                                return is_done;
                              }),
               closed.end());
  for (const Pages& each : opened) protect_again(each);
}

void watch_touches() {
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &ours, &touching().before);
}

OpenPages::OpenPages() {
  if (touching().open++) return;
  for (const Closed& each : touching().closed) {
    for (const Pages& pages : each.pages) protect_again(pages);
  }
}

OpenPages::~OpenPages() {
  if (--touching().open) return;
  for (const Closed& each : touching().closed) {
    for (const Pages& pages : each.pages) protect_again(pages);
  }
}

}  // namespace warpsim
