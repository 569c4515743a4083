import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    x, out = data
    assert x.is_cuda and x.device.type == "cuda"
    out[...] = torch.cumsum(x, dim=1)
    return out
