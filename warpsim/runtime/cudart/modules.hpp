// Fat binaries of the program, their kernels and variables; loaded when first used.
#pragma once
#include <string>
#include <vector>

#include "context.hpp"

namespace warpsim {

struct Module;

// A kernel, by its stub on the host; what `cudaFunction_t` and `cudaKernel_t` point to.
struct Kernel {
  Module* module;
  std::string name;
  bool known = false;
  std::string missing;  // why it can't be launched
  std::vector<uint64_t> parameters;  // bytes of each
  uint64_t number = 0, static_shared = 0, local = 0, registers = 0, constants = 0;
  uint64_t max_threads = 0, ptx_version = 0, binary_version = 0, cluster = 0;
  uint64_t lets_next_begin = 0, waits = 0;  // griddepcontrol
  uint64_t dynamic_allowed = 0;  // beyond which cudaFuncSetAttribute has to be asked
  uint64_t cluster_allowed = 0;  // likewise
};

struct Variable {
  Module* module;
  std::string name;
  uint64_t size = 0;
  uint64_t address = 0;
  void** managed = nullptr;  // where the program expects the address
};

// The kernel of a stub or a handle, with what the emulator says of it; null for neither.
Kernel* find_kernel(const void* stub);

// The same, whatever is known of it.
Kernel* find_registered(const void* stub);

// The variable whose shadow on the host this is, in its place; null for none.
Variable* find_variable(const void* shadow);

// A module that the program itself loads: a fat binary, a cubin or PTX.
Module* load_module(const std::string& image, std::string& why_not);
void unload_module(Module* module);
Kernel* kernel_of(Module* module, const std::string& name);
const Variable* variable_of(Module* module, const std::string& name);

// The size of what a pointer to an image points to.
std::string image_at(const void* image);

}  // namespace warpsim
