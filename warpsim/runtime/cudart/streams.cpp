#include "streams.hpp"

#include <cmath>
#include <set>

#include "graphs.hpp"
#include "ordering.hpp"
#include "touching.hpp"

struct CUstream_st {
  uint64_t number;
  unsigned flags;
  int priority;
  cudaGraph_t graph = nullptr;  // that it captures
};

struct CUevent_st {
  unsigned flags;
  bool recorded = false;
  cudaGraph_t graph = nullptr;  // that the stream captured when it was recorded
  warpsim::Clock clock = {};  // what was before it
};

namespace warpsim {
namespace {

std::set<cudaStream_t>& streams() {
  static auto& all = *new std::set<cudaStream_t>;
  return all;
}

std::set<cudaEvent_t>& events() {
  static auto& all = *new std::set<cudaEvent_t>;
  return all;
}

uint64_t made = 0;
constexpr int kLeast = 0, kGreatest = -5;

bool is_default(cudaStream_t stream) {
  return !stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

cudaGraph_t graph_of(cudaStream_t stream) { return is_default(stream) ? nullptr : stream->graph; }

cudaError_t wait_for(cudaStream_t stream) {
  if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
  if (captures(stream)) return cudaErrorStreamCaptureUnsupported;
  host_waits(clock_of(stream_number(stream)));
  wait_for_device();
  return sticky();
}

// A function of the host is called behind the stream's work, and may tell other threads so.
void tell_host(cudaStream_t stream) { host_waits(clock_of(stream_number(stream))); }

}  // namespace

bool is_stream(cudaStream_t stream) { return is_default(stream) || streams().count(stream); }

uint64_t stream_number(cudaStream_t stream) { return is_default(stream) ? 0 : stream->number; }

bool captures(cudaStream_t stream) { return graph_of(stream) != nullptr; }

cudaError_t enqueue(cudaStream_t stream, Work work) {
  if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
  if (cudaGraph_t graph = graph_of(stream)) {
    add_node(graph, cudaGraphNodeTypeKernel, std::move(work), graph->nodes.data(),
             graph->nodes.size());
    return cudaSuccess;
  }
  note_unfinished();
  begin_work(stream_number(stream));
  return work();
}

}  // namespace warpsim

using namespace warpsim;

extern "C" cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags,
                                                    int priority) {
  return call([&] {
    if (!stream || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *stream = new CUstream_st{++made, flags, std::min(kLeast, std::max(kGreatest, priority))};
    streams().insert(*stream);
    add_stream((*stream)->number, !(flags & cudaStreamNonBlocking));
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeast);
}

extern "C" cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, kLeast);
}

extern "C" cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&] {
    if (is_default(stream) || !streams().erase(stream)) return cudaErrorInvalidResourceHandle;
    delete stream;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&] { return wait_for(stream); });
}

extern "C" cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call([&] { return wait_for(stream); });
}

extern "C" cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&] {
    if (!is_stream(stream) || !events().count(event)) return cudaErrorInvalidResourceHandle;
    // A stream that waits for what a capturing one has recorded takes part in the capture.
    if (event->graph && !is_default(stream)) stream->graph = event->graph;
    stream_waits(stream_number(stream), event->clock);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call([&] {
    if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
    *priority = is_default(stream) ? kLeast : stream->priority;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return call([&] {
    if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
    *flags = is_default(stream) ? cudaStreamDefault : stream->flags;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* number) {
  return call([&] {
    if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
    *number = stream_number(stream);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return call([&] {
    if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
    *device = 0;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&] {
    if (least) *least = kLeast;
    if (greatest) *greatest = kGreatest;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID,
                                              const cudaStreamAttrValue*) {
  return call([&] { return is_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}

extern "C" cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call([&] {
    return enqueue(stream, [=] {
      tell_host(stream);
      const OpenPages opened;
      function(data);
      return cudaSuccess;
    });
  });
}

extern "C" cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function,
                                             void* data, unsigned) {
  return call([&] {
    return enqueue(stream, [=] {
      tell_host(stream);
      const OpenPages opened;
      function(stream, sticky(), data);
      return cudaSuccess;
    });
  });
}

// Events

extern "C" cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&] {
    if (!event) return cudaErrorInvalidValue;
    *event = new CUevent_st{flags};
    events().insert(*event);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

extern "C" cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&] {
    if (!events().erase(event)) return cudaErrorInvalidResourceHandle;
    delete event;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return call([&] {
    if (!is_stream(stream) || !events().count(event)) return cudaErrorInvalidResourceHandle;
    event->recorded = true;
    event->graph = graph_of(stream);
    event->clock = clock_of(stream_number(stream));
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&] {
    if (!events().count(event)) return cudaErrorInvalidResourceHandle;
    host_waits(event->clock);
    wait_for_device();
    return sticky();
  });
}

extern "C" cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }

// Nothing took any time of a GPU: not a number, which nobody takes for a measurement.
extern "C" cudaError_t cudaEventElapsedTime(float* time, cudaEvent_t first, cudaEvent_t last) {
  return call([&] {
    if (!events().count(first) || !events().count(last)) return cudaErrorInvalidResourceHandle;
    if (!first->recorded || !last->recorded) return cudaErrorInvalidResourceHandle;
    if ((first->flags | last->flags) & cudaEventDisableTiming) return cudaErrorInvalidResourceHandle;
    *time = std::nanf("");
    report("no-time",
           "cudaEventElapsedTime gives not-a-number: an emulated kernel takes no time of a GPU.");
    return cudaSuccess;
  });
}

// Capture

extern "C" cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return call([&] {
    if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
    if (is_default(stream)) return cudaErrorStreamCaptureUnsupported;
    if (stream->graph) return cudaErrorIllegalState;
    stream->graph = new CUgraph_st;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&] {
    if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
    if (!captures(stream)) return cudaErrorIllegalState;
    *graph = stream->graph;
    for (cudaStream_t each : streams()) {  // those that joined it end with it
      if (each->graph == *graph) each->graph = nullptr;
    }
    for (cudaEvent_t each : events()) {
      if (each->graph == *graph) each->graph = nullptr;
    }
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call([&] {
    if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
    *status = captures(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call([&] {
    *mode = cudaStreamCaptureModeGlobal;
    return cudaSuccess;
  });
}
