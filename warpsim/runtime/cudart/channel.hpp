// Messages to the process that executes launches, over the socket that WARPSIM_SOCKET names.
//
// A message is its kind and the bytes that follow, both as 32 bits, then numbers of 64 bits and
// texts with their length before them: protocol.py reads them.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace warpsim {

enum class Kind : uint32_t {
  kHello = 1,
  kModule,
  kPlace,
  kKernel,
  kLaunch,
  kAllocated,
  kFreed,
  kFinding,
  kTensorMap,
  kBye,
  kUnloaded,
  kOrder,
  kAccess,
  kRefused,
  kTouched,
  kShown,
};

// Return addresses of the calls that led here, innermost first.
using Frames = std::vector<uint64_t>;

class Message {
 public:
  explicit Message(Kind kind) : kind_(kind) {}

  Message& number(uint64_t value) { return bytes(&value, sizeof value); }
  Message& text(const std::string& value) {
    return number(value.size()).bytes(value.data(), value.size());
  }
  Message& frames(const Frames& frames) {
    number(frames.size());
    return bytes(frames.data(), frames.size() * sizeof(uint64_t));
  }
  Message& bytes(const void* data, size_t size) {
    content_.append(static_cast<const char*>(data), size);
    return *this;
  }
  Kind kind() const { return kind_; }
  const std::string& content() const { return content_; }

 private:
  Kind kind_;
  std::string content_;
};

// What came back, read from its beginning.
class Answer {
 public:
  explicit Answer(std::string content) : content_(std::move(content)) {}

  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string text() {
    const uint64_t size = number();
    return {take(size), size};
  }

 private:
  const char* take(uint64_t size);

  std::string content_;
  size_t at_ = 0;
};

// Connects, handing over the memory that both sides use; the description of the device.
std::map<std::string, std::string> connect(int data, int state);

bool is_connected();

// Sent with the next message that is answered, or now.
void post(const Message& message);
void send_posted();

Answer ask(const Message& message);

// Where the program called the runtime.
Frames call_site();

// Where calls of this thread come from until the next name, as an interpreter knows it: `LINE NAME
// FILE`. Empty: from where the stack says.
void name_site(const std::string& site);
std::vector<std::string>& named_sites();

// Says that something can't go on, on standard error, and ends the program.
[[noreturn]] void give_up(const std::string& sentence);

}  // namespace warpsim
