"""The problem of the kernels that a check must tell apart: rows scaled, and the sum of each row."""

from __future__ import annotations

from kernelexp.launch import Launch, Pointer, TensorMap
from kernelexp.problem import Array, Chunk, Tolerance

COLS = 1024
# `short` takes under 50 us and is timed in CUDA graphs, `full` launch by launch.
SIZES = {"full": {"rows": 49_152}, "short": {"rows": 4_096}, "emulated": {"rows": 16}}
ARGUMENTS = tuple(Pointer(array=name) for name in ("x", "scale", "y", "sums"))


def outputs(size):
    rows = size["rows"]
    return {
        "y": Array(shape=(rows, COLS), dtype="f32"),
        "sums": Array(shape=(rows,), dtype="f32"),
    }


def inputs(size, seed, device):
    import torch

    generator = torch.Generator(device=device).manual_seed(seed)
    x = torch.randn(size["rows"], COLS, generator=generator, device=device)
    scale = torch.rand(COLS, generator=generator, device=device).add_(0.5)
    return {"x": x, "scale": scale}


def arrange(inputs, axes):
    if axes.get("layout") == "transposed":
        return {"x": inputs["x"].t().contiguous()}
    return {}


def reference(inputs, size):
    step = 8192
    for first in range(0, size["rows"], step):
        y = inputs["x"][first : first + step].double() * inputs["scale"].double()
        yield Chunk(array="y", first=first, values=y)
        yield Chunk(array="sums", first=first, values=y.sum(dim=1))


def tolerance(size, arch):
    return Tolerance(
        rtol=1e-6,
        atol=2e-4,
        why="sums of 1,024 float32 products of size 1 in any order: 32 * 1e-7 * 32, rounded up",
    )


def launch(axes, size, exports):
    """`entry` names the kernel; a row a CTA of 256 threads unless it says otherwise."""
    entry, rows = axes["entry"], size["rows"]
    launches = {
        "large_smem": Launch(
            entry=entry,
            grid=(rows // 16, 1, 1),
            block=(256, 1, 1),
            dynamic_smem_bytes=16 * COLS * 4 + 40_000,
            arguments=ARGUMENTS,
        ),
        "cluster": Launch(
            entry=entry,
            grid=(2 * rows, 1, 1),
            block=(128, 1, 1),
            cluster=(2, 1, 1),
            arguments=ARGUMENTS,
        ),
        "tma": Launch(
            entry=entry,
            grid=(rows // 8, 1, 1),
            block=(256, 1, 1),
            arguments=(
                TensorMap(
                    array="x",
                    element="f32",
                    shape=(COLS, rows),
                    strides_bytes=(COLS * 4,),
                    box=(256, 8),
                ),
                *ARGUMENTS[1:],
            ),
        ),
    }
    plain = Launch(entry=entry, grid=(rows, 1, 1), block=(256, 1, 1), arguments=ARGUMENTS)
    return launches.get(entry, plain)


def peers(inputs, size):
    def scaled():
        return inputs["x"] * inputs["scale"]

    return {"torch": scaled}
