// Loaded by the driver into a program that names this library in CUDA_INJECTION64_PATH.
#include <cupti.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "captures.hpp"
#include "json.hpp"
#include "modules.hpp"
#include "settings.hpp"
#include "timings.hpp"

namespace captor {
namespace {

struct Skipped {
  std::string symbol;
  uint64_t launch;
  std::string why;
};

struct Kept {
  std::string folder;
  uint32_t correlation;
};

// Held from a captured launch's beginning to its end: other threads' launches wait for it.
std::recursive_mutex mutex;
thread_local bool own_calls = false;  // the captor's, which are nobody's launches
std::unique_ptr<Captured> pending;
uint64_t launches = 0, graphs = 0;
std::map<std::string, uint64_t> counts;
std::vector<std::string> order;
std::string previous;  // the kernel that was launched last
std::vector<Allocation> allocations;  // by cuMemAlloc, the oldest first
std::vector<Skipped> skipped;
std::vector<Kept> kept;
std::string error, no_times;

// ---- The calls of the driver that launch

Call described(const cuLaunchKernel_params& given) {
  Call call;
  call.function = given.f;
  call.grid = {given.gridDimX, given.gridDimY, given.gridDimZ};
  call.block = {given.blockDimX, given.blockDimY, given.blockDimZ};
  call.shared = given.sharedMemBytes;
  call.stream = given.hStream;
  call.parameters = given.kernelParams;
  call.extra = given.extra;
  return call;
}

Call described(const cuLaunchCooperativeKernel_params& given) {
  Call call;
  call.function = given.f;
  call.grid = {given.gridDimX, given.gridDimY, given.gridDimZ};
  call.block = {given.blockDimX, given.blockDimY, given.blockDimZ};
  call.shared = given.sharedMemBytes;
  call.stream = given.hStream;
  call.parameters = given.kernelParams;
  call.cooperative = true;
  return call;
}

Call described(const cuLaunchKernelEx_params& given) {
  Call call;
  const CUlaunchConfig& config = *given.config;
  call.function = given.f;
  call.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
  call.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
  call.shared = config.sharedMemBytes;
  call.stream = config.hStream;
  call.parameters = given.kernelParams;
  call.extra = given.extra;
  for (unsigned index = 0; index < config.numAttrs; ++index) {
    const CUlaunchAttribute& attribute = config.attrs[index];
    call.attributes.push_back(int(attribute.id));
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto& size = attribute.value.clusterDim;
      call.cluster = {size.x, size.y, size.z};
    }
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      call.cooperative = attribute.value.cooperative != 0;
    }
  }
  return call;
}

bool describe(CUpti_CallbackId id, const void* given, Call& call) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
      call = described(*static_cast<const cuLaunchKernel_params*>(given));
      return true;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      call = described(*static_cast<const cuLaunchCooperativeKernel_params*>(given));
      return true;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
      call = described(*static_cast<const cuLaunchKernelEx_params*>(given));
      return true;
    default:
      return false;
  }
}

// ---- The calls of the driver that load

constexpr size_t kHeader = 64;  // bytes, of an ELF file

struct Loading {
  const void* const* handle;  // where the call leaves it
  const void* image;          // null: it lies in a file
  const char* file;
};

template <class Handle>
Loading loading_of(Handle* handle, const void* image, const char* file = nullptr) {
  return {reinterpret_cast<const void* const*>(handle), image, file};
}

bool loads(CUpti_CallbackId id, const void* given, Loading& loading) {
  if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData) {
    const auto& call = *static_cast<const cuModuleLoadData_params*>(given);
    loading = loading_of(call.module, call.image);
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx) {
    const auto& call = *static_cast<const cuModuleLoadDataEx_params*>(given);
    loading = loading_of(call.module, call.image);
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary) {
    const auto& call = *static_cast<const cuModuleLoadFatBinary_params*>(given);
    loading = loading_of(call.module, call.fatCubin);
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData) {
    const auto& call = *static_cast<const cuLibraryLoadData_params*>(given);
    loading = loading_of(call.library, call.code);
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleLoad) {
    const auto& call = *static_cast<const cuModuleLoad_params*>(given);
    loading = loading_of(call.module, nullptr, call.fname);
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile) {
    const auto& call = *static_cast<const cuLibraryLoadFromFile_params*>(given);
    loading = loading_of(call.library, nullptr, call.fileName);
  } else {
    return false;
  }
  return true;
}

