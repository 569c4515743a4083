// Before the text of a torch extension: a CUDA tensor is one that the host can read too.
#pragma once
#include <cuda_runtime.h>

#include "ATen/cuda/CUDAContext.h"
#define is_cuda is_cpu
#define kCUDA kCPU
