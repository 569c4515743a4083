// Cubins that the driver has loaded, kept where one of their kernels may be captured.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace captor {

// Those that have a kernel.
struct Modules {
  std::vector<const std::string*> cubins;  // the one that was loaded last first
  bool chosen = false;                     // whether the first is known to be the kernel's own
};

// One that was loaded now.
void keep_module(const char* cubin, size_t size);

// Around a call of the driver that loads `image`, which it gives out as `handle`.
void begin_loading();
void end_loading(const void* handle, const void* image);

// handle: what the kernel was loaded as, if that is known.
Modules modules_with(const std::string& symbol, const void* handle);

// A variable that a cubin has in global or in constant memory.
struct Variable {
  std::string name, first;  // the bytes that it has when it is loaded
};

std::vector<Variable> variables_of(const std::string& cubin);

uint64_t modules_seen();

}  // namespace captor
