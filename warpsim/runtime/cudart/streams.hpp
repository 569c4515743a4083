// Streams: their work is done when it is enqueued, one legal order, unless they capture a graph.
#pragma once
#include <functional>

#include "context.hpp"

namespace warpsim {

using Work = std::function<cudaError_t()>;

bool is_stream(cudaStream_t stream);

// 0 for the default streams.
uint64_t stream_number(cudaStream_t stream);

// Does the work, or notes it as a node of the graph that the stream captures.
cudaError_t enqueue(cudaStream_t stream, Work work);

// Whether it captures.
bool captures(cudaStream_t stream);

}  // namespace warpsim
