// Device memory: one file of bytes and one of their states, mapped here and by the emulator.
//
// The program sees device addresses from kBase on. What the host may touch (pinned and managed
// memory) is mapped there; the rest is not, so that a host access to device memory faults as it
// does on a machine with a GPU. The runtime itself reaches all of it through another mapping.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "channel.hpp"

namespace warpsim {

constexpr uint64_t kBase = uint64_t(0x20) << 40;  // layout.py: GLOBAL_BASE
constexpr uint64_t kPage = 4096;
enum State : uint8_t { kOutside = 0, kUnwritten = 1, kWritten = 2, kConstant = 6 };  // arena.py

enum class Use : uint64_t { kDevice, kPinned, kManaged, kArray, kModule, kSystem };

struct Allocation {
  uint64_t address;
  uint64_t size;
  Use use;
  Frames site;
  uint64_t number;  // of the allocations so far
  bool is_shown = false;

  uint64_t end() const { return address + size; }
  bool on_host() const { return use == Use::kPinned || use == Use::kManaged || is_shown; }
};

// The two are -1 before they are made.
struct Files {
  int data = -1, state = -1;
};
Files make_memory();

// How many bytes the card has, and the byte that each reads as before it is written.
void set_memory(uint64_t bytes, int unwritten);

uint64_t memory_total();
uint64_t memory_free();

// Null where there is no room.
const Allocation* allocate(uint64_t size, Use use, const Frames& site);

// False if no allocation begins there.
bool release(uint64_t address, const Frames& site);

// The allocation that an address lies in, or null. One past its end belongs to none.
const Allocation* find(uint64_t address);

// Lets the program's own code touch it.
void show_to_host(const Allocation& shown);

// The same of the variables of a module with managed ones.
void show_variables(uint64_t block);

// Puts the pages of the program's own memory into device memory, and these where they were: null
// where there is no room. take_back() ends that, and leaves the program its bytes.
const Allocation* share(void* host, uint64_t size, const Frames& site);
bool has_shared();  // whether it ever has
void take_back(void* host, uint64_t size, uint64_t address, const Frames& site);

// What was freed and lay there, or null.
const Allocation* find_freed(uint64_t address);

bool is_ours(uint64_t address);

const std::map<uint64_t, Allocation>& allocations();

// Where the runtime itself reaches device memory, and the states of its bytes.
char* bytes_at(uint64_t address);
uint8_t* states_at(uint64_t address);

}  // namespace warpsim
