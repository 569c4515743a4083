#include "captures.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "driver.hpp"
#include "json.hpp"
#include "modules.hpp"
#include "settings.hpp"

namespace captor {
namespace {

constexpr uint64_t kLowest = 4096;  // no address lies below
constexpr size_t kLine = 512;       // what cudaMalloc aligns to at least is a part of it

// ---- Parameters

bool place_of(CUfunction function, size_t index, size_t& offset, size_t& size, CUresult& result) {
  const Driver& cuda = driver();
  result = cuda.parameter ? cuda.parameter(function, index, &offset, &size)
                          : CUDA_ERROR_NOT_SUPPORTED;
  return result == CUDA_SUCCESS;
}

// The runtime launches CUkernel handles as if they were functions.
CUfunction function_of(CUfunction given) {
  size_t offset = 0, size = 0;
  CUresult result;
  if (place_of(given, 0, offset, size, result)) return given;
  CUfunction own = nullptr;
  const Driver& cuda = driver();
  if (cuda.kernel_function &&
      cuda.kernel_function(&own, reinterpret_cast<CUkernel>(given)) == CUDA_SUCCESS) {
    return own;
  }
  return given;
}

// What it was loaded as: a CUmodule, or a CUlibrary; null where the driver does not say.
const void* owner_of(CUfunction given) {
  const Driver& cuda = driver();
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  const CUfunction function = function_of(given);
  if (function != given && cuda.kernel_library &&
      cuda.kernel_library(&library, reinterpret_cast<CUkernel>(given)) == CUDA_SUCCESS) {
    return library;
  }
  if (cuda.function_module && cuda.function_module(&module, function) == CUDA_SUCCESS) return module;
  return nullptr;
}

// The end of the buffer that CU_LAUNCH_PARAM_BUFFER_POINTER names.
const char* buffer_of(void** extra) {
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) return static_cast<const char*>(extra[1]);
  }
  return nullptr;
}

std::string read_parameters(Captured& captured) {
  const Call& call = captured.call;
  if (!driver().parameter) return "the driver does not tell parameters: CUDA 12.4 or newer is needed";
  const CUfunction function = function_of(call.function);
  const char* buffer = buffer_of(call.extra);
  size_t offset = 0, size = 0;
  CUresult result;
  for (size_t index = 0; place_of(function, index, offset, size, result); ++index) {
    const char* data = call.parameters ? static_cast<const char*>(call.parameters[index])
                       : buffer        ? buffer + offset
                                       : nullptr;
    if (!data) return "the launch has no parameters where the kernel has some";
    captured.parameters.push_back({offset, std::string(data, size)});
  }
  if (result == CUDA_ERROR_INVALID_VALUE) return "";  // past the last
  return "cuFuncGetParamInfo fails with error " + std::to_string(int(result));
}

// ---- Memory

// What is copied of an allocation that an address points into: all, or as much as the limit lets,
// from the address on.
bool region_at(uint64_t address, Region& region) {
  if (address < kLowest || !driver().range) return false;
  const CUresult result = driver().range(&region.allocation, &region.allocated, address);
  if (result != CUDA_SUCCESS || !region.allocated) return false;
  region.address = region.allocation;
  size_t size = region.allocated;
  if (size > settings().limit) {
    region.address = std::max<uint64_t>(region.allocation, address / kLine * kLine);
    size = std::min<size_t>(region.allocation + region.allocated - region.address,
                            settings().limit);
  }
  region.before.resize(size);
  return true;
}

void add_region(Captured& captured, uint64_t address) {
  for (const Region& region : captured.regions) {
    if (address >= region.address && address < region.address + region.before.size()) return;
  }
  Region region;
  if (region_at(address, region)) captured.regions.push_back(std::move(region));
}

// The variables of the kernel's module, which the program may have set.
void find_variables(Captured& captured) {
  const Driver& cuda = driver();
  const CUfunction function = function_of(captured.call.function);
  CUmodule module = nullptr;
  if (!cuda.variable || !cuda.load || cuda.load(function) != CUDA_SUCCESS ||
      cuda.function_module(&module, function) != CUDA_SUCCESS) {
    return;
  }
  const Modules modules = modules_with(captured.symbol, owner_of(captured.call.function));
  if (modules.cubins.empty()) return;
  for (const Variable& variable : variables_of(*modules.cubins[0])) {
    Region region;
    const CUresult result =
        cuda.variable(&region.address, &region.allocated, module, variable.name.c_str());
    if (result != CUDA_SUCCESS || region.allocated > settings().limit) continue;
    region.allocation = region.address;
    region.variable = variable.name;
    region.first = variable.first;
    region.before.resize(region.allocated);
    captured.regions.push_back(std::move(region));
  }
}

