// What the functions do that the runtime does not have: one of each that NVIDIA's library
// exports is made when the library is compiled.
#include <string>

#include "channel.hpp"

extern "C" [[noreturn]] void warpsim_missing(const char* name) {
  warpsim::give_up(std::string(name) + " is not supported by the emulator's CUDA runtime.");
}
