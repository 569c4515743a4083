// The driver's functions that a captor calls itself, looked up in the libcuda that runs the program.
#pragma once
#include <cuda.h>

namespace captor {

struct Driver {
  CUresult (*synchronize)() = nullptr;
  CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus*) = nullptr;
  CUresult (*parameter)(CUfunction, size_t, size_t*, size_t*) = nullptr;
  CUresult (*kernel_parameter)(CUkernel, size_t, size_t*, size_t*) = nullptr;
  CUresult (*kernel_function)(CUfunction*, CUkernel) = nullptr;
  CUresult (*range)(CUdeviceptr*, size_t*, CUdeviceptr) = nullptr;
  CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t) = nullptr;
  CUresult (*device)(CUdevice*) = nullptr;
  CUresult (*device_name)(char*, int, CUdevice) = nullptr;
  CUresult (*function_module)(CUmodule*, CUfunction) = nullptr;
  CUresult (*load)(CUfunction) = nullptr;
  CUresult (*variable)(CUdeviceptr*, size_t*, CUmodule, const char*) = nullptr;
  CUresult (*kernel_library)(CUlibrary*, CUkernel) = nullptr;
};

// Of the libcuda in this process; what an older one lacks is null.
const Driver& driver();

}  // namespace captor