void loaded_now(const Loading& loading) {
  std::string content;
  if (!loading.image && loading.file) {
    std::ifstream file(loading.file, std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(file), {});
  }
  const bool whole = content.size() >= kHeader;  // else not even the header of a cubin
  end_loading(*loading.handle, loading.image ? loading.image : whole ? content.data() : nullptr);
}

bool succeeded(const CUpti_CallbackData& data) {
  const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
  return result && *result == CUDA_SUCCESS;
}

// ---- The calls of the driver that allocate

bool allocates(CUpti_CallbackId id, const CUpti_CallbackData& data) {
  if (id == CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2) {
    const auto& call = *static_cast<const cuMemAlloc_v2_params*>(data.functionParams);
    if (data.callbackSite == CUPTI_API_EXIT && succeeded(data)) {
      const std::lock_guard<std::recursive_mutex> lock(mutex);
      allocations.push_back({*call.dptr, call.bytesize});
    }
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2) {
    const auto& call = *static_cast<const cuMemFree_v2_params*>(data.functionParams);
    if (data.callbackSite == CUPTI_API_ENTER) {
      const std::lock_guard<std::recursive_mutex> lock(mutex);
      const auto freed = [&](const Allocation& own) { return own.address == call.dptr; };
      allocations.erase(std::remove_if(allocations.begin(), allocations.end(), freed),
                        allocations.end());
    }
  } else {
    return false;
  }
  return true;
}

// ---- A launch begins and ends

void skip(const Captured& captured, const std::string& why) {
  skipped.push_back({captured.symbol, captured.launch, why});
}

void begin(const CUpti_CallbackData& data, const Call& call) {
  mutex.lock();
  const std::string symbol = data.symbolName ? data.symbolName : "";
  const uint64_t launch = ++launches, number = ++counts[symbol];
  if (number == 1) order.push_back(symbol);
  const std::string before = std::exchange(previous, symbol);
  if (!settings().wants(symbol, number, launch)) {
    mutex.unlock();
    return;
  }
  auto captured = std::make_unique<Captured>();
  captured->symbol = symbol;
  captured->previous = before;
  captured->launch = launch;
  captured->number = number;
  captured->correlation = data.correlationId;
  captured->call = call;
  captured->allocations = allocations;
  captured->folder =
      settings().folder + "/" + std::to_string(getpid()) + "-" + std::to_string(launch);
  own_calls = true;
  const std::string why = capture_before(*captured);
  own_calls = false;
  if (!why.empty()) {
    skip(*captured, why);
    mutex.unlock();
    return;
  }
  set_apart(data.correlationId);
  pending = std::move(captured);  // and the lock stays
}

void end(const CUpti_CallbackData& data) {
  // Whoever did not begin a capture neither holds the lock nor sees one of its own here.
  if (!mutex.try_lock()) return;
  if (pending && pending->correlation == data.correlationId) {
    own_calls = true;
    const std::string why = succeeded(data) ? capture_after(*pending) : "its launch fails";
    own_calls = false;
    if (why.empty()) {
      kept.push_back({pending->folder, pending->correlation});
    } else {
      skip(*pending, why);
    }
    pending.reset();
    mutex.unlock();
  }
  mutex.unlock();
}

void of_driver(CUpti_CallbackId id, const CUpti_CallbackData& data) {
  if (own_calls) return;
  const bool enters = data.callbackSite == CUPTI_API_ENTER;
  Call call;
  Loading loaded;
  if (allocates(id, data)) return;
  if (loads(id, data.functionParams, loaded)) {
    if (enters) {
      begin_loading();
    } else if (succeeded(data)) {
      loaded_now(loaded);
    }
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch ||
             id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz) {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    graphs += enters;
  } else if (!enters) {
    end(data);
  } else if (describe(id, data.functionParams, call)) {
    begin(data, call);
  }
}

