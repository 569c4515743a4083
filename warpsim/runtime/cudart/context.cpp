#include "context.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "memory.hpp"
#include "ordering.hpp"
#include "touching.hpp"

namespace warpsim {
namespace {

struct Unseen {
  cudaError_t error = cudaSuccess;
  std::string sentence;
  Frames site;
};

// Not destroyed at exit: the program's own destructors may call the runtime.
struct Context {
  std::recursive_mutex lock;
  std::map<std::string, std::string> device;
  bool started = false, unfinished = false;
  cudaError_t pending = cudaSuccess, sticky = cudaSuccess;
  Unseen unseen;
  std::string printed;
};

Context& context() {
  static Context& made = *new Context;
  return made;
}

thread_local cudaError_t last = cudaSuccess;

// With the lines that an interpreter has named, each by a number that is not an address.
std::string maps() {
  std::ifstream file("/proc/self/maps");
  std::string all{std::istreambuf_iterator<char>(file), {}};
  uint64_t number = 0;
  for (const std::string& each : named_sites()) all += std::to_string(++number) + " " + each + "\n";
  return all;
}

void finish() {
  Context& own = context();
  if (!is_connected()) return;
  if (own.unseen.error != cudaSuccess) report("unseen-error", own.unseen.sentence, own.unseen.site);
  if (own.unfinished) {
    report("never-synchronised",
           "the program ends without waiting for its last launch or copy: an error of it is never "
           "seen, and what its kernels printed is lost.",
           {});
  }
  ask(Message(Kind::kBye).text(maps()));
}

}  // namespace

std::recursive_mutex& lock() { return context().lock; }

void start() {
  Context& own = context();
  if (own.started) return;
  own.started = true;
  const Files files = make_memory();
  own.device = connect(files.data, files.state);
  set_memory(device_number("memory"), static_cast<int>(device_number("unwritten")));
  watch_touches();
}

__attribute__((destructor(101))) static void end() {
  const std::lock_guard<std::recursive_mutex> held(lock());
  finish();
}

std::string device_text(const std::string& name) {
  const auto found = context().device.find(name);
  if (found == context().device.end()) give_up("the device is not described by its " + name + ".");
  return found->second;
}

uint64_t device_number(const std::string& name) {
  return std::strtoull(device_text(name).c_str(), nullptr, 10);
}

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last = error;
  return error;
}

void fail_later(cudaError_t error) {
  if (context().pending == cudaSuccess) context().pending = error;
}

void notice_failure() {
  if (context().sticky == cudaSuccess) context().sticky = context().pending;
}

void forget_failure() {
  context().pending = context().sticky = cudaSuccess;
  last = cudaSuccess;
}

cudaError_t sticky() { return context().sticky; }

void fail_unseen(cudaError_t error, const std::string& sentence, const Frames& site) {
  if (context().unseen.error == cudaSuccess) context().unseen = {error, sentence, site};
}

void report(const std::string& name, const std::string& sentence, const Frames& site) {
  post(Message(Kind::kFinding).text(name).text(sentence).frames(site));
}

void report(const std::string& name, const std::string& sentence) {
  report(name, sentence, call_site());
}

void keep_printed(const std::string& text) { context().printed += text; }

void print_kept() {
  std::string& text = context().printed;
  std::fwrite(text.data(), 1, text.size(), stdout);
  text.clear();
}

void wait_for_device() {
  notice_failure();
  print_kept();
  context().unfinished = false;
}

void note_unfinished() { context().unfinished = true; }

std::string hex(uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(address));
  return text;
}

std::string counted(uint64_t bytes) {
  std::string text = std::to_string(bytes);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text + (bytes == 1 ? " byte" : " bytes");
}

}  // namespace warpsim

using namespace warpsim;

extern "C" cudaError_t cudaGetLastError() {
  const std::lock_guard<std::recursive_mutex> held(lock());
  context().unseen = {};
  if (sticky() != cudaSuccess) return sticky();
  const cudaError_t error = last;
  last = cudaSuccess;
  return error;
}

extern "C" cudaError_t cudaPeekAtLastError() {
  const std::lock_guard<std::recursive_mutex> held(lock());
  context().unseen = {};
  return sticky() != cudaSuccess ? sticky() : last;
}

extern "C" cudaError_t cudaDeviceSynchronize() {
  return call([] {
    host_waits_for_all();
    wait_for_device();
    return sticky();
  });
}

// What the emulated context has is given back; allocations and errors are gone.
extern "C" cudaError_t cudaDeviceReset() {
  return query([] {
    host_waits_for_all();
    wait_for_device();
    forget_failure();
    const Frames site = call_site();
    while (true) {
      uint64_t address = 0;
      for (const auto& [first, each] : allocations()) {
        if (each.use != Use::kModule && each.use != Use::kSystem) address = first;
      }
      if (!address) break;
      release(address, site);
    }
    return cudaSuccess;
  });
}

// For programs in a language whose lines are not in the stack of return addresses.
extern "C" void __warpsim_call_from(const char* site) { warpsim::name_site(site); }
