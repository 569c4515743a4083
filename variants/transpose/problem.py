"""y = x transposed, 32-bit elements: a kernel small enough to read in a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from kernelexp.launch import Launch, Pointer, Scalar
from kernelexp.problem import Array, Axes, Chunk, Size, Tolerance, Work

if TYPE_CHECKING:
    import torch

REFERENCE_ROWS = 1024

SIZES: Mapping[str, Size] = {
    "full": {"rows": 16_384, "columns": 8_192},
    "emulated": {"rows": 96, "columns": 64},
}


def outputs(size: Size) -> Mapping[str, Array]:
    return {"y": Array(shape=(size["columns"], size["rows"]), dtype="f32")}


def inputs(size: Size, seed: int, device: str) -> Mapping[str, torch.Tensor]:
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    shape = (size["rows"], size["columns"])
    return {"x": torch.randn(shape, generator=generator, device=device)}


def reference(inputs: Mapping[str, torch.Tensor], size: Size) -> Iterator[Chunk]:
    for first in range(0, size["columns"], REFERENCE_ROWS):
        columns = inputs["x"][:, first : first + REFERENCE_ROWS]
        yield Chunk(array="y", first=first, values=columns.T.double())


def tolerance(size: Size, arch: str) -> Tolerance:
    return Tolerance(rtol=0.0, atol=0.0, why="elements are moved, not computed")


def launch(axes: Axes, size: Size, exports: Mapping[str, int]) -> Launch:
    tile = exports["tile"]
    return Launch(
        entry="transpose",
        grid=(size["columns"] // tile, size["rows"] // tile, 1),
        block=(exports["threads"], 1, 1),
        arguments=(
            Pointer(array="x"),
            Pointer(array="y"),
            Scalar(type="u32", value=size["rows"]),
            Scalar(type="u32", value=size["columns"]),
        ),
    )


def tiles(axes: Axes, size: Size, exports: Mapping[str, int]) -> int:
    return size["rows"] // exports["tile"] * (size["columns"] // exports["tile"])


def work(size: Size) -> Work:
    return Work(flops=0, bytes=8 * size["rows"] * size["columns"])


PEERS = ("torch, x.t().contiguous()",)


def peers(
    inputs: Mapping[str, torch.Tensor], size: Size
) -> Mapping[str, Callable[[], torch.Tensor]]:
    return {PEERS[0]: lambda: inputs["x"].t().contiguous()}