void CUPTIAPI called(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* given) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    of_driver(id, *static_cast<const CUpti_CallbackData*>(given));
  } else if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
    const auto* resource = static_cast<const CUpti_ResourceData*>(given);
    const auto* module = static_cast<const CUpti_ModuleResourceData*>(resource->resourceDescriptor);
    keep_module(module->pCubin, module->cubinSize);
  }
}

// ---- The process begins and ends

constexpr CUpti_CallbackId kCalls[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData,
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx,
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary,
    CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData,
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoad,
    CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile,
    CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
};

CUptiResult subscribe() {
  CUpti_SubscriberHandle subscriber;
  CUptiResult result = cuptiSubscribe(&subscriber, called, nullptr);
  for (const CUpti_CallbackId id : kCalls) {
    if (result == CUPTI_SUCCESS) {
      result = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
    }
  }
  if (result != CUPTI_SUCCESS) return result;
  return cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                             CUPTI_CBID_RESOURCE_MODULE_LOADED);
}

std::string program() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words((std::istreambuf_iterator<char>(file)), {});
  for (char& letter : words) letter = letter ? letter : ' ';
  return words.empty() ? words : words.substr(0, words.size() - 1);
}

std::string spelled(const Shape& shape, const std::vector<uint64_t>& times) {
  JsonObject object;
  object.add("grid", numbers(shape.grid)).add("block", numbers(shape.block));
  return object.add("nanoseconds", numbers(times)).text();
}

std::string spelled(const std::string& symbol, const Timings& times) {
  std::vector<std::string> shapes;
  for (const auto& [shape, own] : times.nanoseconds) {
    if (shape.symbol == symbol) shapes.push_back(spelled(shape, own));
  }
  JsonObject object;
  object.add("symbol", quoted(symbol)).add("launches", counts[symbol]);
  object.add("patterns", numbers(settings().patterns_of(symbol)));
  return object.add("times", listed(shapes, [](const std::string& text) { return text; })).text();
}

std::string spelled(const Kept& capture, const Timings& times) {
  const auto own = times.apart.find(capture.correlation);
  JsonObject object;
  object.add("folder", quoted(capture.folder));
  object.add("nanoseconds", own == times.apart.end() ? uint64_t(0) : own->second);
  return object.text();
}

std::string spelled(const Skipped& launch) {
  JsonObject object;
  object.add("symbol", quoted(launch.symbol)).add("launch", launch.launch);
  return object.add("why", quoted(launch.why)).text();
}

// What the process did, for who started it.
void write_summary() {
  const Timings times = error.empty() ? finish_timing() : Timings{};
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  JsonObject object;
  object.add("process", int(getpid())).add("program", quoted(program()));
  object.add("error", quoted(error)).add("no_times", quoted(no_times));
  object.add("launches", launches).add("graphs", graphs).add("modules", modules_seen());
  object.add("kernels", listed(order, [&](const std::string& symbol) { return spelled(symbol, times); }));
  object.add("captured", listed(kept, [&](const Kept& capture) { return spelled(capture, times); }));
  object.add("skipped", listed(skipped, [](const Skipped& launch) { return spelled(launch); }));
  const std::string stem = settings().folder + "/process-" + std::to_string(getpid());
  std::ofstream(stem + ".part") << object.text();
  std::rename((stem + ".part").c_str(), (stem + ".json").c_str());
}

}  // namespace
}  // namespace captor

// The driver calls it in cuInit.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using namespace captor;
  if (settings().folder.empty()) return 1;
  const CUptiResult result = subscribe();
  if (result != CUPTI_SUCCESS) {
    const char* text = nullptr;
    cuptiGetResultString(result, &text);
    error = text ? text : "";
    error += result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                 ? ": another profiler or debugger holds this process"
                 : "";
  } else {
    no_times = start_timing();
  }
  std::atexit(write_summary);
  return 1;
}
