"""Attention of one head in FP32: out = softmax(q k^T / sqrt(64)) v."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from kernelexp.launch import Launch, Pointer, Scalar
from kernelexp.problem import Array, Axes, Chunk, Size, Tolerance, Work

if TYPE_CHECKING:
    import torch

D = 64
REFERENCE_ROWS = 1024

SIZES: Mapping[str, Size] = {
    "full": {"s": 4096},  # 64 CTAs, as in the published analysis
    "emulated": {"s": 128},
    "emulated_more": {"s": 192},
}


def outputs(size: Size) -> Mapping[str, Array]:
    return {"out": Array(shape=(size["s"], D), dtype="f32")}


def inputs(size: Size, seed: int, device: str) -> Mapping[str, torch.Tensor]:
    """q, k and v, [s, 64], normally distributed: scores have a standard deviation of 1."""
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    return {
        name: torch.randn((size["s"], D), generator=generator, device=device)
        for name in ("q", "k", "v")
    }


def reference(inputs: Mapping[str, torch.Tensor], size: Size) -> Iterator[Chunk]:
    import torch

    k, v = inputs["k"].double(), inputs["v"].double()
    for first in range(0, size["s"], REFERENCE_ROWS):
        q = inputs["q"][first : first + REFERENCE_ROWS].double()
        values = torch.softmax(q @ k.T / math.sqrt(D), dim=1) @ v
        yield Chunk(array="out", first=first, values=values)


def tolerance(size: Size, arch: str) -> Tolerance:
    return Tolerance(
        rtol=2.0**-16,
        atol=2.0**-18,
        why="a score is a sum of 64 products in F32, off by about 8 x 2^-24 of |q| |k| / 8, which "
        "is 8: 4 x 10^-6, and so is a probability, relatively. The errors of the keys' terms are "
        "independent: their mean, weighted by probabilities, is smaller by the square root of "
        "their number. Adding up 4,096 terms, rescaled 128 times, is off by sqrt(4,096) x 2^-24 "
        "of the sum, 2^-18. One lost key would change 2^-12.",
    )


def launch(axes: Axes, size: Size, exports: Mapping[str, int]) -> Launch:
    """A CTA for each 64 rows of queries."""
    return Launch(
        entry="fa_4x4",
        grid=(size["s"] // exports["block_m"], 1, 1),
        block=(exports["threads"], 1, 1),
        dynamic_smem_bytes=exports["dynamic_smem_bytes"],
        arguments=(
            *(Pointer(array=name) for name in ("q", "k", "v", "out")),
            Scalar(type="u32", value=size["s"]),
            Scalar(type="f32", value=1 / math.sqrt(D)),
        ),
    )


def tiles(axes: Axes, size: Size, exports: Mapping[str, int]) -> int:
    """Tiles of queries by tiles of keys."""
    return size["s"] // exports["block_m"] * (size["s"] // exports["block_n"])


def work(size: Size) -> Work:
    return Work(flops=4 * size["s"] * size["s"] * D, bytes=4 * size["s"] * D * 4)


PEERS = ("torch, three kernels", "SDPA, memory-efficient")


def peers(
    inputs: Mapping[str, torch.Tensor], size: Size
) -> Mapping[str, Callable[[], torch.Tensor]]:
    """Scores, softmax and output as kernels of their own, without TF32; PyTorch's fused kernel."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (inputs[name][None, None] for name in ("q", "k", "v"))

    none = q.new_empty(())  # beta=0: not read

    def unfused() -> torch.Tensor:
        scores = torch.baddbmm(none, q[0], k[0].mT, beta=0, alpha=1 / math.sqrt(D))
        return torch.bmm(torch.softmax(scores, dim=-1), v[0])

    def fused() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return dict(zip(PEERS, (unfused, fused), strict=True))
