"""A kernel with a known amount of extra work, to test what a measurement detects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kernelexp import Array, Axes, Chunk, Launch, Pointer, Scalar, Size, Tolerance, Work

if TYPE_CHECKING:
    import torch

THREADS = 1024
PER_THREAD = 4

# `full` is 0.6 ms on an H200 (two CTAs on each of its 132 SMs, one wave) and `short` a few
# microseconds, which a CUDA graph has to time.
SIZES: Mapping[str, Size] = {
    "full": {"ctas": 264, "pairs": 8000},
    "short": {"ctas": 264, "pairs": 100},
    "emulated": {"ctas": 2, "pairs": 8},
}


def outputs(size: Size) -> Mapping[str, Array]:
    return {"y": Array(shape=(_elements(size),), dtype="f32")}


def inputs(size: Size, seed: int, device: str) -> Mapping[str, torch.Tensor]:
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)
    uniform = torch.rand(_elements(size), generator=generator, device=device)
    return {"x": uniform.mul_(0.5).add_(0.5)}


def reference(inputs: Mapping[str, torch.Tensor], size: Size) -> Iterator[Chunk]:
    yield Chunk(array="y", first=0, values=inputs["x"].double())


def tolerance(size: Size, arch: str) -> Tolerance:
    return Tolerance(rtol=0.0, atol=0.0, why="1 - x is exact for x in [0.5, 1]")


def launch(axes: Axes, size: Size, exports: Mapping[str, int]) -> Launch:
    """`extra` is the added work in thousandths; every value of it runs the same cubin."""
    return Launch(
        entry="knob",
        grid=(size["ctas"], 1, 1),
        block=(exports.get("threads", THREADS), 1, 1),
        arguments=(
            Pointer(array="x"),
            Pointer(array="y"),
            Scalar(type="u32", value=pairs(axes, size)),
            Scalar(type="f32", value=-1.0),
            Scalar(type="f32", value=1.0),
        ),
    )


def pairs(axes: Axes, size: Size) -> int:
    return round(size["pairs"] * (1.0 + int(axes.get("extra", 0)) / 1000.0))


def work(size: Size) -> Work:
    elements = _elements(size)
    return Work(flops=elements * size["pairs"] * 4, bytes=elements * 8)


def _elements(size: Size) -> int:
    return size["ctas"] * THREADS * PER_THREAD
