#include "modules.hpp"

#include <cstring>
#include <memory>
#include <unordered_map>

#include "memory.hpp"
#include "ordering.hpp"

namespace warpsim {

struct Module {
  std::string image;
  bool loaded = false;
  uint64_t number = 0;
  std::string missing;  // why it can't be used
  std::vector<std::unique_ptr<Variable>> variables;
  std::unordered_map<std::string, std::unique_ptr<Kernel>> kernels;
  uint64_t block = 0;  // of its variables
};

namespace {

constexpr uint32_t kWrapper = 0x466243b1, kContainer = 0xba55ed50, kElf = 0x464c457f;

struct Wrapper {
  uint32_t magic, version;
  const char* data;
  const void* linked;  // of version 2: containers of the files that were linked, up to a null
};

struct Registered {
  std::vector<std::unique_ptr<Module>> modules;
  std::unordered_map<const void*, Kernel*> kernels;
  std::unordered_map<const void*, Variable*> variables;
  uint64_t heap = 0;
};

Registered& registered() {
  static auto& all = *new Registered;
  return all;
}

uint64_t container_size(const char* data) {
  uint64_t rest = 0;
  std::memcpy(&rest, data + 8, sizeof rest);
  return 16 + rest;
}

uint64_t elf_size(const char* data) {
  uint64_t sections = 0, segments = 0;
  uint16_t section_size = 0, section_count = 0, segment_size = 0, segment_count = 0;
  std::memcpy(&segments, data + 32, 8), std::memcpy(&sections, data + 40, 8);
  std::memcpy(&segment_size, data + 54, 2), std::memcpy(&segment_count, data + 56, 2);
  std::memcpy(&section_size, data + 58, 2), std::memcpy(&section_count, data + 60, 2);
  return std::max(sections + section_size * section_count, segments + segment_size * segment_count);
}

std::string wrapped(const Wrapper& wrapper) {
  std::string image(wrapper.data, container_size(wrapper.data));
  if (wrapper.version < 2 || !wrapper.linked) return image;
  // The linked image has no PTX; the files' own images do.
  for (auto each = static_cast<const char* const*>(wrapper.linked); *each; ++each) {
    image.append(*each, container_size(*each));
  }
  return image;
}

// Puts the module's variables in their places.
void load(Module& module) {
  if (module.loaded) return;
  module.loaded = true;
  Answer answer = ask(Message(Kind::kModule).text(module.image));
  module.image.clear();
  module.missing = answer.text();
  if (!module.missing.empty()) return;
  module.number = answer.number();
  const uint64_t size = answer.number(), heap = answer.number();
  if (heap && !registered().heap) {
    const Allocation* made = allocate(heap, Use::kSystem, {});
    registered().heap = made ? made->address : 0;
  }
  const Allocation* made = allocate(std::max<uint64_t>(size, 64), Use::kModule, {});
  if (!made) give_up("device memory is too full for the variables of its kernels.");
  module.block = made->address;
  Answer places = ask(Message(Kind::kPlace)
                          .number(module.number)
                          .number(module.block)
                          .number(registered().heap));
  for (uint64_t left = places.number(); left; --left) {
    const std::string name = places.text();
    const uint64_t address = places.number(), bytes = places.number();
    Variable* known = nullptr;
    for (auto& each : module.variables) {
      if (each->name == name) known = each.get();
    }
    if (!known) {
      module.variables.push_back(std::make_unique<Variable>(Variable{&module, name}));
      known = module.variables.back().get();
    }
    known->address = address, known->size = bytes;
  }
}

// Managed variables lie where the host may touch them, with the values that they begin with.
void place_managed(Module& module) {
  for (auto& each : module.variables) {
    if (each->managed && !*each->managed) {
      load(module);
      if (!module.missing.empty()) give_up(module.missing);
      show_variables(module.block);
      post(Message(Kind::kShown).number(each->address).number(each->size));
      *each->managed = reinterpret_cast<void*>(each->address);
    }
  }
}

void describe(Kernel& kernel) {
  if (kernel.known) return;
  kernel.known = true;
  load(*kernel.module);
  kernel.missing = kernel.module->missing;
  if (!kernel.missing.empty()) return;
  Answer answer = ask(Message(Kind::kKernel).number(kernel.module->number).text(kernel.name));
  kernel.missing = answer.text();
  if (!kernel.missing.empty()) return;
  for (uint64_t* each : {&kernel.number, &kernel.static_shared, &kernel.local, &kernel.registers,
                         &kernel.constants, &kernel.max_threads, &kernel.ptx_version,
                         &kernel.binary_version, &kernel.cluster, &kernel.lets_next_begin,
                         &kernel.waits}) {
    *each = answer.number();
  }
  if (kernel.lets_next_begin) compare_streams();
  for (uint64_t left = answer.number(); left; --left) kernel.parameters.push_back(answer.number());
  const uint64_t usual = device_number("smem_per_cta");
  kernel.dynamic_allowed = usual > kernel.static_shared ? usual - kernel.static_shared : 0;
  kernel.cluster_allowed = device_number("cluster_size");
}

Kernel* add_kernel(Module& module, const std::string& name) {
  auto& kernel = module.kernels[name];
  if (!kernel) kernel = std::make_unique<Kernel>(Kernel{&module, name});
  return kernel.get();
}

}  // namespace

Kernel* find_registered(const void* stub) {
  auto& all = registered();
  const auto found = all.kernels.find(stub);
  if (found != all.kernels.end()) return found->second;
  for (auto& module : all.modules) {
    for (auto& [name, kernel] : module->kernels) {
      if (kernel.get() == stub) return kernel.get();
    }
  }
  return nullptr;
}

Kernel* find_kernel(const void* stub) {
  Kernel* found = find_registered(stub);
  if (found) describe(*found);
  return found;
}

Variable* find_variable(const void* shadow) {
  const auto found = registered().variables.find(shadow);
  if (found == registered().variables.end()) return nullptr;
  load(*found->second->module);
  if (!found->second->module->missing.empty()) give_up(found->second->module->missing);
  return found->second->address ? found->second : nullptr;
}

Module* load_module(const std::string& image, std::string& why_not) {
  auto& all = registered().modules;
  all.push_back(std::make_unique<Module>());
  all.back()->image = image;
  load(*all.back());
  why_not = all.back()->missing;
  return why_not.empty() ? all.back().get() : nullptr;
}

void unload_module(Module* module) {
  if (module->block) release(module->block, {});
  auto& all = registered().modules;
  for (auto each = all.begin(); each != all.end(); ++each) {
    if (each->get() != module) continue;
    all.erase(each);
    return;
  }
}

Kernel* kernel_of(Module* module, const std::string& name) {
  Kernel* kernel = add_kernel(*module, name);
  describe(*kernel);
  return kernel->missing.empty() ? kernel : nullptr;
}

const Variable* variable_of(Module* module, const std::string& name) {
  for (auto& each : module->variables) {
    if (each->name == name) return each.get();
  }
  return nullptr;
}

std::string image_at(const void* image) {
  const char* data = static_cast<const char*>(image);
  uint32_t magic = 0;
  std::memcpy(&magic, data, sizeof magic);
  if (magic == kWrapper) return wrapped(*static_cast<const Wrapper*>(image));
  if (magic == kContainer) return {data, container_size(data)};
  if (magic == kElf) return {data, elf_size(data)};
  return {data, std::strlen(data)};
}

}  // namespace warpsim

