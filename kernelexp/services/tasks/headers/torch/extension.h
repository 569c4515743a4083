// What extensions use of torch: tensors, and their bindings. The rest of torch's C++ takes three
// fifths more of the compiler's time.
#pragma once
#ifdef KERNELEXP_ALL_OF_TORCH
#include_next <torch/extension.h>
#else
#include <torch/types.h>

#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/utils/pybind.h>
#endif
