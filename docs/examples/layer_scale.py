"""A PyTorch extension, as torch.utils.cpp_extension.load_inline takes it."""

CUDA = r"""
#include <c10/cuda/CUDAException.h>
#include <cuda_bf16.h>

__global__ void layer_scale(const __nv_bfloat16* __restrict__ x,
                            const __nv_bfloat16* __restrict__ branch,
                            const float* __restrict__ gamma, __nv_bfloat16* __restrict__ y,
                            int rows, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    for (int row = blockIdx.y; row < rows; row += gridDim.y) {
        const int at = row * columns + column;
        const float scaled = gamma[column] * __bfloat162float(branch[at]);
        y[at] = __float2bfloat16(__bfloat162float(x[at]) + scaled);
    }
}

torch::Tensor layer_scale_cuda(torch::Tensor x, torch::Tensor branch, torch::Tensor gamma) {
    auto y = torch::empty_like(x);
    const int rows = x.size(0), columns = x.size(1);
    const dim3 grid((columns + 255) / 256, 64);
    layer_scale<<<grid, 256>>>(reinterpret_cast<__nv_bfloat16*>(x.data_ptr()),
                               reinterpret_cast<__nv_bfloat16*>(branch.data_ptr()),
                               gamma.data_ptr<float>(),
                               reinterpret_cast<__nv_bfloat16*>(y.data_ptr()), rows, columns);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

CPP = "torch::Tensor layer_scale_cuda(torch::Tensor x, torch::Tensor branch, torch::Tensor gamma);"


def build():
    from torch.utils.cpp_extension import load_inline

    return load_inline("layer_scale", CPP, CUDA, functions=["layer_scale_cuda"])
