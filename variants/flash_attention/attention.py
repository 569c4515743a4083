"""The problem itself, whichever kernel solves it: inputs, reference, tolerance, peers.

Sizes have batch (b), heads (h), queries and keys of a sequence (s), columns of a head (d).
The folder of each kernel has this file, as evidence and records are of the content of one folder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from kernelexp.problem import Array, Chunk, Size, Tolerance, Work

if TYPE_CHECKING:
    import torch


def heads(size: Size) -> int:
    return size["b"] * size["h"]


def outputs(size: Size) -> Mapping[str, Array]:
    return {"out": Array(shape=(heads(size) * size["s"], size["d"]), dtype="f16")}


def inputs(size: Size, seed: int, device: str) -> Mapping[str, torch.Tensor]:
    """q, k and v, [b, h, s, d], normally distributed: scores have a standard deviation of 1."""
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    shape = (size["b"], size["h"], size["s"], size["d"])
    return {
        name: torch.randn(shape, generator=generator, device=device).half()
        for name in ("q", "k", "v")
    }


def reference(inputs: Mapping[str, torch.Tensor], size: Size) -> Iterator[Chunk]:
    """In float64, a head at a time: 134 MB of scores for 4,096 keys."""
    import torch

    q, k, v = (inputs[name].flatten(0, 1) for name in ("q", "k", "v"))
    for head in range(heads(size)):
        scores = q[head].double() @ k[head].double().T / math.sqrt(size["d"])
        values = torch.softmax(scores, dim=1) @ v[head].double()
        yield Chunk(array="out", first=head * size["s"], values=values)


def tolerance(size: Size, arch: str) -> Tolerance:
    return Tolerance(
        rtol=2.0**-10,
        atol=2.0**-8 / math.sqrt(size["s"]),
        why="rounding to F16 is off by 2^-11 of the value at most. Probabilities are rounded to "
        "F16 where a tensor core multiplies them: the sum of s such errors, each 2^-11 of its "
        "term at most and 0.58 of that in the root mean square, is 2^-11 / sqrt(s) with these "
        "inputs (the mean square of the exponential of a normal variable is e times its squared "
        "mean). 2^-8 / sqrt(s) is eight times that, and less than one lost key of 512 changes.",
    )


def work(size: Size) -> Work:
    rows = heads(size) * size["s"]
    return Work(flops=4 * rows * size["s"] * size["d"], bytes=4 * rows * size["d"] * 2)


PEERS = ("SDPA, flash", "SDPA, cuDNN", "SDPA, memory-efficient", "torch, three kernels")


def peers(
    inputs: Mapping[str, torch.Tensor], size: Size
) -> Mapping[str, Callable[[], torch.Tensor]]:
    """PyTorch's three fused kernels, and scores, softmax and output as kernels of their own."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    flat_q, flat_k, flat_v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
    none = flat_q.new_empty(())  # beta=0: not read

    def fused(backend: SDPBackend) -> Callable[[], torch.Tensor]:
        def call() -> torch.Tensor:
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v)

        return call

    def unfused() -> torch.Tensor:
        scores = torch.baddbmm(none, flat_q, flat_k.mT, beta=0, alpha=1 / math.sqrt(size["d"]))
        return torch.bmm(torch.softmax(scores, dim=-1), flat_v)

    backends = (
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.CUDNN_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
    )
    return dict(zip(PEERS, (*(fused(each) for each in backends), unfused), strict=True))
