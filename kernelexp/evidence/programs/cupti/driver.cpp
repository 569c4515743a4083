#include "driver.hpp"

#include <dlfcn.h>

namespace captor {
namespace {

template <class Function>
void look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

Driver looked_up() {
  Driver found;
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return found;
  look_up(library, "cuCtxSynchronize", found.synchronize);
  look_up(library, "cuStreamIsCapturing", found.is_capturing);
  look_up(library, "cuFuncGetParamInfo", found.parameter);
  look_up(library, "cuKernelGetParamInfo", found.kernel_parameter);
  look_up(library, "cuKernelGetFunction", found.kernel_function);
  look_up(library, "cuMemGetAddressRange_v2", found.range);
  look_up(library, "cuMemcpy", found.copy);
  look_up(library, "cuCtxGetDevice", found.device);
  look_up(library, "cuDeviceGetName", found.device_name);
  look_up(library, "cuFuncGetModule", found.function_module);
  look_up(library, "cuFuncLoad", found.load);
  look_up(library, "cuModuleGetGlobal_v2", found.variable);
  look_up(library, "cuKernelGetLibrary", found.kernel_library);
  return found;
}

}  // namespace

const Driver& driver() {
  static const Driver found = looked_up();
  return found;
}

}  // namespace captor
