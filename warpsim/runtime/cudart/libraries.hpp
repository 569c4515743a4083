// For libraries whose calls are computed on the CPU, in the order of a stream: their operands lie
// in device memory.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

// False, and a finding, for device memory that is not all in one allocation, or none.
extern "C" bool __warpsim_reach(const void* pointer, uint64_t size, const char* what, char** bytes,
                                uint8_t** states);

// Whether all of a range that is read was written; a finding if not.
extern "C" bool __warpsim_read(const char* what, const void* pointer, const uint8_t* states,
                               uint64_t size);

extern "C" void __warpsim_written(uint8_t* states, uint64_t size);

// A finding of a library's own.
extern "C" void __warpsim_report(const char* name, const char* sentence);

// `work` says whether it could be done.
extern "C" cudaError_t __warpsim_compute(const char* name, cudaStream_t stream,
                                         const std::function<bool()>& work);
