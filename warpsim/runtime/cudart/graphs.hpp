// Graphs: nodes of work, each after those that it depends on.
#pragma once
#include <vector>

#include "streams.hpp"

struct CUgraphNode_st {
  warpsim::Work work;
  cudaGraphNodeType type;
  std::vector<CUgraphNode_st*> after;
};

struct CUgraph_st {
  std::vector<CUgraphNode_st*> nodes;
};

namespace warpsim {

cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNodeType type, Work work,
                         const cudaGraphNode_t* after, size_t count);

}  // namespace warpsim
