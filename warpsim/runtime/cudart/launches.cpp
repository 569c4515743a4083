#include "launches.hpp"

#include <algorithm>

#include "memory.hpp"
#include "ordering.hpp"
#include "streams.hpp"
#include "touching.hpp"

namespace warpsim {
namespace {

uint64_t launches = 0;

uint64_t product(const dim3& size) { return uint64_t(size.x) * size.y * size.z; }

std::string spelled(const dim3& size) {
  return "(" + std::to_string(size.x) + ", " + std::to_string(size.y) + ", " +
         std::to_string(size.z) + ")";
}

struct Refusal {
  cudaError_t error = cudaSuccess;
  std::string why;
};

uint64_t up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Registers of a CTA: they are given to warps in units.
uint64_t registers_of(const Kernel& kernel, uint64_t threads) {
  return up(threads, 32) / 32 * up(kernel.registers * 32, device_number("register_unit"));
}

Refusal check_sizes(const Geometry& g) {
  constexpr uint64_t kRows = 65535, kColumns = 0x7FFFFFFF, kDeep = 64;
  const uint64_t most = device_number("threads_per_cta");
  if (!product(g.grid) || !product(g.block)) {
    return {cudaErrorInvalidConfiguration, "a size of 0"};
  }
  if (g.grid.x > kColumns || g.grid.y > kRows || g.grid.z > kRows) {
    return {cudaErrorInvalidConfiguration,
            "a grid beyond (2147483647, 65535, 65535)"};
  }
  if (g.block.x > most || g.block.y > most || g.block.z > kDeep || product(g.block) > most) {
    return {cudaErrorInvalidConfiguration, std::to_string(product(g.block)) +
                                               " threads per CTA, of " + std::to_string(most) +
                                               " at most"};
  }
  return {};
}

Refusal check_cluster(const Kernel& kernel, const Geometry& g) {
  const uint64_t size = product(g.cluster), most = kernel.cluster_allowed;
  if (size == 1) return {};
  if (!size || size > most) {
    return {cudaErrorInvalidClusterSize, "a cluster of " + std::to_string(size) + " CTAs, of " +
                                             std::to_string(most) + " at most"};
  }
  if (g.grid.x % g.cluster.x || g.grid.y % g.cluster.y || g.grid.z % g.cluster.z) {
    return {cudaErrorInvalidValue, "a grid that is not a multiple of the cluster"};
  }
  return {};
}

Refusal check_kernel(const Kernel& kernel, const Geometry& g) {
  const uint64_t threads = product(g.block);
  if (kernel.max_threads && threads > kernel.max_threads) {
    return {cudaErrorInvalidValue, std::to_string(threads) + " threads per CTA, and it was compiled "
                                   "for " + std::to_string(kernel.max_threads) + " at most"};
  }
  if (g.shared > kernel.dynamic_allowed) {
    return {cudaErrorInvalidValue,
            counted(g.shared) + " of dynamic shared memory, of " + counted(kernel.dynamic_allowed) +
                " at most; cudaFuncSetAttribute allows up to " +
                counted(device_number("smem_per_cta_optin") - kernel.static_shared)};
  }
  const uint64_t registers = registers_of(kernel, threads);
  if (registers > device_number("registers_per_sm")) {
    return {cudaErrorLaunchOutOfResources,
            std::to_string(kernel.registers) + " registers for each of " + std::to_string(threads) +
                " threads, more than an SM has"};
  }
  return {};
}

Refusal check(const Kernel& kernel, const Geometry& g) {
  for (const Refusal& each : {check_sizes(g), check_cluster(kernel, g), check_kernel(kernel, g)}) {
    if (each.error != cudaSuccess) return each;
  }
  const uint64_t room = residents(kernel, product(g.block), g.shared) * device_number("sms");
  if (g.cooperative && product(g.grid) > room) {
    return {cudaErrorCooperativeLaunchTooLarge,
            "a cooperative grid of " + std::to_string(product(g.grid)) + " CTAs, of which " +
                std::to_string(room) + " are resident at once"};
  }
  return {};
}

cudaError_t execute(const Message& request, const std::string& what, const Frames& site) {
  Answer answer = ask(request);
  const std::string refusal = answer.text();
  if (!refusal.empty()) give_up(refusal);
  const auto error = static_cast<cudaError_t>(answer.number());
  keep_printed(answer.text());
  if (error != cudaSuccess) fail_later(error);
  std::vector<Used> used(answer.number());
  for (Used& each : used) {
    each.first = answer.number(), each.end = answer.number();
    each.how = static_cast<Usage>(answer.number());
  }
  note_use(what, site, std::move(used));
  return cudaSuccess;
}

Message request_of(const Kernel& kernel, const Geometry& g, void** arguments, cudaStream_t stream,
                   const Frames& site) {
  Message request(Kind::kLaunch);
  request.number(kernel.number).number(++launches).number(stream_number(stream));
  for (const dim3& each : {g.grid, g.block, g.cluster}) {
    request.number(each.x).number(each.y).number(each.z);
  }
  request.number(g.shared).number(g.cooperative);
  request.number(kernel.parameters.size());
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    request.text({static_cast<const char*>(arguments[i]), kernel.parameters[i]});
  }
  return request.frames(site);
}

}  // namespace