void find_regions(Captured& captured) {
  for (const Parameter& parameter : captured.parameters) {
    for (size_t at = 0; at + 8 <= parameter.bytes.size(); at += 8) {
      uint64_t word;
      std::memcpy(&word, parameter.bytes.data() + at, 8);
      add_region(captured, word);
    }
  }
}

std::string copy(std::string& bytes, CUdeviceptr from) {
  const auto host = reinterpret_cast<CUdeviceptr>(&bytes[0]);
  const CUresult result = driver().copy(host, from, bytes.size());
  return result == CUDA_SUCCESS ? "" : "cuMemcpy fails with error " + std::to_string(int(result));
}

std::string wait() {
  const CUresult result = driver().synchronize();
  return result == CUDA_SUCCESS
             ? ""
             : "cuCtxSynchronize fails with error " + std::to_string(int(result));
}

// ---- Files

bool write(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), std::streamsize(content.size()));
  return bool(file.flush());
}

std::string spelled(const Parameter& parameter) {
  JsonObject object;
  return object.add("offset", parameter.offset).add("data", hexadecimal(parameter.bytes)).text();
}

std::string spelled(const Region& region) {
  JsonObject object;
  object.add("address", uint64_t(region.address)).add("size", region.before.size());
  object.add("allocation", uint64_t(region.allocation)).add("allocated", region.allocated);
  object.add("variable", quoted(region.variable));
  return object.add("changed", region.before != region.after).text();
}

std::string spelled(const Allocation& allocation) {
  return numbers(std::vector<uint64_t>{allocation.address, allocation.size});
}

std::string device_name() {
  CUdevice device;
  char name[256] = "";
  if (driver().device && driver().device(&device) == CUDA_SUCCESS) {
    driver().device_name(name, sizeof name, device);
  }
  return name;
}

std::string spelled(const Captured& captured, const Modules& modules) {
  const Call& call = captured.call;
  JsonObject object;
  object.add("format", 1).add("symbol", quoted(captured.symbol)).add("launch", captured.launch);
  object.add("previous", quoted(captured.previous));
  object.add("number", captured.number).add("process", int(getpid()));
  object.add("device", quoted(device_name())).add("correlation", captured.correlation);
  object.add("grid", numbers(call.grid)).add("block", numbers(call.block));
  object.add("cluster", numbers(call.cluster)).add("shared", call.shared);
  object.add("cooperative", call.cooperative).add("attributes", numbers(call.attributes));
  object.add("modules", modules.cubins.size()).add("chosen", modules.chosen);
  const auto spell = [](const auto& item) { return spelled(item); };
  object.add("parameters", listed(captured.parameters, spell));
  object.add("allocations", listed(captured.allocations, spell));
  return object.add("regions", listed(captured.regions, spell)).text();
}

bool write_all(const Captured& captured) {
  const Modules modules = modules_with(captured.symbol, owner_of(captured.call.function));
  const std::string& folder = captured.folder;
  if (mkdir(folder.c_str(), 0777)) return false;
  bool good = modules.cubins.empty() || write(folder + "/module.cubin", *modules.cubins[0]);
  for (size_t index = 0; index < captured.regions.size(); ++index) {
    const Region& region = captured.regions[index];
    const std::string stem = folder + "/" + std::to_string(index);
    good = good && write(stem + ".before", region.before);
    if (region.before != region.after) good = good && write(stem + ".after", region.after);
  }
  // Last: a folder without it is not whole.
  return good && write(folder + "/launch.json", spelled(captured, modules));
}

}  // namespace

std::string capture_before(Captured& captured) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (driver().is_capturing) driver().is_capturing(captured.call.stream, &status);
  if (status != CU_STREAM_CAPTURE_STATUS_NONE) {
    return "it is recorded into a CUDA graph, and does not run now";
  }
  std::string why = wait();
  if (why.empty()) why = read_parameters(captured);
  if (!why.empty()) return why;
  find_variables(captured);
  find_regions(captured);
  for (Region& region : captured.regions) {
    if (why.empty()) why = copy(region.before, region.address);
  }
  return why;
}

std::string capture_after(Captured& captured) {
  std::string why = wait();
  for (Region& region : captured.regions) {
    region.after.resize(region.before.size());
    if (why.empty()) why = copy(region.after, region.address);
  }
  if (!why.empty()) return why;
  // A module of PyTorch has hundreds of variables that nobody sets.
  auto& regions = captured.regions;
  regions.erase(std::remove_if(regions.begin(), regions.end(),
                               [](const Region& region) {
                                 return !region.variable.empty() && region.before == region.first &&
                                        region.before == region.after;
                               }),
                regions.end());
  return write_all(captured) ? "" : captured.folder + " can't be written";
}

}  // namespace captor
