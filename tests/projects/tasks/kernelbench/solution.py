import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
__global__ void scale_add(const float* x, const float* bias, float* out, int n, int features) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fmaxf(x[i] * 2.0f + bias[i % features], 0.0f);
}

torch::Tensor run(torch::Tensor x, torch::Tensor bias) {
    TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
    auto out = torch::empty_like(x);
    int n = x.numel();
    scale_add<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), bias.data_ptr<float>(),
                                        out.data_ptr<float>(), n, bias.numel());
    return out;
}
"""
extension = load_inline("scale_add", "torch::Tensor run(torch::Tensor x, torch::Tensor bias);", source, functions=["run"])


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return extension.run(x.cuda(), self.bias)