using namespace warpsim;

// What nvcc's constructors call, before main(): nothing is loaded yet.

extern "C" void** __cudaRegisterFatBinary(void* wrapper) {
  const std::lock_guard<std::recursive_mutex> held(lock());
  auto& all = registered().modules;
  all.push_back(std::make_unique<Module>());
  all.back()->image = image_at(wrapper);
  return reinterpret_cast<void**>(all.back().get());
}

extern "C" void __cudaRegisterFatBinaryEnd(void**) {}

extern "C" void __cudaUnregisterFatBinary(void**) {}

extern "C" void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name, int,
                                       uint3*, uint3*, dim3*, dim3*, int*) {
  const std::lock_guard<std::recursive_mutex> held(lock());
  registered().kernels[stub] = add_kernel(*reinterpret_cast<Module*>(handle), name);
}

extern "C" void __cudaRegisterVar(void** handle, char* shadow, char*, const char* name, int,
                                  size_t size, int, int) {
  const std::lock_guard<std::recursive_mutex> held(lock());
  Module& module = *reinterpret_cast<Module*>(handle);
  module.variables.push_back(std::make_unique<Variable>(Variable{&module, name, size}));
  registered().variables[shadow] = module.variables.back().get();
}

extern "C" void __cudaRegisterManagedVar(void** handle, void** place, char*, const char* name, int,
                                         size_t size, int, int) {
  const std::lock_guard<std::recursive_mutex> held(lock());
  Module& module = *reinterpret_cast<Module*>(handle);
  module.variables.push_back(std::make_unique<Variable>(Variable{&module, name, size, 0, place}));
  registered().variables[place] = module.variables.back().get();
}

extern "C" char __cudaInitModule(void** handle) {
  const std::lock_guard<std::recursive_mutex> held(lock());
  start();
  place_managed(*reinterpret_cast<Module*>(handle));
  return 1;
}

extern "C" void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}

extern "C" void __cudaRegisterUnifiedTable(void**, void*) {}

extern "C" cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  const std::lock_guard<std::recursive_mutex> held(lock());
  *kernel = reinterpret_cast<cudaKernel_t>(find_registered(stub));
  return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

extern "C" cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  return __cudaGetKernel(kernel, stub);
}

extern "C" cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* stub) {
  return __cudaGetKernel(reinterpret_cast<cudaKernel_t*>(function), stub);
}

extern "C" cudaError_t cudaFuncGetName(const char** name, const void* stub) {
  return call([&] {
    Kernel* kernel = find_registered(stub);
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    *name = kernel->name.c_str();
    return cudaSuccess;
  });
}
