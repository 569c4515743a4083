#include "graphs.hpp"

#include <algorithm>
#include <map>

#include "copies.hpp"
#include "launches.hpp"
#include "ordering.hpp"

namespace warpsim {
namespace {

struct Step {
  Work work;
  std::vector<size_t> after;
  cudaGraphNode_t node = nullptr;
};

// Each after those that it depends on.
size_t append(cudaGraphNode_t node, std::map<cudaGraphNode_t, size_t>& done,
              std::vector<Step>& order) {
  if (const auto known = done.find(node); known != done.end()) return known->second;
  Step step{node->work, {}, node};
  for (cudaGraphNode_t each : node->after) step.after.push_back(append(each, done, order));
  order.push_back(std::move(step));
  return done[node] = order.size() - 1;
}

std::vector<Step> ordered(cudaGraph_t graph) {
  std::map<cudaGraphNode_t, size_t> done;
  std::vector<Step> order;
  for (cudaGraphNode_t each : graph->nodes) append(each, done, order);
  return order;
}

// Whether each depends on the one before it.
bool is_chain(const std::vector<Step>& steps) {
  for (size_t i = 1; i < steps.size(); ++i) {
    const std::vector<size_t>& after = steps[i].after;
    if (std::find(after.begin(), after.end(), i - 1) == after.end()) return false;
  }
  return true;
}

cudaError_t run(const std::vector<Step>& steps) {
  const PartOfWork parts;
  for (const Step& each : steps) {
    const cudaError_t error = each.work ? each.work() : cudaSuccess;
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace warpsim

struct CUgraphExec_st {
  std::vector<warpsim::Step> steps;
  std::vector<uint64_t> streams = {};  // of each step, where not each comes after all before it

  explicit CUgraphExec_st(cudaGraph_t graph) : steps(warpsim::ordered(graph)) {
    if (warpsim::is_chain(steps)) return;
    for (size_t i = 0; i < steps.size(); ++i) streams.push_back(warpsim::add_branch());
  }
};

namespace warpsim {
namespace {

// Each step as the work of a stream of its own, which has waited for those that it depends on.
cudaError_t run_in_branches(const CUgraphExec_st& graph, uint64_t stream) {
  const Clock before = clock_of(stream);
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    const Step& step = graph.steps[i];
    stream_waits(graph.streams[i], before);
    for (size_t each : step.after) stream_waits(graph.streams[i], clock_of(graph.streams[each]));
    begin_work(graph.streams[i]);
    const cudaError_t error = run({step});
    if (error != cudaSuccess) return error;
    stream_waits(stream, clock_of(graph.streams[i]));
  }
  return cudaSuccess;
}

// The arguments of a launch, which are the caller's until it returns.
struct Arguments {
  std::vector<std::string> values;

  Arguments(const Kernel& kernel, void** from) {
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      values.emplace_back(static_cast<const char*>(from[i]), kernel.parameters[i]);
    }
  }
};

Work launching(const cudaKernelNodeParams& of, const Frames& site) {
  Kernel* kernel = find_kernel(of.func);
  if (!kernel || !kernel->missing.empty()) return {};
  const Geometry geometry{of.gridDim, of.blockDim, {1, 1, 1}, of.sharedMemBytes};
  const Arguments kept(*kernel, of.kernelParams);
  return [=] {
    std::vector<void*> pointers;
    for (const std::string& each : kept.values) pointers.push_back(const_cast<char*>(each.data()));
    return launch(kernel, geometry, pointers.data(), nullptr, site, false);
  };
}

Work copying(const cudaMemcpy3DParms& of) {
  return [of] { return cudaMemcpy3D(&of); };
}

Work filling(const cudaMemsetParams& of) {
  return [of] {
    if (of.elementSize == 1) {
      return fill("a memset node", {of.dst, of.pitch}, static_cast<int>(of.value), {of.width, of.height});
    }
    std::string row;
    for (size_t i = 0; i < of.width; ++i) {
      row.append(reinterpret_cast<const char*>(&of.value), of.elementSize);
    }
    for (size_t y = 0; y < of.height; ++y) {
      const cudaError_t error = copy("a memset node", {static_cast<char*>(of.dst) + y * of.pitch},
                                     {row.data()}, {row.size()}, cudaMemcpyDefault);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  };
}

}  // namespace

cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNodeType type, Work work,
                         const cudaGraphNode_t* after, size_t count) {
  auto* node = new CUgraphNode_st{std::move(work), type, {after, after + count}};
  graph->nodes.push_back(node);
  return node;
}

}  // namespace warpsim

using namespace warpsim;

extern "C" cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  return call([&] {
    *graph = new CUgraph_st;
    return cudaSuccess;
  });
}

// Nodes are never freed: those of a clone, or of an executable graph, may be the same.
extern "C" cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call([&] {
    delete graph;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphClone(cudaGraph_t* made, cudaGraph_t graph) {
  return call([&] {
    *made = new CUgraph_st(*graph);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call([&] {
    if (nodes) std::copy_n(graph->nodes.begin(), std::min(*count, graph->nodes.size()), nodes);
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return call([&] {
    *type = node->type;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph,
                                                     unsigned long long) {
  return call([&] {
    *made = new CUgraphExec_st(graph);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph,
                                            unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(made, graph, flags);
}

extern "C" cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return call([&] {
    delete graph;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphExecUpdate(cudaGraphExec_t made, cudaGraph_t graph,
                                           cudaGraphExecUpdateResultInfo* info) {
  return call([&] {
    *made = CUgraphExec_st(graph);
    if (info) *info = {};
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return call([] { return cudaSuccess; });
}

extern "C" cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return call([&] {
    return enqueue(stream, [graph = *graph, number = stream_number(stream)] {
      return graph.streams.empty() ? run(graph.steps) : run_in_branches(graph, number);
    });
  });
}

extern "C" cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from,
                                                const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                                size_t count) {
  return call([&] {
    for (size_t i = 0; i < count; ++i) to[i]->after.push_back(from[i]);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                              const cudaGraphNode_t* after, size_t count,
                                              const cudaKernelNodeParams* of) {
  return call([&] {
    Work work = launching(*of, call_site());
    if (!work) return cudaErrorInvalidDeviceFunction;
    *node = add_node(graph, cudaGraphNodeTypeKernel, work, after, count);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                                    const cudaKernelNodeParams* of) {
  return call([&] {
    node->work = launching(*of, call_site());
    return node->work ? cudaSuccess : cudaErrorInvalidDeviceFunction;
  });
}

extern "C" cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                                        const cudaKernelNodeParams* of) {
  return call([&] {
    const Work work = launching(*of, call_site());
    if (!work) return cudaErrorInvalidDeviceFunction;
    for (Step& each : graph->steps) {
      if (each.node != node) continue;
      each.work = work;
      return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

extern "C" cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                              const cudaGraphNode_t* after, size_t count,
                                              const cudaMemcpy3DParms* of) {
  return call([&] {
    *node = add_node(graph, cudaGraphNodeTypeMemcpy, copying(*of), after, count);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                                const cudaGraphNode_t* after, size_t count,
                                                void* to, const void* from, size_t size,
                                                cudaMemcpyKind kind) {
  return call([&] {
    const auto work = [=] { return copy("a memcpy node", {to}, {from}, {size}, kind); };
    *node = add_node(graph, cudaGraphNodeTypeMemcpy, work, after, count);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                              const cudaGraphNode_t* after, size_t count,
                                              const cudaMemsetParams* of) {
  return call([&] {
    *node = add_node(graph, cudaGraphNodeTypeMemset, filling(*of), after, count);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                            const cudaGraphNode_t* after, size_t count,
                                            const cudaHostNodeParams* of) {
  return call([&] {
    const auto work = [of = *of] {
      of.fn(of.userData);
      return cudaSuccess;
    };
    *node = add_node(graph, cudaGraphNodeTypeHost, work, after, count);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* after, size_t count) {
  return call([&] {
    *node = add_node(graph, cudaGraphNodeTypeEmpty, {}, after, count);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                  const cudaGraphNode_t* after, size_t count,
                                                  cudaGraph_t child) {
  return call([&] {
    const auto work = [steps = ordered(child)] { return run(steps); };
    *node = add_node(graph, cudaGraphNodeTypeGraph, work, after, count);
    return cudaSuccess;
  });
}