cudaError_t launch(Kernel* kernel, const Geometry& geometry, void** arguments, cudaStream_t stream,
                   const Frames& site, bool unseen) {
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  if (!kernel->missing.empty()) give_up(kernel->missing);
  if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
  const Refusal refusal = check(*kernel, geometry);
  if (refusal.error != cudaSuccess) {
    const std::string sentence = kernel->name + " was not launched: " + refusal.why + " (grid " +
                                 spelled(geometry.grid) + ", block " + spelled(geometry.block) +
                                 ").";
    report("refused-launch", sentence, site);
    if (unseen) {
      fail_unseen(refusal.error,
                  "the program never asks whether this launch worked: " + sentence, site);
    }
    return refusal.error;
  }
  const Message request = request_of(*kernel, geometry, arguments, stream, site);
  const std::string what = "launch " + std::to_string(launches) + " of " + kernel->name;
  const bool lets_next_begin = kernel->lets_next_begin;
  if (geometry.early && !captures(stream)) begin_early(stream_number(stream), kernel->waits);
  return enqueue(stream, [=] {
    const cudaError_t error = execute(request, what, site);
    if (lets_next_begin) let_next_begin();
    return error;
  });
}

uint64_t residents(const Kernel& kernel, uint64_t threads, uint64_t shared) {
  const uint64_t warps = up(std::max<uint64_t>(threads, 1), 32) / 32;
  const uint64_t whole = up(kernel.static_shared + shared + device_number("smem_reserved"), 128);
  uint64_t most = std::min(device_number("ctas_per_sm"), device_number("warps_per_sm") / warps);
  most = std::min(most, device_number("smem_per_sm") / whole);
  if (kernel.registers) {
    most = std::min(most, device_number("registers_per_sm") / registers_of(kernel, threads));
  }
  return most;
}

}  // namespace warpsim

using namespace warpsim;

namespace {

struct Configuration {
  Geometry geometry;
  cudaStream_t stream;
  Frames site;
};

// Pushed before the arguments are evaluated, which may launch something themselves.
thread_local std::vector<Configuration> configurations;
thread_local Frames launch_site;

Frames taken_site() {
  Frames site;
  site.swap(launch_site);
  return site.empty() ? call_site() : site;
}

}  // namespace

extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  configurations.push_back(
      {{grid, block, {1, 1, 1}, shared}, static_cast<cudaStream_t>(stream), call_site()});
  return 0;
}

extern "C" cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                                  void* stream) {
  if (configurations.empty()) return cudaErrorMissingConfiguration;
  const Configuration& last = configurations.back();
  *grid = last.geometry.grid, *block = last.geometry.block, *shared = last.geometry.shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  launch_site = last.site;
  configurations.pop_back();
  return cudaSuccess;
}

extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                          void** arguments, size_t shared, cudaStream_t stream) {
  return call([&] {
    return launch(find_kernel(kernel), {grid, block, {1, 1, 1}, shared}, arguments, stream,
                  taken_site(), true);
  });
}

extern "C" cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                                        size_t shared, cudaStream_t stream) {
  return call([&] {
    const bool unseen = !launch_site.empty();  // <<<>>> in an older form
    return launch(find_kernel(stub), {grid, block, {1, 1, 1}, shared}, arguments, stream,
                  taken_site(), unseen);
  });
}

extern "C" cudaError_t cudaLaunchCooperativeKernel(const void* stub, dim3 grid, dim3 block,
                                                   void** arguments, size_t shared,
                                                   cudaStream_t stream) {
  return call([&] {
    return launch(find_kernel(stub), {grid, block, {1, 1, 1}, shared, true}, arguments, stream,
                  call_site(), false);
  });
}

extern "C" cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                           void** arguments) {
  return call([&] {
    Geometry geometry{config->gridDim, config->blockDim, {1, 1, 1}, config->dynamicSmemBytes};
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const cudaLaunchAttribute& each = config->attrs[i];
      if (each.id == cudaLaunchAttributeClusterDimension) {
        geometry.cluster = {each.val.clusterDim.x, each.val.clusterDim.y, each.val.clusterDim.z};
      } else if (each.id == cudaLaunchAttributeCooperative) {
        geometry.cooperative = each.val.cooperative;
      } else if (each.id == cudaLaunchAttributeProgrammaticStreamSerialization) {
        geometry.early = each.val.programmaticStreamSerializationAllowed;
      }
    }
    return launch(find_kernel(stub), geometry, arguments, config->stream, call_site(), false);
  });
}
